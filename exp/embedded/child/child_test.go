// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/lockfile"
)

// modeEnv makes the test binary play a child, or the parent of one.
const modeEnv = "KUBEXM_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(modeEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "patient": // ends when asked to
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("up", len(os.Environ()))
		<-asked
	case "stubborn": // does not
		signal.Ignore(syscall.SIGTERM)
		never := make(chan os.Signal, 1) // which the runtime does not call a deadlock, as it would a select without cases
		signal.Notify(never, syscall.SIGUSR1)
		fmt.Println("up")
		<-never
	case "failing":
		for i := range 30 {
			fmt.Println("line", i)
		}
		fmt.Fprintln(os.Stderr, "no space left on device")
		os.Exit(3)
	case "parent":
		p, err := child.Start(context.Background(), spec("patient", os.Args[1]))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
}

func spec(mode, dir string) child.Spec {
	return child.Spec{Name: "part", Path: os.Args[0], Dir: dir, Env: []string{modeEnv + "=" + mode}, Grace: 10 * time.Second}
}

func start(t *testing.T, s child.Spec) *child.Process {
	t.Helper()
	p, err := child.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel() // kills at once
		_ = p.Stop(over)
	})
	return p
}

func waitUp(t *testing.T, p *child.Process) {
	t.Helper()
	eventually(t, func() bool {
		content, err := os.ReadFile(p.LogPath())
		return err == nil && strings.HasPrefix(string(content), "up")
	})
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStop(t *testing.T) {
	p := start(t, spec("patient", t.TempDir()))
	waitUp(t, p)
	if err := p.Err(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var exit *child.ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.Name != "part" || exit.Cause != nil {
		t.Errorf("after Stop: %v", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
	content, err := os.ReadFile(p.LogPath())
	if err != nil || string(content) != "up 1\n" {
		t.Errorf("log %q, %v; want the one variable that was given", content, err)
	}
}

func TestStopKills(t *testing.T) {
	s := spec("stubborn", t.TempDir())
	s.Grace = 50 * time.Millisecond
	p := start(t, s)
	waitUp(t, p)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("got %v", err)
	}
}

// TestStopContext has a grace that is longer than any test may take.
func TestStopContext(t *testing.T) {
	s := spec("stubborn", t.TempDir())
	s.Grace = time.Hour
	p := start(t, s)
	waitUp(t, p)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(over); err != nil {
		t.Fatal(err)
	}
}

func TestExitError(t *testing.T) {
	p := start(t, spec("failing", t.TempDir()))
	<-p.Done()
	message := p.Err().Error()
	for _, want := range []string{"part ended: exit status 3", p.LogPath(), "line 29", "no space left on device"} {
		if !strings.Contains(message, want) {
			t.Errorf("no %q in: %s", want, message)
		}
	}
	if strings.Contains(message, "line 9\n") {
		t.Errorf("the whole log is in: %s", message)
	}
}

func TestStartFails(t *testing.T) {
	s := spec("patient", t.TempDir())
	s.Path = filepath.Join(s.Dir, "missing")
	if _, err := child.Start(t.Context(), s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	// The lock is free again.
	s.Path = os.Args[0]
	waitUp(t, start(t, s))
}

// TestTakeOver starts over children that a process which is gone left behind.
func TestTakeOver(t *testing.T) {
	for mode, signal := range map[string]syscall.Signal{"patient": 0, "stubborn": syscall.SIGKILL} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			orphan := leaveBehind(t, mode, dir)
			s := spec("patient", dir)
			s.Grace = 200 * time.Millisecond
			p := start(t, s)
			err := orphan.Wait()
			if status := orphan.ProcessState.Sys().(syscall.WaitStatus); signal != 0 && status.Signal() != signal {
				t.Errorf("the orphan ended with %v", err)
			}
			waitUp(t, p)
		})
	}
}

// leaveBehind starts a child that the package takes for another process's.
func leaveBehind(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	s := spec(mode, dir)
	path := filepath.Join(dir, s.Name+".lock")
	lock, err := lockfile.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	cmd := exec.Command(s.Path)
	cmd.Env = s.Env
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestTakeOverUnknown meets a lock whose holder has not said who it is.
func TestTakeOverUnknown(t *testing.T) {
	s := spec("patient", t.TempDir())
	s.Grace = 20 * time.Millisecond
	lock, err := lockfile.Try(filepath.Join(s.Dir, s.Name+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := child.Start(t.Context(), s); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "part.lock") {
		t.Errorf("got %v", err)
	}
}
