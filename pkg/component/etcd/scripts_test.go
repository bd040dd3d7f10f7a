// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// played is a directory in which the scripts of the steps run, with programs of a few lines instead of etcd's and systemd's.
type played struct {
	t   *testing.T
	dir string
}

// play has these programs, each by its text.
func play(t *testing.T, programs map[string]string) played {
	t.Helper()
	p := played{t, t.TempDir()}
	for name, text := range programs {
		p.put("bin/"+name, "#!/bin/sh\n"+text+"\n")
	}
	return p
}

func (p played) path(name string) string { return filepath.Join(p.dir, name) }

func (p played) put(name, content string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.path(name)), 0o700), os.WriteFile(p.path(name), []byte(content), 0o700)); err != nil {
		p.t.Fatal(err)
	}
}

func (p played) there(name string) bool {
	_, err := os.Stat(p.path(name))
	return err == nil
}

// command is a script of a step, with this directory in the place of those of a host.
func (p played) command(ctx context.Context, argv []string, also ...string) *exec.Cmd {
	at := slices.Index(argv, "/bin/sh")
	here := append([]string{
		"dir=" + p.dir, "data=" + p.path("data"), "wal=" + p.path("data/member/wal"), "config=" + p.path("unit"),
		"program=" + p.path("etcd"), "run=" + p.path("run"), "manifest=" + p.path("manifests/etcd.yaml"), "restoring=" + p.path("restore/under-way"),
	}, also...)
	argv = slices.Concat(argv[:at], here, argv[at:])
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + p.path("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin", "HERE=" + p.dir}
	return cmd
}

// run returns what the script says, and whether it succeeds.
func (p played) run(argv []string, also ...string) (said string, ok bool) {
	p.t.Helper()
	out, err := p.command(p.t.Context(), argv, also...).CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// running are programs of a host on which etcd runs, as the member 2 of the cluster bbbb, and votes. $HERE/others has the ID of the cluster
// that the others are of, and is missing where they do not answer.
var running = map[string]string{
	"ss":        "echo LISTEN",
	"systemctl": `echo "$*" >>"$HERE/systemctl"; [ "$1" != show ] || echo no`,
	"etcdctl": `case "$*" in
*' lock --ttl'*) echo locked >>"$HERE/systemctl" ;;
*192.168.0.11:2379*'get kubexm'*) printf '"ClusterID" : bbbb\n"MemberID" : 2\n' ;;
*'get kubexm'*) [ -e "$HERE/others" ] && printf '"ClusterID" : %s\n"MemberID" : 3\n' "$(cat "$HERE/others")" ;;
*'member list'*)
	[ ! -e "$HERE/fails" ] || { rm "$HERE/fails"; exit 1; }
	cat "$HERE/members"
	;;
esac`,
}

// runsEtcd is a host on which etcd runs with data.
func runsEtcd(t *testing.T, programs map[string]string) played {
	t.Helper()
	p := play(t, programs)
	p.put("data/member/wal/0.wal", "")
	p.put("initial.env", "ETCD_INITIAL_CLUSTER=n1\n")
	for _, name := range []string{"etcd", "ssl/ca.pem", "unit"} {
		p.put(name, "")
		if err := os.Chtimes(p.path(name), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	p.put("run/made", "")
	return p
}

// emptyDigest is that of the unit here.
const emptyDigest = "digest=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func memberArgv(s etcd.Settings) []string { return commandOf(etcd.Member(s, done)).Argv }

// commandOf is what a step runs.
func commandOf(s step.Step) step.Command {
	parts := s.(step.Sequence).Parts
	return parts[len(parts)-1].(step.Command)
}

// TestDataOfAnotherCluster: an etcd that runs with data of another cluster than this host has joined, or than the others are of, is not
// taken for its member.
func TestDataOfAnotherCluster(t *testing.T) {
	const another = "etcd on n1 runs as the member 2 of the cluster bbbb, and the cluster to join is aaaa"
	for _, tt := range []struct {
		name, record, others string
		first                bool
		says, becomes        string
	}{
		{"it began one before it joined", "joining aaaa 1", "", false, another, "joining aaaa 1"},
		{"it has joined", "joining bbbb 2", "", false, "", "member bbbb 2"},
		{"it has begun", "beginning prod-1", "", true, "", "member bbbb 2"},
		{"nothing is remembered, and the others are of it", "", "bbbb", false, "", "member bbbb 2"},
		{"nothing is remembered, and the others are of another", "", "aaaa", false, another, ""},
		{"nothing is remembered, and nobody says which is to be joined", "", "", false, "bring the others back first", ""},
		{"nothing is remembered of the first, which is alone", "", "", true, "", "member bbbb 2"},
		{"a snapshot was restored by hand on all", "member aaaa 1", "bbbb", true, "", "member bbbb 2"},
		{"a snapshot was restored by hand on the first", "member aaaa 1", "", true, "", "member bbbb 2"},
		{"the others go on as before", "member aaaa 1", "aaaa", true, another, "member aaaa 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := runsEtcd(t, running)
			if tt.record != "" {
				p.put("member", tt.record+"\n")
			}
			if tt.others != "" {
				p.put("others", tt.others)
			}
			said, ok := p.run(memberArgv(settings(etcd.Unit, func(s *etcd.Settings) { s.First = tt.first })), emptyDigest)
			if ok != (tt.says == "") || !strings.Contains(said, tt.says) {
				t.Errorf("%t, it says %q, want %q", ok, said, tt.says)
			}
			record, _ := os.ReadFile(p.path("member"))
			if got := strings.TrimSpace(string(record)); got != tt.becomes {
				t.Errorf("the record is %q, want %q", got, tt.becomes)
			}
		})
	}
}

// TestListensEverywhere: an etcd of others that listens at all addresses of its host, as ss shows it, runs here as well.
func TestListensEverywhere(t *testing.T) {
	for name, tt := range map[string]struct {
		ss    string
		heard bool
	}{
		"at the host's":    {`case $2 in 'src 192.168.0.11:2379') echo 'LISTEN 0 4096 192.168.0.11:2379 0.0.0.0:*' ;; esac`, true},
		"at all of IPv4's": {`case $2 in 'sport = :2379') echo 'LISTEN 0 4096 0.0.0.0:2379 0.0.0.0:*' ;; esac`, true},
		"at all of IPv6's": {`case $2 in 'sport = :2379') echo 'LISTEN 0 4096 [::]:2379 [::]:*' ;; esac`, true},
		"at all":           {`case $2 in 'sport = :2379') echo 'LISTEN 0 4096 *:2379 *:*' ;; esac`, true},
		"at another":       {`case $2 in 'sport = :2379') echo 'LISTEN 0 4096 127.0.0.1:2379 0.0.0.0:*' ;; esac`, false},
	} {
		t.Run(name, func(t *testing.T) {
			programs := maps.Clone(running)
			programs["ss"] = tt.ss
			p := runsEtcd(t, programs)
			p.put("member", "member bbbb 2\n")
			member := commandOf(etcd.Member(settings(etcd.Unit), done))
			said, ok := p.run(member.Done.Check, emptyDigest)
			if ok != tt.heard || !ok && said != "no voting member answers here" {
				t.Errorf("%t, the check says %q", ok, said)
			}
			p.put("restore/under-way", "aaaaaaaa\n")
			stopped := etcd.StopForRestore(settings(etcd.Unit), etcd.Restore{ID: "aaaaaaaa"}).(step.Sequence).Done.Check
			if said, ok := p.run(stopped, "restore="+p.path("restore")); ok == tt.heard {
				t.Errorf("for a restore it has ended: %t, it says %q", ok, said)
			}
		})
	}
}

// TestClientWaitsForRestore: what comes before an API server on its host fails while etcd is restored, be it on other hosts.
func TestClientWaitsForRestore(t *testing.T) {
	in := component.Inputs{Target: spec.Target{ClusterName: "prod", Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "192.168.0.1"}}}
	in.Target.Cluster.Etcd.Hosts = spec.Hosts{Names: []string{"n1"}}
	in.Target.Default()
	tasks := etcd.Units.Tasks(in)
	steps := tasks[len(tasks)-1].Steps
	client := steps[len(steps)-1].(step.Sequence)
	free := client.Parts[0].(step.Command)
	if mark := free.Argv[len(free.Argv)-1]; in.RunsEtcd() || client.About.Name != "etcd/client" || mark != component.RestoreHalted {
		t.Fatalf("%s waits for %s", client.About.Name, mark)
	}
	p := play(t, nil)
	ask := func(argv []string) (string, bool) {
		argv = append([]string{"/usr/bin/env"}, argv...)
		argv[len(argv)-1] = p.path("halted")
		return p.run(argv)
	}
	if said, ok := ask(free.Done.Check); !ok {
		t.Errorf("no restore is under way, and it says %q", said)
	}
	p.put("halted", "")
	for _, argv := range [][]string{free.Done.Check, free.Argv} {
		if said, ok := ask(argv); ok || !strings.Contains(said, "etcd is being restored ("+p.path("halted")+"): finish that first") {
			t.Errorf("%t, it says %q", ok, said)
		}
	}
}

// TestInitialEnvIsWhole: how etcd begins is on the disk before it has its name, and what a power cut has left empty is written anew.
func TestInitialEnvIsWhole(t *testing.T) {
	programs := map[string]string{"sync": `case $1 in */.initial.env) echo "the disk is full" >&2; exit 1 ;; esac`}
	for name, text := range running {
		programs[name] = text
	}
	p := runsEtcd(t, programs)
	p.put("member", "member bbbb 2\n")
	argv := memberArgv(settings(etcd.Unit))
	if said, ok := p.run(argv, emptyDigest); ok || !strings.Contains(said, "initial.env cannot be written") {
		t.Errorf("%t, it says %q", ok, said)
	}
	if content, err := os.ReadFile(p.path("initial.env")); err != nil || string(content) != "ETCD_INITIAL_CLUSTER=n1\n" {
		t.Errorf("what was not written is in place: %q %v", content, err)
	}
	// Before etcd is started, which would not without it.
	p = runsEtcd(t, running)
	p.put("initial.env", "")
	p.put("bin/systemctl", "#!/bin/sh\n[ \"$1\" != start ] || cp \"$HERE/initial.env\" \"$HERE/found\"\n")
	said, ok := p.run(argv, emptyDigest)
	if found, _ := os.ReadFile(p.path("found")); !ok || !strings.Contains(string(found), `ETCD_INITIAL_CLUSTER_STATE="existing"`) {
		t.Errorf("etcd is started with %q: %s", found, said)
	}
}

// TestRestartIsTakenInTurn: where etcd does not list its members once, it is not known who keeps the lock, and nobody is restarted without.
func TestRestartIsTakenInTurn(t *testing.T) {
	s := settings(etcd.Unit)
	asked := component.Restart{Components: []spec.ComponentName{spec.ComponentEtcd}, Asked: time.Now()}
	for name, argv := range map[string][]string{"outdated": memberArgv(s), "asked for": commandOf(etcd.Restart(s, asked)).Argv} {
		t.Run(name, func(t *testing.T) {
			p := runsEtcd(t, running)
			p.put("member", "member bbbb 2\n")
			p.put("asked", "")
			p.put("fails", "")
			p.put("others", "bbbb")
			p.put("members", "2, started, n1, https://192.168.0.11:2380, https://192.168.0.11:2379, false\n"+
				"3, started, n2, https://192.168.0.12:2380, https://192.168.0.12:2379, false\n")
			// The program is newer than the process, and so is the request.
			for file, at := range map[string]int64{"run": 2, "etcd": 3, "asked": 3} {
				if err := os.Chtimes(p.path(file), time.Unix(at, 0), time.Unix(at, 0)); err != nil {
					t.Fatal(err)
				}
			}
			said, ok := p.run(argv, emptyDigest, "asked="+p.path("asked"))
			done, _ := os.ReadFile(p.path("systemctl"))
			if ok || !strings.Contains(said, "the members cannot be listed") || strings.Contains(string(done), "restart") {
				t.Errorf("%t, it says %q, and systemctl was run with\n%s", ok, said, done)
			}
			if said, _ = p.run(argv, emptyDigest, "asked="+p.path("asked")); said != "" {
				t.Error(said)
			}
			if done, _ = os.ReadFile(p.path("systemctl")); !strings.Contains(string(done), "locked") {
				t.Errorf("with others who vote, the lock is not taken:\n%s", done)
			}
		})
	}
}

// TestEndOfRestoreIsCut wherever files are removed: etcd, which runs with what was restored, is not ended again.
func TestEndOfRestoreIsCut(t *testing.T) {
	p := runsEtcd(t, map[string]string{
		"ss": "echo LISTEN",
		// A directory goes in an order of its own.
		"rm": `case $1 in -rf) /bin/rm -f "$HERE/restore/restored"; kill -KILL $PPID ;; *) exec /bin/rm "$@" ;; esac`,
	})
	s, r := settings(etcd.Unit), etcd.Restore{ID: "aaaaaaaa"}
	restore := "restore=" + p.path("restore")
	p.put("restore/under-way", r.ID+"\n")
	p.put("restore/restored", "")
	stopped := etcd.StopForRestore(s, r).(step.Sequence).Done.Check
	if said, ok := p.run(stopped, restore); !ok {
		t.Fatal(said)
	}
	if _, ok := p.run(commandOf(etcd.EndRestore(s, r)).Argv, restore); ok || p.there("restore/restored") {
		t.Fatal("it was not cut")
	}
	if said, ok := p.run(stopped, restore); !ok {
		t.Errorf("the next run ends etcd: %s", said)
	}
	if err := os.Remove(p.path("bin/rm")); err != nil {
		t.Fatal(err)
	}
	if said, ok := p.run(commandOf(etcd.EndRestore(s, r)).Argv, restore); !ok || p.there("restore") {
		t.Errorf("the next run does not end it: %s", said)
	}
}

// saving are programs of a host on which a snapshot takes until somebody lets it end.
var saving = map[string]string{
	"etcdctl": `case "$*" in
*'get kubexm'*) printf '"ClusterID" : bbbb\n"MemberID" : 2\n' ;;
*'snapshot save'*)
	for file; do :; done
	cp "$HERE/snapshot" "$file"
	[ ! -p "$HERE/saving" ] || { echo >"$HERE/saving"; read -r line <"$HERE/go"; }
	;;
esac`,
	"etcdutl": `echo '{"revision":7}'`,
	"flock":   `[ ! -p "$HERE/waits" ] || echo >"$HERE/waits"; exec /usr/bin/flock "$@"`,
}

// saves is a host of which a backup can be saved, and its command with the time at which it is asked for.
func saves(t *testing.T) (played, func(hour int) *exec.Cmd) {
	t.Helper()
	p := play(t, saving)
	p.put("owner", `{"authority":"SHA256:abc"}`)
	sum := sha256.Sum256([]byte("snapshot"))
	p.put("snapshot", "snapshot"+string(sum[:]))
	return p, func(hour int) *exec.Cmd {
		asked := time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC)
		s := etcd.SaveBackup(settings(etcd.Unit), etcd.Backup{Directory: p.path("backups")}, asked)
		return p.command(t.Context(), commandOf(s).Argv, "owner="+p.path("owner"))
	}
}

// pipes makes those by which the programs wait for the test, and tell it.
func (p played) pipes(names ...string) {
	p.t.Helper()
	for _, name := range names {
		if err := syscall.Mkfifo(p.path(name), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// await waits until a program tells by the pipe.
func (p played) await(name string) {
	p.t.Helper()
	if _, err := os.ReadFile(p.path(name)); err != nil {
		p.t.Error(err)
	}
}

func (p played) backups() []string {
	p.t.Helper()
	entries, err := os.ReadDir(p.path("backups"))
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestBackupIsCut: of one that is ended nothing is left.
func TestBackupIsCut(t *testing.T) {
	p, save := saves(t)
	p.pipes("saving", "go")
	cmd := save(1)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.await("saving")
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil { // as timeout(1) and systemd do
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it succeeds")
	}
	if left := p.backups(); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// TestTwoBackupsAtOnce: the second waits for the first, whose snapshot it would else take for what one has left that was killed.
func TestTwoBackupsAtOnce(t *testing.T) {
	p, save := saves(t)
	p.pipes("saving", "go")
	var said strings.Builder
	first, second := save(1), save(2)
	first.Stderr, second.Stderr = &said, &said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	p.await("saving")
	if err := os.Remove(p.path("saving")); err != nil { // the next one does not wait for us
		t.Fatal(err)
	}
	p.pipes("waits")
	waits, ended := make(chan bool, 1), make(chan error, 1)
	go func() { p.await("waits"); waits <- true }()
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- second.Wait() }()
	select {
	case <-waits:
	case err := <-ended:
		t.Errorf("the second does not wait: %v", err)
		ended <- err
	}
	if err := errors.Join(os.WriteFile(p.path("go"), []byte("on\n"), 0o600), first.Wait(), <-ended); err != nil {
		t.Errorf("%v: %s", err, said.String())
	}
	want := []string{
		"etcd-prod-20261123T010000Z-n1.db", "etcd-prod-20261123T010000Z-n1.json",
		"etcd-prod-20261123T020000Z-n1.db", "etcd-prod-20261123T020000Z-n1.json",
	}
	if got := p.backups(); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}
