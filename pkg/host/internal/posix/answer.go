// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// actReader takes the frames of acts.
type actReader struct {
	session *session
	acts    []host.Act
	// done is how many of them are; now is when they were journaled.
	done   int
	now    time.Time
	answer *answer
	// timeout and killed are what the host says of a failure before it names it.
	timeout, killed bool
	failed          error
}

func (r *actReader) take(f frame) error {
	switch f.kind() {
	case "record":
		return r.session.noteRecord(f)
	case "did":
		if r.done == len(r.acts) || r.failed != nil {
			return r.session.host.unexpected(f)
		}
		r.session.did(r.acts[r.done], r.now)
		r.done++
		return nil
	case "timeout":
		r.timeout = true
		return nil
	case "killed":
		r.killed = true
		return nil
	case "failed":
		if r.failed == nil {
			r.failed = r.failure(f)
		}
		return nil
	}
	if !r.answer.add(f) {
		return r.session.host.unexpected(f)
	}
	return nil
}

// noteRecord adds what the host has recorded to what we know of its log.
func (s *session) noteRecord(f frame) error {
	fields := f.words[1:]
	if len(fields) == 0 || fields[len(fields)-1] != lineEnd {
		return s.host.unexpected(f)
	}
	e, err := parseEntry(fields[:len(fields)-1])
	if err != nil {
		return s.host.damaged(err)
	}
	s.logs.entries = append(s.logs.entries, e)
	s.logs.lastSeq = max(s.logs.lastSeq, e.seq)
	return nil
}

// failure is the error of the change that frame "failed" names.
func (r *actReader) failure(f frame) error {
	key, message := "", "cannot record that the act is done"
	var act host.Act
	if r.done < len(r.acts) {
		act = r.acts[r.done]
	}
	if i := int(parseInt(f.arg(1))); i >= 0 && i < len(act.Changes) {
		key, message = act.Changes[i].Key(), "the change failed"
		if c, ok := act.Changes[i].(host.Command); ok && len(c.Argv) > 0 {
			message = c.Argv[0] + " failed"
		}
	}
	code := int(parseInt(f.arg(2)))
	output := redact(strings.TrimSpace(string(f.body)), secrets(act))
	e := r.session.host.commandError(key, message, code, output)
	switch {
	case r.timeout:
		e.Kind, e.Message = host.KindTimeout, "took longer than its timeout and was stopped"
	case r.killed && e.Kind == host.KindCommand:
		e.Message = "was killed (SIGKILL) from outside"
		e.Remedy = "if the kernel did it for want of memory (see dmesg on the host), give the host more"
	case e.Kind == host.KindCommand && key == host.Package{}.Key():
		e.Remedy = packageRemedy(output)
	}
	return e
}

// packageRemedy says what to do when packages cannot be installed, by what apt says in the C locale; "" where it says something else.
func packageRemedy(output string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(output, w) })
	}
	switch {
	case has("Unable to locate package", "Unable to fetch", "Failed to fetch", "has no installation candidate"):
		return "no package source that the host reaches gives it, nor does the bundle: let the host reach a mirror of its distribution, or make " +
			"the bundle with it (kubexm bundle create --os ID/VERSION_ID --os-package NAME, by ID and VERSION_ID of the host's /etc/os-release)"
	case has("unmet dependencies"):
		return "packages that the host has do not fit those that are to come: bring the host up to date, or make the bundle anew"
	}
	return ""
}

// maxName is how much of a name or a line that a host has sent is shown in a message, in bytes.
const maxName = 512

// maxOutput is how much of a command's output an error holds, in bytes.
const maxOutput = 4 << 10

// commandError is the error of something that failed on the host. Tools have no other way than words (in the C locale) to
// tell that the disk is full.
func (h *Host) commandError(change, message string, code int, output string) *host.Error {
	if over := len(output) - maxOutput; over > 0 {
		output = "… " + output[over:]
	}
	output = strings.TrimSpace(host.Text(output, 3*maxOutput+8)) // what is not UTF-8 grows
	e := &host.Error{Kind: host.KindCommand, Host: h.Name(), Change: change, Message: message, Output: output, ExitCode: code}
	if full(output) {
		e.Kind, e.Message = host.KindDiskFull, "the disk is full"
		e.Remedy = "free space on the host; what is done stays, and the next attempt goes on from there"
		return e
	}
	if line := lastLine(output); line != "" {
		e.Message += ": " + host.Word(line, maxName)
	} else if code != 0 {
		e.Message += " with exit code " + strconv.Itoa(code)
	}
	return e
}

// full reports whether a command has failed for want of space. The C library and Go's spell it differently; inotify says the
// same of something else.
func full(output string) bool {
	output = strings.ToLower(output)
	return (strings.Contains(output, "no space left on device") || strings.Contains(output, "disk quota exceeded")) &&
		!strings.Contains(output, "inotify")
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
