// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package quorum_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
)

// As etcdctl 3.6.14 prints it.
const (
	header  = `"header":{"cluster_id":709452218552560551,"member_id":691103013092052465,"raft_term":2}`
	own     = `{"ID":691103013092052465,"name":"n1","peerURLs":["https://10.1.0.1:2380"],"clientURLs":["https://10.1.0.1:2379"]}`
	learner = `{"ID":17237084905584054257,"peerURLs":["https://[fd00::2]:2380"],"isLearner":true}`
	list    = `{` + header + `,"members":[` + own + `,` + learner + `]}`
	none    = `{"header":{"cluster_id":709452218552560551,"member_id":691103013092052465,"revision":1,"raft_term":2}}`
	raised  = `{` + header + `,"alarms":[{"memberID":691103013092052465,"alarm":1},{"memberID":17237084905584054257,"alarm":2},{"memberID":7,"alarm":"ODD\u0007"}]}`
)

var now = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// answered is a host that has said this, whose clock is an hour ahead.
func answered(code int, stdout, stderr string) *host.Facts {
	return &host.Facts{ClockSkew: time.Hour, Commands: map[string]host.Result{
		quorum.Query("n1", "10.1.0.1").Commands[0].ID: {ExitCode: code, Stdout: []byte(stdout), Stderr: []byte(stderr)},
	}}
}

// stopped is that it was stopped at its deadline.
func stopped(f *host.Facts) *host.Facts {
	for id, r := range f.Commands {
		r.Stopped = 10 * time.Second
		f.Commands[id] = r
	}
	return f
}

func say(members, alarms string) string {
	return fmt.Sprintf("asked %d\nmembers %s\nalarms %s\n", now.Add(time.Hour).UnixNano(), members, alarms)
}

func TestIn(t *testing.T) {
	got, err := quorum.In(answered(0, say(list, raised), ""))
	want := quorum.View{
		At: now, Cluster: "9d87b08aff02ba7", Own: "9974a875e8dcdf1",
		Members: []quorum.Member{
			{ID: "9974a875e8dcdf1", Name: "n1", PeerURL: "https://10.1.0.1:2380"},
			{ID: "ef366d654895cff1", PeerURL: "https://[fd00::2]:2380", Learner: true},
		},
		Alarms: []quorum.Alarm{{"9974a875e8dcdf1", "NOSPACE"}, {"ef366d654895cff1", "CORRUPT"}, {"7", "ODD\\u0007"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err = quorum.In(answered(0, say(list, none), "")); err != nil || len(got.Alarms) != 0 {
		t.Errorf("without alarms: %v %v", got.Alarms, err)
	}
}

// TestNotIn: what is not understood is not known, and is no empty list.
func TestNotIn(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(own+",", 33), ",")
	for name, tc := range map[string]struct {
		facts *host.Facts
		want  string
	}{
		"not asked":       {&host.Facts{}, "not asked"},
		"no answer":       {answered(1, "asked 1\n", "nothing listens\nat \x1b[31m10.1.0.1:2379"), "nothing listens at [31m10.1.0.1:2379"},
		"no quorum":       {answered(1, "asked 1\nwhy it has no quorum: \x1bno leader\n", ""), "it has no quorum: no leader"},
		"killed":          {answered(137, "", ""), "exit code 137"},
		"stopped":         {stopped(answered(0, say(list, none), "")), "within 10s"},
		"empty":           {answered(0, "", ""), "not understood"},
		"no members":      {answered(0, say(none, none), ""), "it is empty"},
		"cut off":         {answered(0, say(list[:100], none), ""), "not understood"},
		"too long":        {answered(0, say(list, none)+strings.Repeat("x", host.MaxContent), ""), "cut off"},
		"too many":        {answered(0, say(`{`+header+`,"members":[`+many+`]}`, none), ""), "33 members"},
		"twice":           {answered(0, say(`{`+header+`,"members":[`+own+`,`+own+`]}`, none), ""), "twice"},
		"without itself":  {answered(0, say(`{`+header+`,"members":[`+learner+`]}`, none), ""), "is not in it"},
		"no alarms":       {answered(0, "asked 1\nmembers "+list+"\n", ""), "alarms"},
		"too large an ID": {answered(0, say(strings.Replace(list, "17237084905584054257", "99999999999999999999", 1), none), ""), "not understood"},
		"two members":     {answered(0, say(list, strings.Replace(none, "691103013092052465", "7", 1)), ""), "reported by different members"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := quorum.In(tc.facts)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if len(got.Members)+len(got.Alarms) > 0 || got.Own != "" {
				t.Errorf("it says %+v all the same", got)
			}
		})
	}
	long := strings.Replace(list, `"n1"`, `"`+strings.Repeat("ä", 1000)+`\n"`, 1)
	got, err := quorum.In(answered(0, say(long, none), ""))
	if err != nil || len(got.Members[0].Name) > 253 {
		t.Errorf("a long name is %d bytes long: %v", len(got.Members[0].Name), err)
	}
}

// TestListens: an etcd of others that listens at all addresses of its host, as ss shows it, is asked as well.
func TestListens(t *testing.T) {
	for name, tt := range map[string]struct {
		ss    string
		heard bool
	}{
		"at the host's":    {"case $2 in 'src 10.1.0.1:2379') echo 'LISTEN 0 4096 10.1.0.1:2379 0.0.0.0:*' ;; esac", true},
		"at all of IPv4's": {"case $2 in 'sport = :2379') echo 'LISTEN 0 4096 0.0.0.0:2379 0.0.0.0:*' ;; esac", true},
		"at all":           {"case $2 in 'sport = :2379') echo 'LISTEN 0 4096 *:2379 *:*' ;; esac", true},
		"at another":       {"case $2 in 'sport = :2379') echo 'LISTEN 0 4096 127.0.0.1:2379 0.0.0.0:*' ;; esac", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{
				"ss": tt.ss, "etcdctl": "case $* in *'member list'*) echo '" + list + "' ;; *) echo '" + none + "' ;; esac", "ssl/admin-n1-key.pem": "",
			} {
				file = filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			q := quorum.Query("n1", "10.1.0.1").Commands[0]
			argv := slices.Clone(q.Argv)
			argv[slices.Index(argv, "dir=/etc/kubexm/etcd")] = "dir=" + dir
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
			out, _ := cmd.Output()
			got, err := quorum.In(&host.Facts{Commands: map[string]host.Result{q.ID: {ExitCode: cmd.ProcessState.ExitCode(), Stdout: out}}})
			if (err == nil) != tt.heard || !tt.heard && err.Error() != "nothing listens at 10.1.0.1:2379" {
				t.Errorf("it is %+v: %v", got, err)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for peerURL, want := range map[string]string{
		"https://10.1.0.1:2380": "10.1.0.1", "https://[fd00:0::2]:2380": "fd00::2", "http://etcd1:2380": "etcd1", "": "", "::": "",
	} {
		if got := quorum.Address(peerURL); got != want {
			t.Errorf("%q has the address %q, want %q", peerURL, got, want)
		}
	}
}
