// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// greeting is what our shell says first, so that a refused sudo and a failed script can be told apart.
const greeting = "kubexm"

// boot is the whole of what our processes show in a process list: read the length of a script, then the script. That some
// heads read ahead of what they print does not matter, because nothing more is sent before the script has answered.
const boot = `sh -c 'echo ` + greeting + `; IFS= read -r n && eval "$(head -c "$n")"'`

// maxTail is how much of standard error is kept, in bytes.
const maxTail = 8 << 10

// process is a shell on the host that runs as root.
type process struct {
	Process
	host *Host
	// out is standard output after the greeting.
	out    *bufio.Reader
	stderr *tail
	// errDone is closed when standard error has been read to its end.
	errDone chan struct{}
	greeted time.Time
	refused bool // sudo asked for the password a second time; to be read after errDone
	waited  sync.Once
	code    int
	lost    error
}

// start starts a shell as root and gives it the script. onStderr, if not nil, gets standard error besides the tail. When
// ctx ends before the shell has greeted us, the process is given up.
func (h *Host) start(ctx context.Context, script string, onStderr func(io.Reader)) (*process, error) {
	command, prompt := "exec "+boot, ""
	switch {
	case h.config.Sudo && !h.config.SudoPassword.IsZero():
		prompt = "kubexm-" + newMark()
		command = "exec sudo -S -p " + prompt + " -- " + boot
	case h.config.Sudo:
		command = "exec sudo -n -- " + boot
	}
	if ctx.Err() != nil {
		return nil, h.canceled(ctx)
	}
	started, err := h.transport.Start(ctx, command)
	if err != nil {
		if ctx.Err() != nil {
			return nil, h.canceled(ctx)
		}
		return nil, h.fail(err)
	}
	h.stats.exchanges.Add(1)
	p := &process{
		Process: started, host: h,
		out:    bufio.NewReader(countingReader{started.Stdout(), &h.stats.received}),
		stderr: &tail{limit: maxTail}, errDone: make(chan struct{}),
	}
	stop := context.AfterFunc(ctx, func() { _ = started.Close() })
	defer stop()
	go p.readStderr(prompt, onStderr)
	send := func() error { return p.submit(script) }
	// With a password to give, what is sent too early would be taken for one.
	if prompt == "" && send() != nil {
		return nil, p.failure(ctx, false)
	}
	if err := p.greet(); err != nil {
		var over *excess
		if errors.As(err, &over) {
			_ = p.Close()
			return nil, h.overflows(over)
		}
		return nil, p.failure(ctx, false)
	}
	if prompt != "" && send() != nil {
		return nil, p.failure(ctx, true)
	}
	return p, nil
}

// Write counts what is sent.
func (p *process) Write(b []byte) (int, error) {
	n, err := p.Process.Write(b)
	p.host.stats.sent.Add(int64(n))
	return n, err
}

// submitPiece is how much of a script is sent at once, in bytes. x/crypto keeps as much for each channel that it was sent.
const submitPiece = 8 << 10

// submit sends a script after its length.
func (p *process) submit(script string) error {
	if _, err := p.Write([]byte(strconv.Itoa(len(script)) + "\n")); err != nil {
		return err
	}
	buffer := make([]byte, min(submitPiece, len(script)))
	for sent := 0; sent < len(script); {
		n := copy(buffer, script[sent:])
		if _, err := p.Write(buffer[:n]); err != nil {
			return err // the buffer may be read from
		}
		sent += n
	}
	return nil
}

// said is the end of what the process has printed to standard error, without the password.
func (p *process) said() string {
	return host.Text(redact(p.stderr.String(), []secret.Value{p.host.config.SudoPassword}), 3*maxTail)
}

// greet reads up to the greeting; what login shells print before it is dropped.
func (p *process) greet() error {
	for read := 0; ; {
		line, err := p.out.ReadSlice('\n')
		if read += len(line); read > maxGreeting {
			return &excess{"its login shell prints more than " + strconv.Itoa(maxGreeting>>20) + " MiB"}
		}
		if strings.TrimRight(string(line), "\r\n") == greeting {
			p.greeted = time.Now()
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// readStderr keeps the end of standard error and answers sudo's prompt. A second prompt means that the password is wrong.
func (p *process) readStderr(prompt string, onStderr func(io.Reader)) {
	defer close(p.errDone)
	var stderr io.Reader = countingReader{p.Stderr(), &p.host.stats.received}
	if prompt != "" {
		asked := 0
		stderr = &promptReader{in: stderr, prompt: prompt, asked: func() {
			if asked++; asked > 1 {
				p.refused = true
				_ = p.Close()
				return
			}
			// A failed write shows as the end of the process.
			_, _ = p.Write(append(p.host.config.SudoPassword.Reveal(), '\n'))
		}}
	}
	stderr = io.TeeReader(stderr, p.stderr)
	if onStderr != nil {
		onStderr(stderr)
	}
	// An error here is one of the process, which Wait tells. Most say nothing, and io.Discard would hold a buffer for it meanwhile.
	var err error
	for piece := make([]byte, 512); err == nil; {
		_, err = stderr.Read(piece)
	}
}

// end waits until the process has ended and returns its exit code, or why it was lost.
func (p *process) end() (int, error) {
	p.waited.Do(func() {
		_, _ = io.Copy(io.Discard, p.out)
		<-p.errDone
		p.code, p.lost = p.Wait()
		_ = p.Close()
	})
	return p.code, p.lost
}

// unread says why an answer could not be read to its end: err is the reader's.
func (p *process) unread(ctx context.Context, err error) error {
	var over *excess
	if !errors.As(err, &over) {
		return p.failure(ctx, true)
	}
	_ = p.Close() // whatever it goes on to say
	return p.host.overflows(over)
}

// overflows is the error of a host that says more than it was asked for.
func (h *Host) overflows(over *excess) error {
	return &host.Error{Kind: host.KindProtocol, Host: h.Name(), Remedy: remedyProtocol,
		Message: "the host's answer exceeds its bounds and was given up: " + over.what}
}

// failure says why a process ended before its answer was complete. One that ends its output and goes on is not waited for.
func (p *process) failure(ctx context.Context, greeted bool) error {
	_ = p.CloseWrite()
	grace := time.AfterFunc(p.host.config.StopGrace, func() { _ = p.Close() })
	defer grace.Stop()
	code, lost := p.end()
	user := p.host.config.User
	e := &host.Error{
		Host: p.host.Name(), ExitCode: code,
		Output: p.said(),
	}
	switch {
	case p.refused:
		e.Kind, e.Message = host.KindPrivilege, "sudo refuses the password given for user "+user
		e.Remedy = "give the password that sudo asks of " + user
	case ctx.Err() != nil:
		return p.host.canceled(ctx)
	case lost != nil:
		return p.host.fail(lost)
	case p.host.config.Sudo && !greeted && code == 127:
		e.Kind, e.Message = host.KindPrivilege, "there is no sudo on the host"
		e.Remedy = "install sudo, or log in as root"
	case p.host.config.Sudo && !greeted:
		e.Kind, e.Message = host.KindPrivilege, "sudo is refused for user "+user
		e.Remedy = "add \"" + user + " ALL=(ALL:ALL) NOPASSWD:ALL\" to the host's sudoers, or give the become password"
	default:
		e.Kind, e.Message = host.KindProtocol, "the shell on the host ended before it had answered"
	}
	return e
}

// fail makes err, from the transport, an *Error if it is none yet.
func (h *Host) fail(err error) error {
	var e *host.Error
	if errors.As(err, &e) {
		return err
	}
	return &host.Error{Kind: host.KindUnreachable, Host: h.Name(), Message: "the connection is lost", Err: err}
}

// canceled is the error of an operation whose context ended.
func (h *Host) canceled(ctx context.Context) error {
	e := &host.Error{Kind: host.KindTimeout, Host: h.Name(), Message: "stopped", Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Message = "stopped, because its time was over"
	}
	return e
}
