// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// hostileHost is the host behind an sshd of the test's. Nothing of it may be left when the test has ended.
func hostileHost(t *testing.T, answer func(*sshtest.Exec)) *Host {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	server := sshtest.New(t, answer)
	h, err := Dial(t.Context(), Config{
		Name: "node-1", Address: server.Address, Port: server.Port, Auth: Auth{Password: secret.New("unused")},
		HostKey: HostKey{Pinned: []string{server.HostKey}}, heartbeat: 20 * time.Millisecond, stopGrace: 100 * time.Millisecond,
		KeepAlive: 50 * time.Millisecond, KeepAliveMax: 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// shortly is a deadline that only a host that hangs reaches.
func shortly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// anyTime is far longer than what ends by a bound takes.
func anyTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

const much = 1 << 20

// floods are answers without an end.
var floods = map[string]func(*sshtest.Exec){
	"frames": func(e *sshtest.Exec) {
		for e.Say("tools", "x") {
		}
	},
	"frames of another session": func(e *sshtest.Exec) {
		for e.Say("pid", "12") {
		}
	},
	"bodies": func(e *sshtest.Exec) {
		for e.Body(strings.Repeat("x", much), "files") {
		}
	},
	"a body": func(e *sshtest.Exec) {
		e.Body("", "files")
		pour(e.Out, strings.Repeat("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", much>>6))
	},
	"a line":           func(e *sshtest.Exec) { pour(e.Out, strings.Repeat("x", much)) },
	"a head":           func(e *sshtest.Exec) { pour(e.Out, "\n@"+e.Mark+" - "+strings.Repeat("x", much)) },
	"heads of no kind": func(e *sshtest.Exec) { pour(e.Out, strings.Repeat("\n@"+e.Mark+" \n", 1000)) },
	"files": func(e *sshtest.Exec) {
		e.Body("==> /x <==\n", "files")
		pour(e.Out, strings.Repeat("\n==> /x <==\n", 1000))
	},
}

// pour writes for as long as somebody reads.
func pour(to io.Writer, what string) {
	for {
		if _, err := io.WriteString(to, what); err != nil {
			return
		}
	}
}

func TestHostFloods(t *testing.T) {
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			for what, do := range operations() {
				if what != "observe" && what != "act" && name != "frames" {
					continue // an answer is read in these two ways
				}
				t.Run(what, func(t *testing.T) {
					h := hostileHost(t, func(e *sshtest.Exec) { do.upTo(e); flood(e) })
					ctx := anyTime(t)
					err := do.do(ctx, h)
					if host.KindOf(err) != host.KindProtocol || ctx.Err() != nil {
						t.Fatalf("a host that floods: %v", err)
					}
					var e *host.Error
					if errors.As(err, &e); e.Host != "node-1" || e.Remedy == "" {
						t.Errorf("an error without host or remedy: %#v", e)
					}
				})
			}
		})
	}
}

// operation is a use of a host, and what a host answers up to the point at which it matters.
type operation struct {
	upTo func(*sshtest.Exec)
	do   func(context.Context, *Host) error
}

func operations() map[string]operation {
	in := func(do func(context.Context, host.Session) error) func(context.Context, *Host) error {
		return func(ctx context.Context, h *Host) error {
			s, err := h.Begin(context.WithoutCancel(ctx), host.Run{ID: "run", Holder: "test"})
			if err != nil {
				return fmt.Errorf("begin: %w", err)
			}
			return do(ctx, s)
		}
	}
	inSession := func(e *sshtest.Exec) {
		if e.Begin() {
			e.Next()
		}
	}
	act := host.Act{Node: "a/b", Task: "a", Digest: "d", Changes: []host.Change{host.File{Path: "/etc/x", Mode: 0o644}}}
	return map[string]operation{
		"observe": {func(e *sshtest.Exec) { e.Greet() }, func(ctx context.Context, h *Host) error {
			_, err := h.Observe(ctx, host.Query{Paths: []host.PathQuery{{Path: "/etc/x", Content: true}}})
			return err
		}},
		"begin": {func(e *sshtest.Exec) { e.Greet() }, func(ctx context.Context, h *Host) error {
			_, err := h.Begin(ctx, host.Run{ID: "run", Holder: "test"})
			return err
		}},
		"act": {inSession, in(func(ctx context.Context, s host.Session) error {
			_, err := s.Do(ctx, act)
			return err
		})},
		"undo": {inSession, in(func(ctx context.Context, s host.Session) error { return s.Undo(ctx, host.Scope{}, nil) })},
		"end":  {inSession, in(func(ctx context.Context, s host.Session) error { return s.End(ctx, true) })},
	}
}

func TestHostStops(t *testing.T) {
	for name, stops := range map[string]func(*sshtest.Exec){
		"at once":              func(e *sshtest.Exec) { e.Hang() },
		"after it named a pid": func(e *sshtest.Exec) { e.Say("pid", "12"); e.Hang() },
		"within a frame":       func(e *sshtest.Exec) { e.Body("half", "files"); e.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			for what, do := range operations() {
				t.Run(what, func(t *testing.T) {
					h := hostileHost(t, func(e *sshtest.Exec) { do.upTo(e); stops(e) })
					if err := do.do(shortly(t), h); !errors.Is(err, context.DeadlineExceeded) && host.KindOf(err) != host.KindProtocol {
						t.Errorf("a host that hangs: %v", err)
					}
				})
			}
		})
	}
	t.Run("before the greeting", func(t *testing.T) {
		h := hostileHost(t, func(e *sshtest.Exec) { e.Hang() })
		if _, err := h.Observe(shortly(t), host.Query{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a host that never greets: %v", err)
		}
	})
	t.Run("reading", func(t *testing.T) {
		// What is sent is never taken, so that writing blocks.
		h := hostileHost(t, func(e *sshtest.Exec) {
			if e.Begin() {
				e.Hang()
			}
		})
		s, err := h.Begin(t.Context(), host.Run{ID: "run", Holder: "test"})
		if err != nil {
			t.Fatal(err)
		}
		var changes []host.Change
		for i := range 64 {
			changes = append(changes, host.File{Path: fmt.Sprintf("/etc/%d", i), Mode: 0o644, Content: secret.New(strings.Repeat("x", 128<<10))})
		}
		if _, err := s.Do(shortly(t), host.Act{Node: "a/b", Task: "a", Digest: "d", Changes: changes}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("a host that does not read: %v", err)
		}
	})
}

func TestHostBreaksOff(t *testing.T) {
	for name, breaks := range map[string]func(*sshtest.Exec){
		"with no answer": func(*sshtest.Exec) {},
		"mid frame":      func(e *sshtest.Exec) { e.Body("half", "files") },
		"two pids":       func(e *sshtest.Exec) { e.Say("pid", "12"); e.Say("pid", "13"); e.Hang() },
		"no pid":         func(e *sshtest.Exec) { e.Say("pid", "-1"); e.Hang() },
		"unknown frame":  func(e *sshtest.Exec) { e.Say("\x1b]0;title\a", "x"); e.Say("end", "0"); e.EndErrors() },
	} {
		t.Run(name, func(t *testing.T) {
			for what, do := range operations() {
				t.Run(what, func(t *testing.T) {
					h := hostileHost(t, func(e *sshtest.Exec) { do.upTo(e); breaks(e) })
					err := do.do(anyTime(t), h)
					if k := host.KindOf(err); k != host.KindProtocol {
						t.Errorf("kind %s: %v", k, err)
					}
					if strings.ContainsRune(err.Error(), '\x1b') {
						t.Errorf("its words reach a terminal: %q", err)
					}
				})
			}
		})
	}
}

// TestCancelWhileFlooded: frames that nobody asked for must not keep a cancelled act.
func TestCancelWhileFlooded(t *testing.T) {
	asked := make(chan struct{})
	var first bool
	h := hostileHost(t, func(e *sshtest.Exec) {
		if first { // the connection that is to stop the act
			e.Hang()
			return
		}
		first = true
		if !e.Begin() || e.Next() == "" {
			return
		}
		e.Say("pid", "12")
		close(asked)
		e.Hang()
	})
	s, err := h.Begin(t.Context(), host.Run{ID: "run", Holder: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := s.Do(ctx, host.Act{Node: "a/b", Task: "a", Digest: "d"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestFloodsAreNotKept: what a host sends is given up as soon as it is too much, whatever it was.
func TestFloodsAreNotKept(t *testing.T) {
	h := hostileHost(t, func(e *sshtest.Exec) {
		e.Greet()
		go pour(e.Err, strings.Repeat("x", much))
		e.Body("", "stdout", "0")
		pour(e.Out, strings.Repeat("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", much>>6))
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := h.Observe(anyTime(t),
		host.Query{Commands: []host.CommandQuery{{ID: "x", Argv: []string{"true"}}}}); host.KindOf(err) != host.KindProtocol {
		t.Errorf("flooded on both: %v", err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 16<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
}

func TestWorstFacts(t *testing.T) {
	bad := "\x1b]52;c;ZXZpbA==\x07\x00\xff\u202e" + strings.Repeat("W", much)
	h := hostileHost(t, func(e *sshtest.Exec) {
		script := e.Greet()
		e.Say("clock", "99999999999999999", "1e300")
		e.Say("machine", strings.ReplaceAll(bad, " ", "")[:30000])
		e.Say("disk", "-5", "9223372036854775807", "4096")
		e.Say("container", bad[:30000])
		e.Say("cgroup", "-99")
		e.Say("tools", strings.Repeat("tool ", 12000))
		e.Body(sshtest.Files(script, map[string]string{
			"/etc/os-release":                "ID=" + bad + "\nVERSION_ID=\x1b[2J" + bad + "\n" + strings.Repeat("KEY=x\n", 100_000),
			"/proc/sys/kernel/hostname":      bad,
			"/proc/sys/kernel/osrelease":     bad,
			"/proc/meminfo":                  "MemTotal: 9223372036854775807 kB\n",
			"/sys/devices/system/cpu/online": "5-1,0-9223372036854775807,-9-4,7-",
			"/proc/swaps":                    "head\n" + strings.Repeat(bad[:4000]+"\n", 1000),
			"/etc/resolv.conf":               strings.Repeat("nameserver \x1b1\n", 10_000),
			"/proc/self/status":              strings.Repeat("CapBnd: 0\n", 10_000),
		}), "files")
		e.Body(strings.Repeat("\x1b1 STREAM\n", 1000), "resolves")
		e.Say("end", "0")
		e.EndErrors()
	})
	f, err := h.Observe(anyTime(t), host.Query{})
	if err != nil {
		t.Fatal(err)
	}
	s := &f.System
	for name, value := range map[string]string{
		"hostname": s.Hostname, "osID": s.OSID, "osVersion": s.OSVersion, "osName": s.OSName, "arch": s.Arch, "kernel": s.Kernel,
		"container": s.Container, "resolves": strings.Join(s.HostnameAddresses, ""), "nameservers": strings.Join(s.Nameservers, ""),
	} {
		if len(value) > 256 || !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\x1b\x07\u202e\n") {
			t.Errorf("%s is %d bytes: %.80q", name, len(value), value)
		}
	}
	if s.CPUs < 0 || s.MemoryBytes < 0 || s.DiskFreeBytes < 0 || s.DiskTotalBytes < 0 || s.CgroupVersion < 0 {
		t.Errorf("negative numbers: %d CPUs, memory %d, disk %d of %d", s.CPUs, s.MemoryBytes, s.DiskFreeBytes, s.DiskTotalBytes)
	}
	if len(s.Swap) > 64 || len(s.Tools) > 64 || len(s.Nameservers) > 64 || len(s.MissingCapabilities) > 64 {
		t.Errorf("%d swaps, %d tools, %d nameservers, %d capabilities", len(s.Swap), len(s.Tools), len(s.Nameservers), len(s.MissingCapabilities))
	}
	for _, when := range []time.Time{f.Taken, s.BootTime} {
		if _, err := when.MarshalJSON(); err != nil {
			t.Error(err)
		}
	}
}
