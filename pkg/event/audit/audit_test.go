// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestAct(t *testing.T) {
	log, clock := Open(filepath.Join(t.TempDir(), "audit")), clocktesting.NewFakePassiveClock(noon)
	act, err := log.Begin("1", Entry{User: "alice", Action: "create cluster", Arguments: []string{"create", "cluster"}}, clock)
	if err != nil {
		t.Fatal(err)
	}
	act.Read(event.Event{Type: event.RunEnded, Intent: "Check", Cluster: "prod"}) // changes nothing, so it is no part of the record
	act.Read(event.Event{Type: event.Changed, Intent: "JoinWorker", Cluster: "prod"})
	act.Read(event.Event{
		Time: noon, Type: event.RunEnded, Intent: "JoinWorker", Pipeline: "p1", Cluster: "prod", Plan: "sha256:aa", Hosts: []string{"w1"}, Done: 41,
	})
	act.Read(event.Event{Type: event.RunEnded, Intent: "JoinWorker", Cluster: "prod", Hosts: []string{"w2"}, Err: errors.New("disk full")})
	clock.SetTime(noon.Add(3 * time.Second))
	if err := act.End(fmt.Errorf("stopped: %w", context.Canceled)); err != nil {
		t.Fatal(err)
	}
	entries, err := log.Read()
	if err != nil {
		t.Fatal(err)
	}
	acts := Summaries(entries)
	if len(acts) != 1 {
		t.Fatalf("%d acts", len(acts))
	}
	s := acts[0]
	got := fmt.Sprint(s.Started.User, " ", s.Started.Action, " ", s.Clusters(), s.Hosts(), s.Changed(), " ", s.Outcome(), " ", s.Duration())
	if want := "alice create cluster [prod] [w1 w2] 41 Canceled 3s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.Runs[1].Outcome != Failed || s.Runs[1].Message != "disk full" || s.Runs[0].Plan != "sha256:aa" {
		t.Errorf("runs: %+v", s.Runs)
	}
}

// An act that was killed has no end, and is shown as such.
func TestKilled(t *testing.T) {
	log := Open(t.TempDir())
	if _, err := log.Begin("1", Entry{User: "bob"}, clocktesting.NewFakePassiveClock(noon)); err != nil {
		t.Fatal(err)
	}
	entries, err := log.Read()
	if err != nil {
		t.Fatal(err)
	}
	if acts := Summaries(entries); len(acts) != 1 || acts[0].Ended != nil || acts[0].Outcome() != "" {
		t.Errorf("%+v", acts)
	}
}

func TestChangedRecordIsNoticed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(lines []string) []string
		// line is the first that is wrong, and entries are how many can be read all the same.
		line, entries int
	}{
		"changed":   {func(lines []string) []string { lines[1] = strings.Replace(lines[1], "act-1", "act-9", 1); return lines }, 3, 4},
		"removed":   {func(lines []string) []string { return slices.Delete(lines, 1, 2) }, 2, 3},
		"inserted":  {func(lines []string) []string { return slices.Insert(lines, 1, lines[0]) }, 2, 5},
		"reordered": {func(lines []string) []string { lines[1], lines[2] = lines[2], lines[1]; return lines }, 2, 4},
		"no JSON":   {func(lines []string) []string { lines[2] = "{"; return lines }, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			log := Open(t.TempDir())
			for i := range 4 {
				appendTo(t, log, i)
			}
			path := filepath.Join(log.dir, current)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := tc.change(strings.Split(strings.TrimSpace(string(content)), "\n"))
			if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			entries, err := log.Read()
			var tampered *TamperedError
			if !errors.As(err, &tampered) {
				t.Fatalf("got %v", err)
			}
			if len(entries) != tc.entries || tampered.Line != tc.line {
				t.Errorf("%d entries, and %v", len(entries), err)
			}
		})
	}
}

// Processes append to one record; the digests stay in order.
func TestManyAppend(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			log := Open(dir) // as another process would
			for i := range 10 {
				if err := log.Append(Entry{Timestamp: noon, Phase: Ran, Act: fmt.Sprint(p, "-", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if entries, err := Open(dir).Read(); err != nil || len(entries) != 80 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestRotation(t *testing.T) {
	log := Open(t.TempDir())
	log.rotateAt = 300
	for i := range 100 {
		appendTo(t, log, i)
	}
	files, err := log.files()
	if err != nil || len(files) != keepFiles+1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	entries, err := log.Read() // across files, the oldest of which do not begin the record
	if err != nil {
		t.Fatal(err)
	}
	if last := entries[len(entries)-1].Act; last != "act-99" {
		t.Errorf("the last act is %s", last)
	}
	if diff := cmp.Diff("act-"+fmt.Sprint(100-len(entries)), entries[0].Act); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(files[3]); err != nil {
		t.Fatal(err)
	}
	var tampered *TamperedError
	if _, err := log.Read(); !errors.As(err, &tampered) {
		t.Errorf("a file in the middle was removed, and the error is %v", err)
	}
}

// The machine went down while a line was written: it is no entry, and that shows, but later entries follow it.
func TestTornLine(t *testing.T) {
	log := Open(t.TempDir())
	appendTo(t, log, 0)
	f, err := os.OpenFile(filepath.Join(log.dir, current), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"timestamp":"2026`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, log, 1)
	var tampered *TamperedError
	all, err := log.Read()
	if !errors.As(err, &tampered) || tampered.Line != 2 {
		t.Errorf("got %v", err)
	}
	if len(all) != 2 || all[1].Act != "act-1" {
		t.Errorf("what was written afterwards is not read: %v", all)
	}
	content, err := os.ReadFile(filepath.Join(log.dir, current))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(content)), "\n"); len(lines) != 3 || !strings.Contains(lines[2], "act-1") {
		t.Errorf("%q", lines)
	}
}

func appendTo(t *testing.T, log *Log, i int) {
	t.Helper()
	at := noon.Add(time.Duration(i) * time.Second)
	if err := log.Append(Entry{Timestamp: at, Phase: Started, Act: fmt.Sprint("act-", i)}); err != nil {
		t.Fatal(err)
	}
}
