// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
)

// TestQuestionIsNotDrawnOver: what happens while a person is asked is shown afterwards, in order, and nothing is lost.
func TestQuestionIsNotDrawnOver(t *testing.T) {
	var shown []string
	d := &deferred{next: event.ReaderFunc(func(e event.Event) { shown = append(shown, e.Host) })}
	d.Read(event.Event{Host: "a"})
	d.Read(event.Event{Host: "b"})
	if len(shown) > 0 {
		t.Fatalf("shown beside the question: %v", shown)
	}
	d.show()
	d.Read(event.Event{Host: "c"})
	d.show()
	if !slices.Equal(shown, []string{"a", "b", "c"}) {
		t.Errorf("shown: %v", shown)
	}
}

// TestJSONLines: for programs, each line on standard error is an object, whatever is said.
func TestJSONLines(t *testing.T) {
	for _, c := range []struct {
		say  func(*app)
		want []said
		text string
	}{
		{func(a *app) { a.note(" a note") }, []said{{Level: "info", Message: "a note"}}, " a note\n"},
		{func(a *app) { a.warn("it <is> old\nrenew it") }, []said{{Level: "warn", Message: "it <is> old\nrenew it"}}, "Warning: it <is> old\nrenew it\n"},
		{func(a *app) { a.explain(errors.New("it failed"), exitFailed) }, []said{{Level: "error", Message: "it failed"}}, "Error: it failed\n"},
		{func(a *app) { a.explain(context.Canceled, exitInterrupted) },
			[]said{{Level: "error", Message: "Interrupted. Completed steps are kept; the next run resumes."}},
			"Interrupted. Completed steps are kept; the next run resumes.\n"},
		{func(a *app) { a.showRan(ran{Host: "node1", ExitCode: 1, Stderr: "no\n"}) },
			[]said{{Level: "info", Message: "node1: no"}, {Level: "error", Message: "node1: exit code 1"}}, "node1: no\nnode1: exit code 1\n"},
		{func(a *app) {
			old := preflight.Problem{Host: "node1", Check: "os", Severity: preflight.Warning, Cause: "it is old", Remedy: "renew it"}
			a.showPreflight([]preflight.Problem{old}, 1, 1)
		}, []said{{Level: "info", Message: "preflight   1/1 hosts ok   1 warning:"}, {Level: "warn", Message: "node1: os: it is old (renew it)"}},
			" preflight   1/1 hosts ok   1 warning:\n   node1: os: it is old (renew it)\n"},
		{func(a *app) {
			if err := a.noteTurns([]turn{{Turn: "1", Host: "cp1", Role: "control plane", From: "v1.35.4", To: "v1.36.3", How: "drained"}}); err != nil {
				t.Error(err)
			}
		}, []said{{Level: "info", Message: "turn 1: cp1 (control plane) from v1.35.4 to v1.36.3: drained"}}, ""},
	} {
		var text, lines bytes.Buffer
		c.say(&app{Streams: Streams{Err: &text, Out: io.Discard}, logFormat: "text"})
		if c.text != "" && text.String() != c.text {
			t.Errorf("got %q, want %q", &text, c.text)
		}
		c.say(&app{Streams: Streams{Err: &lines, Out: io.Discard}, logFormat: formatJSON})
		var got []said
		for line := range strings.Lines(lines.String()) {
			var one said
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Errorf("%v: %q", err, line)
			}
			if one.Timestamp == "" {
				t.Errorf("there is no time: %s", line)
			}
			one.Timestamp = ""
			got = append(got, one)
		}
		if len(got) != len(c.want) {
			t.Errorf("got %+v, want %+v", got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("got %+v, want %+v", got[i], c.want[i])
			}
		}
		lines.Reset()
		a := &app{Streams: Streams{Err: &lines}, logFormat: formatJSON, quiet: true}
		a.note("a note")
		a.warn("it is old")
		if lines.Len() > 0 {
			t.Errorf("it was to be quiet: %s", &lines)
		}
	}
}

// TestConfirmIsInterrupted: who interrupts a command that asks has no need to answer, and what was answered does not count.
func TestConfirmIsInterrupted(t *testing.T) {
	for name, in := range map[string]func() io.Reader{
		"nobody answers": func() io.Reader {
			silent, open := io.Pipe()
			t.Cleanup(func() { _ = open.Close() })
			return silent
		},
		"yes": func() io.Reader { return strings.NewReader("y\n") },
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		a := &app{Streams: Streams{In: in(), Err: writer(func([]byte) { interrupt() }), Interactive: true}} // while it asks
		err := a.confirm(ctx, "All will be deleted.")
		if !errors.Is(err, context.Canceled) || exitCode(ctx, err) != exitInterrupted {
			t.Errorf("%s: %v, exit code %d", name, err, exitCode(ctx, err))
		}
	}
}

// writer is called with what is written.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
