// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Undecided is the error of a Precheck that has no answer to decide from. It is neither so nor not so: a host that is slow has not
// drifted, and nothing may be run for it.
type Undecided struct {
	// Check is the command that was to tell, in few words.
	Check string
	// After is the deadline at which it was stopped; 0 if it has ended, and says itself that it cannot tell.
	After time.Duration
	// Said is the last that it said, or "".
	Said string
}

// Error says which check, and why it is no answer.
func (u *Undecided) Error() string {
	text := "it cannot be determined whether this is so: the check \"" + u.Check + "\" "
	if u.After > 0 {
		text += fmt.Sprintf("did not end within %s and was stopped", u.After)
	} else {
		text += "cannot tell"
	}
	if u.Said != "" {
		text += ": " + u.Said
	}
	return text
}

// Remedy says what to do.
func (u *Undecided) Remedy() string {
	if u.After > 0 {
		return "nothing was changed for it, and it is observed again. If it stays so, see what the host is busy with or what hangs there " +
			"(load, a full or slow disk, a daemon that does not answer: ps -eo stat,wchan,etime,args), or run the check there by hand"
	}
	return "nothing was changed for it, and it is observed again. If it stays so, repair what the check names"
}

// CannotTell is the exit code by which a Done's Check says that it cannot tell (EX_TEMPFAIL of sysexits.h). Its output says why.
const CannotTell = 75

// answerTo is what a command that only looks said, the zero Result if it was not asked. The error, *Undecided, says that it was
// stopped, so that nothing of it counts.
func answerTo(v View, q host.CommandQuery) (host.Result, error) {
	r, asked := v.Facts.Commands[q.ID]
	if !asked {
		return host.Result{ExitCode: -1}, nil
	}
	if r.Stopped > 0 {
		return r, &Undecided{Check: shortOf(q.Argv), After: r.Stopped, Said: said(r)}
	}
	return r, nil
}

// said is the first line that a check printed.
func said(r host.Result) string {
	const most = 300
	line, _, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), "\n")
	return host.Word(strings.TrimSpace(line), most)
}

// shortOf is a command in one line. What is long, such as a script, and the environment before it are left out.
func shortOf(argv []string) string {
	const longestWord, most = 60, 120
	if len(argv) > 0 && argv[0] == "/usr/bin/env" {
		argv = argv[1:]
		for len(argv) > 1 && strings.Contains(argv[0], "=") {
			argv = argv[1:]
		}
	}
	var words []string
	for _, w := range argv {
		if len(w) > longestWord || strings.ContainsAny(w, "\n") {
			w = "…"
		}
		if n := len(words); n > 0 && w == "…" && words[n-1] == w {
			continue
		}
		words = append(words, w)
	}
	return host.Word(strings.Join(words, " "), most)
}
