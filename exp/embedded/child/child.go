// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// DefaultGrace is how long a child has to end by itself once it was asked to, when nothing else is said.
const DefaultGrace = 5 * time.Second

// Spec says what to run.
type Spec struct {
	// Name names the child in errors, its log and its lock: "etcd".
	Name string
	// Path of the program.
	Path string
	Args []string
	// Env is the child's whole environment. Nothing is inherited.
	Env []string
	// Dir is the child's working directory. Its log and its lock are here too. It must exist.
	Dir string
	// Grace is how long after SIGTERM comes SIGKILL; 0 is DefaultGrace.
	Grace time.Duration
}

func (s Spec) grace() time.Duration {
	if s.Grace == 0 {
		return DefaultGrace
	}
	return s.Grace
}

// LogPath is the file that the child's output goes to.
func (s Spec) LogPath() string { return filepath.Join(s.Dir, s.Name+".log") }

// Process is a running child.
type Process struct {
	spec Spec
	pid  int
	log  *Log

	done chan struct{}
	err  error // why it ended; written before done is closed
}

// Start ends the child of the same name that an earlier process left in spec.Dir, if there is one, and starts spec.
// ctx limits the starting; the child lives until Stop.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	lock, err := takeOver(ctx, spec)
	if err != nil {
		return nil, err
	}
	// From here on the child alone holds the lock.
	defer lock.Close()

	log, err := OpenLog(spec.LogPath())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir, cmd.Env = spec.Dir, append([]string{}, spec.Env...) // nil would inherit
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = time.Second // a grandchild that holds the pipe must not keep Wait

	p := &Process{spec: spec, log: log, done: make(chan struct{})}
	started := make(chan error)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: start %s: %w", spec.Name, spec.Path, err)
	}
	if err := writePID(lock, p.pid); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", spec.Name, err), p.Stop(ctx))
	}
	return p, nil
}

// run is the child's life. The kernel sends the signal that is to follow a parent's death when the *thread* that forked
// ends, so this goroutine keeps its thread to itself until the child is gone.
func (p *Process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if err := cmd.Start(); err != nil {
		_ = p.log.Close()
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil

	err := cmd.Wait()
	_ = p.log.Close()
	p.err = &ExitError{Name: p.spec.Name, Log: p.spec.LogPath(), Cause: err}
	close(p.done)
}

// Name is that of its Spec.
func (p *Process) Name() string { return p.spec.Name }

// PID is the child's process id.
func (p *Process) PID() int { return p.pid }

// LogPath is the file that the child's output goes to.
func (p *Process) LogPath() string { return p.spec.LogPath() }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is nil while the child runs and an *ExitError afterwards, asked for or not.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop asks the child to end, kills it when the grace or ctx is over, and returns when it is gone. Of a child that has
// ended already, it does nothing.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(p.spec.grace())
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// signal reaches the child's whole process group. While run has not returned from Wait the group cannot be another's.
func (p *Process) signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(-p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%s: %v to process %d: %w", p.spec.Name, s, p.pid, err)
	}
	return nil
}

// ExitError says that a child has ended and why.
type ExitError struct {
	// Name of the child.
	Name string
	// Log is the file with what it wrote.
	Log string
	// Cause is Wait's error, nil for exit status 0.
	Cause error
}

// Error ends with the last lines of the child's log: they say why.
func (e *ExitError) Error() string {
	how := "exit status 0"
	if e.Cause != nil {
		how = e.Cause.Error()
	}
	return fmt.Sprintf("%s ended: %s%s", e.Name, how, Tail(e.Log))
}

func (e *ExitError) Unwrap() error { return e.Cause }
