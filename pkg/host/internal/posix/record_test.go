// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

func TestEntryRoundTrip(t *testing.T) {
	want := entry{seq: 7, run: "run 1", node: "a/b", task: "", kind: "meta", word: "file", target: "/etc/it's; here %2F", data: []string{"0640", "-", ""}}
	logs, err := parseLogs(nil, []byte(want.line()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]entry{want}, logs.entries, cmp.AllowUnexported(entry{})); d != "" {
		t.Error(d)
	}
}

func TestLogs(t *testing.T) {
	first := entry{seq: 1, run: "r1", node: "n1", task: "t", kind: "gone", word: "file", target: "/a"}
	second := entry{seq: 2, run: "r1", node: "n1", task: "t", kind: "kept", word: "path", target: "/b"}
	again := entry{seq: 4, run: "r2", node: "n2", task: "t", kind: "kept", word: "path", target: "/b"}
	undo := first.line() + "\n" + second.line() + "+ 3 r1 n1 t gone file /torn" + "\n" + again.line() + "\n- 1 ;\n- 4" // the last line is torn, too
	at := time.Unix(1700000000, 5).UTC()
	journal := "\n" + journalLine("n1", host.JournalEntry{Run: "r1", Digest: "sha256:x", Time: at}) + "\n" +
		journalLine("n2", host.JournalEntry{Run: "r1", Digest: "old", Time: at}) + "\n" +
		journalLine("n2", host.JournalEntry{Run: "r2", Digest: "new", Time: at}) + "\n" +
		journalLine("gone", host.JournalEntry{Run: "r1", Time: at}) + "\n~ gone ;\n* torn r1 d"
	logs, err := parseLogs([]byte(journal), []byte(undo))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]entry{second, again}, logs.entries, cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("entries:\n%s", d)
	}
	if d := cmp.Diff(map[string]host.JournalEntry{
		"n1": {Run: "r1", Digest: "sha256:x", Time: at}, "n2": {Run: "r2", Digest: "new", Time: at},
	}, logs.journal); d != "" {
		t.Errorf("journal:\n%s", d)
	}
	compacted, err := parseLogs([]byte(logs.journalLines()), []byte(logs.undoLines()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(logs, compacted, cmp.AllowUnexported(entry{}, *logs)); d != "" {
		t.Errorf("compacted:\n%s", d)
	}
	if logs.lastSeq != 4 {
		t.Errorf("last number %d", logs.lastSeq)
	}
	if got := logs.recorded("r1", "n1", "path", "/b"); got != 2 {
		t.Errorf("recorded %d", got)
	}
	if got := logs.recorded("r2", "n1", "path", "/b"); got != 0 {
		t.Errorf("recorded by another node: %d", got)
	}
	if got := strings.Join(logs.superseded("r2"), " "); got != "4 2" {
		t.Errorf("superseded %q", got)
	}
}

// What came with packages is said by the entry of the act that brought them alone: an earlier one may have failed, or brought others.
func TestPackagesAreNotSuperseded(t *testing.T) {
	logs := &logs{entries: []entry{
		{seq: 1, run: "r1", node: "n", kind: kindPackage, word: "packages", target: "jq"},
		{seq: 2, run: "r1", node: "n", kind: "gone", word: "file", target: "/a"},
		{seq: 3, run: "r2", node: "n", kind: kindPackage, word: "packages", target: "jq"},
		{seq: 4, run: "r2", node: "n", kind: "gone", word: "file", target: "/a"},
	}}
	if got := strings.Join(logs.superseded("r2"), " "); got != "4 -" {
		t.Errorf("superseded %q, want the file alone", got)
	}
}

// An entry of an earlier run stands for one of this run that would save the same, or less. Where the undo of the earlier one takes away
// what it keeps, that must be there still.
func TestSuperseded(t *testing.T) {
	file := func(kind string) entry { return entry{kind: kind, word: "file", target: "/a"} }
	unit := func(kind string) entry { return entry{kind: kind, word: "unit", target: "a.service"} }
	claim := func(kind string) entry { return entry{kind: kind, word: "claim", target: "/a"} }
	block := entry{kind: "block", word: "block", target: "b of /a"}
	for name, test := range map[string]struct {
		earlier []entry
		now     entry
		want    string
	}{
		"a file that was not there":            {[]entry{file("gone")}, file("kept"), "9 -"},
		"a file that is kept":                  {[]entry{file("kept")}, file("kept"), "9 1"},
		"mode and owner, by what says all":     {[]entry{file("kept")}, file("meta"), "9 1"},
		"mode and owner, by their like":        {[]entry{file("meta")}, file("meta"), "9 -"},
		"content, by mode and owner":           {[]entry{file("meta")}, file("kept"), ""},
		"content, by what came after the mode": {[]entry{file("meta"), file("kept")}, file("kept"), "9 2"},
		"a unit, by that it ran":               {[]entry{unit("left")}, unit("unit"), ""},
		"that a unit ran":                      {[]entry{unit("left")}, unit("left"), "9 -"},
		"that a unit ran, by all of it":        {[]entry{unit("unit")}, unit("left"), "9 -"},
		"a claim that keeps something":         {[]entry{claim("claimed_kept")}, claim("claimed_kept"), "9 1"},
		"a claim of what was not there":        {[]entry{claim("claimed_gone")}, claim("claimed_kept"), "9 -"},
		"a block":                              {[]entry{block}, block, "9 1"},
		"something else":                       {[]entry{file("kept")}, claim("claimed_kept"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			logs := &logs{}
			for i, e := range test.earlier {
				e.seq, e.run = i+1, "r1"
				logs.entries = append(logs.entries, e)
			}
			test.now.seq, test.now.run = 9, "r2"
			logs.entries = append(logs.entries, test.now)
			if got := strings.Join(logs.superseded("r2"), " "); got != test.want {
				t.Errorf("superseded %q, want %q", got, test.want)
			}
		})
	}
}

// A claim counts from whichever run, for as long as it has what it keeps.
func TestClaimed(t *testing.T) {
	claim := func(seq int, kind, target string) entry {
		return entry{seq: seq, run: "r1", node: "n", kind: kind, word: "claim", target: target}
	}
	logs := &logs{entries: []entry{
		claim(1, "claimed_kept", "/a"), claim(2, "claimed_kept", "/a"), claim(3, "claimed_empty", "/b"), claim(4, "claimed_kept", "/b"),
		{seq: 5, kind: "kept", word: "file", target: "/c"},
	}}
	for target, want := range map[string]string{"/a": "1 2", "/b": "-", "/c": ""} {
		if got := strings.Join(logs.claimed(target), " "); got != want {
			t.Errorf("%s is claimed by %q, want %q", target, got, want)
		}
	}
}

func FuzzLogs(f *testing.F) {
	f.Add("* n r d 1.5 ;\n", "+ 1 r n t gone file /a ;\n- 1 ;\n")
	f.Add("0 0 0 0 0 ", "- ;\n")
	f.Fuzz(func(t *testing.T, journal, undo string) {
		logs, err := parseLogs([]byte(journal), []byte(undo))
		if err != nil {
			return
		}
		for _, e := range logs.entries {
			back, err := parseLogs(nil, []byte(e.line()))
			if err != nil || len(back.entries) != 1 {
				t.Fatalf("entry %+v does not come back from %q: %v", e, e.line(), err)
			}
		}
	})
}
