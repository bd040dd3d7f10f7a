// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// Process runs on the host that is recorded.
type Process struct {
	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader
	// Wait returns the exit code once both outputs were read to their ends.
	Wait func() (int, error)
}

// Start runs a command on the host that is recorded.
type Start func(command string) (*Process, error)

// speaker answers in a channel's place.
type speaker interface {
	// first answers the script that the process begins with, next one that comes later in a session.
	first(script string) (turn, error)
	next(script string) (turn, error)
	// stream takes what comes to its end and then answers.
	stream(in io.Reader) (turn, error)
	// rest is what the process says when it is told nothing more.
	rest() (turn, error)
}

// What is remembered beside the answers to scripts hangs on the script that the process began with.
const afterStream, atEnd = "\x00stream", "\x00rest"

// recorder passes everything on to a real process and keeps what that says.
type recorder struct {
	memory  *Memory
	names   names
	process *Process
	out     *bufio.Reader
	stderr  chan string
	// opening is the question that the process began with.
	opening string
}

func newRecorder(m *Memory, host string, p *Process) *recorder {
	r := &recorder{memory: m, names: names{host: host}, process: p, out: bufio.NewReader(p.Stdout), stderr: make(chan string, 1)}
	go func() {
		said, _ := io.ReadAll(p.Stderr) // what could be read counts
		r.stderr <- string(said)
	}()
	return r
}

func (r *recorder) first(script string) (turn, error) {
	r.names.learn(script, true)
	r.opening = r.names.question(script)
	return r.ask(r.opening, script)
}

func (r *recorder) next(script string) (turn, error) {
	r.names.learn(script, false)
	return r.ask(r.names.question(script), script)
}

func (r *recorder) ask(question, script string) (turn, error) {
	if err := writeScript(r.process.Stdin, script); err != nil {
		return turn{}, err
	}
	return r.listen(question)
}

func (r *recorder) stream(in io.Reader) (turn, error) {
	if _, err := io.Copy(r.process.Stdin, in); err != nil {
		return turn{}, err
	}
	return r.listen(r.opening + afterStream)
}

func (r *recorder) rest() (turn, error) {
	_ = r.process.Stdin.Close() // a process that has ended needs none
	return r.listen(r.opening + atEnd)
}

// listen reads one turn and keeps it.
func (r *recorder) listen(question string) (turn, error) {
	t, err := r.read()
	if err != nil {
		return t, err
	}
	kept := t
	kept.stdout, kept.stderr = r.names.general(t.stdout), r.names.general(t.stderr)
	r.memory.keep(question, kept)
	return t, nil
}

func (r *recorder) read() (turn, error) {
	var said strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		said.WriteString(line)
		if words := strings.Fields(line); err == nil && len(words) > 2 && words[0] == "@"+r.names.mark && words[1] == "-" && ends(words[2]) {
			return turn{stdout: said.String(), kind: words[2]}, nil
		}
		if errors.Is(err, io.EOF) {
			t := turn{stdout: said.String(), stderr: <-r.stderr}
			t.code, err = r.process.Wait()
			return t, err
		}
		if err != nil {
			return turn{}, err
		}
	}
}

// ends reports whether a line of this kind is the last before the other side speaks, or the process ends.
func ends(kind string) bool { return kind == "begun" || kind == "ready" || kind == "end" }

// player answers from memory.
type player struct {
	memory *Memory
	names  names
	// asked counts questions, for the whole host.
	asked   *counter
	opening string
}

func (p *player) first(script string) (turn, error) {
	p.names.learn(script, true)
	p.opening = p.names.question(script)
	return p.recall(p.opening)
}

func (p *player) next(script string) (turn, error) {
	p.names.learn(script, false)
	return p.recall(p.names.question(script))
}

func (p *player) stream(in io.Reader) (turn, error) {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return turn{}, err
	}
	return p.recall(p.opening + afterStream)
}

func (p *player) rest() (turn, error) { return p.recall(p.opening + atEnd) }

func (p *player) recall(question string) (turn, error) {
	t, err := p.memory.recall(question, p.asked.next(question))
	t.stdout, t.stderr = p.names.special(t.stdout), p.names.special(t.stderr)
	return t, err
}
