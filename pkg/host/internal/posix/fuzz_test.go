// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// asked is a query of everything that there is to ask.
func asked() host.Query {
	return host.Query{
		Paths: []host.PathQuery{{Path: "/etc/a", Digest: true, Content: true}, {Path: "/etc/b", Block: "x"}},
		Units: []string{"a.service"}, Sysctls: []string{"net.ipv4.ip_forward"}, Modules: []string{"overlay", "br_netfilter"},
		Packages: []string{"p"}, Ports: []int32{22, 6443}, Commands: []host.CommandQuery{{ID: "c", Argv: []string{"true"}}},
	}
}

// FuzzObservation: whatever a host answers, facts are bounded, printable, and can be written down.
func FuzzObservation(f *testing.F) {
	f.Add("\n@M - clock 1700000000.5 99.5\n\n@M + files\n==> P/etc/os-release <==\nID=debian\n\n==> P/proc/meminfo <==\nMemTotal: 5 kB\n\n@M + paths\n81a4 7 8 5 1.5 1:2:5:1.5 /etc/a\n\n@M + accounts\n7 8 \x1b UNKNOWN\n\n@M - end\n", "\n@M + stderr 0\nx\n@M - end\n")
	f.Add("\n@M + units\nId=a.service\nActiveState=active\nActiveEnterTimestampMonotonic=9223372036854775807\n\n@M - disk -1 99 9223372036854775807\n\n@M - end\n", "")
	f.Add("\n@M + stdout 0\nx\n@M - exit 0 124\n\n@M - stopped 0\n\n@M - stopped 7\n\n@M - end\n", "")
	f.Add("\n@M + ports\nLISTEN 0 1 *:22 *:* users:((\"\x1b\",pid=-3\n\n@M + link\n/etc/a\n\x1b[2J\n@M - entries -4\n\n@M + addresses\n1: e inet 10.0.0.1/8\n\n@M - end\n", "")
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		o := newObservation(asked(), true)
		o.prefix = "P"
		a := newAnswer(o)
		frames := newFrameReader(strings.NewReader(stdout), "M", 1000)
		for {
			got, err := frames.read()
			if err != nil || got.kind() == "end" {
				break
			}
			a.add(got)
		}
		commands, _ := commandErrors(strings.NewReader(stderr), "M", 1)
		for _, got := range commands {
			a.add(got)
		}
		facts := a.finish(time.Unix(1_700_000_000, 0))
		if _, err := json.Marshal(facts); err != nil {
			t.Error(err)
		}
		s := &facts.System
		words := []string{s.Hostname, s.OSID, s.OSVersion, s.OSName, s.Arch, s.Kernel, s.Container, s.DefaultInterface}
		for _, list := range [][]string{s.Addresses, s.HostnameAddresses, s.Nameservers, s.UpstreamNameservers} {
			words = append(words, list...)
		}
		for _, u := range facts.Units {
			words = append(words, u.Load, u.Active, u.Sub, u.File)
		}
		for _, l := range facts.Ports {
			words = append(words, l.Process)
		}
		for _, word := range words {
			if len(word) > maxVersion || !utf8.ValidString(word) || strings.ContainsAny(word, "\x00\x1b\n\u009b") {
				t.Errorf("%q", word)
			}
		}
		if s.CPUs < 0 || s.MemoryBytes < 0 || s.DiskFreeBytes < 0 || s.DiskTotalBytes < 0 {
			t.Errorf("negative: %+v", s)
		}
		if len(facts.Paths) > 2 || len(facts.Packages) > 1 || len(facts.Modules) > 2 || len(facts.Ports) > 2 || len(facts.Commands) > 1 {
			t.Error("there is more in the facts than was asked for")
		}
	})
}

// FuzzOSRelease: os-release(5).
func FuzzOSRelease(f *testing.F) {
	f.Add("ID=debian\nVERSION_ID=\"12\"\n# x=y\nPRETTY_NAME='a b'\n")
	f.Fuzz(func(t *testing.T, content string) {
		for key, value := range assignments([]byte(content)) {
			if strings.ContainsAny(key+value, "\n") {
				t.Errorf("%q=%q", key, value)
			}
		}
	})
}

// FuzzAct: what a host says of acts and undos never ends in a panic, and errors and events are printable.
func FuzzAct(f *testing.F) {
	f.Add("\n@M - record 1 r n t gone file /a ;\n\n@M + failed 0 7\nboom \x1b[31m\n@M - undone 1\n\n@M - end 1\n")
	f.Add("\n@M - timeout 0\n\n@M + failed -1 9999999999999999999\n\n@M - kept 1\n\n@M - later 1\n\n@M - forgotten\n\n@M - end\n")
	f.Fuzz(func(t *testing.T, answer string) {
		e := entry{seq: 1, run: "r", node: "n\x1b", task: "t", kind: "gone", word: "file", target: "/a\x1b]0;x\a"}
		s := &session{host: New(nil, Config{Name: "h"}), logs: &logs{entries: []entry{e}, journal: map[string]host.JournalEntry{}}}
		act := host.Act{Node: "n", Task: "t", Digest: "d", Changes: []host.Change{host.Command{Title: "c", Argv: []string{"x"}}}}
		acts := &actReader{session: s, acts: []host.Act{act}, answer: newAnswer(newObservation(asked(), false))}
		check := func(err error) {
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\a\x00") {
				t.Errorf("%q", err)
			}
		}
		undos := &undoReader{session: s, byNumber: map[int]undoing{1: {entry: e}}, report: func(u host.Undone) {
			check(u.Err)
			if strings.ContainsAny(u.Key+u.Node, "\x1b\a\x00") {
				t.Errorf("%q %q", u.Key, u.Node)
			}
		}}
		frames := newFrameReader(strings.NewReader(answer), "M", 1000)
		for {
			got, err := frames.read()
			if err != nil {
				break
			}
			check(acts.take(got))
			check(undos.take(got))
		}
		check(acts.failed)
		for _, failure := range undos.failures {
			check(failure)
		}
	})
}
