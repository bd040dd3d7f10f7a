// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
)

// box is a host that reboots when it is asked to, in its own way.
type box struct {
	// booted is when it did last; away is until when it does not answer.
	booted, away time.Time
	// takes is how long it is away when it reboots, for ever if negative.
	takes time.Duration
	// deaf is whether it does not reboot unless it is forced; refuses, whether it says so.
	deaf, refuses bool
	// stuck is whether it does not reboot even then.
	stuck bool
	// unreachable is whether it never answers; odd, what it says of its uptime instead.
	unreachable bool
	odd         string
	told        []string
	machine     *fake.Machine
}

func newBox(change func(*box)) *box {
	b := &box{booted: time.Now().Add(-24 * time.Hour), takes: time.Minute, machine: fake.New("m1")}
	b.machine.OnCommand = b.command
	change(b)
	return b
}

func (b *box) command(_ *fake.Machine, c host.Command) host.Result {
	if c.Title == "uptime" {
		if b.odd != "" {
			return host.Result{Stdout: []byte(b.odd)}
		}
		return host.Result{Stdout: fmt.Appendln(nil, time.Since(b.booted).Milliseconds()/10)}
	}
	b.told = append(b.told, strings.Join(c.Argv, " "))
	forced := slices.Contains(c.Argv, "--force")
	switch {
	case b.refuses && !forced:
		return host.Result{ExitCode: 1, Stderr: []byte("Failed to connect to bus")}
	case b.deaf && !forced, b.stuck:
	default:
		b.booted = time.Now().Add(b.takes)
		b.away = b.booted
		if b.takes < 0 {
			b.away = time.Now().AddDate(1, 0, 0)
		}
	}
	return host.Result{}
}

func (b *box) dial(context.Context) (host.Host, error) {
	if b.unreachable || time.Now().Before(b.away) {
		return nil, &host.Error{Kind: host.KindUnreachable, Host: "m1", Message: "cannot connect"}
	}
	return b.machine.Connect(), nil
}

func TestReboot(t *testing.T) {
	const plain, forced = "systemctl reboot", "systemctl reboot --force"
	for name, test := range map[string]struct {
		change func(*box)
		told   []string
		// within is how long it may take at least and at most; before, how often what comes before is done.
		least, most time.Duration
		before      int
		problem     string
	}{
		"it reboots":                         {func(*box) {}, []string{plain}, time.Minute, 65 * time.Second, 1, ""},
		"it has booted since":                {func(b *box) { b.booted = time.Now().Add(-time.Second) }, nil, 0, 0, 0, ""},
		"it does not listen":                 {func(b *box) { b.deaf = true }, []string{plain, forced}, 3 * time.Minute, 200 * time.Second, 1, ""},
		"it refuses":                         {func(b *box) { b.refuses = true }, []string{plain, forced}, time.Minute, 70 * time.Second, 1, ""},
		"its first minute is over before":    {func(b *box) { b.away = time.Now().Add(time.Minute) }, []string{plain}, 2 * time.Minute, 130 * time.Second, 1, ""},
		"it does not come back":              {func(b *box) { b.takes = -1 }, []string{plain}, 10 * time.Minute, 10 * time.Minute, 1, "asked to reboot, and has not come back: host m1: cannot connect"},
		"it cannot be reached":               {func(b *box) { b.unreachable = true }, nil, 10 * time.Minute, 10 * time.Minute, 0, "could not be asked to reboot: host m1: cannot connect"},
		"it does not say how long it is up":  {func(b *box) { b.odd = "sh: not found" }, nil, 10 * time.Minute, 10 * time.Minute, 0, `could not be asked to reboot: host m1: how long the host has been up is not to be found out: "sh: not found"`},
		"its clock is not that of who asked": {func(b *box) { b.takes = 5 * time.Second }, []string{plain}, 5 * time.Second, 10 * time.Second, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBox(test.change)
				asked, before := time.Now().Add(-2*time.Second), 0
				if strings.Contains(name, "clock") {
					asked = time.Now().Add(time.Hour)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				began := time.Now()
				err := (&recovery.Reboot{Host: "m1", Dial: b.dial, Asked: asked, Before: func(context.Context, host.Host) { before++ }}).Do(ctx)
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("it took %s, want %s to %s", took, test.least, test.most)
				}
				if !slices.Equal(b.told, test.told) || before != test.before {
					t.Errorf("it was told %q after %d, want %q after %d", b.told, before, test.told, test.before)
				}
				if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
					t.Errorf("error %v, want %q", err, test.problem)
				}
			})
		})
	}
}

// controller resets a box.
type controller struct {
	b *box
	// boots is how long the box takes then; err is why it cannot be reset.
	boots          time.Duration
	err, recordErr error
	// silent is whether the box is reset, and the controller does not say so.
	silent   bool
	resets   int
	recorded []recovery.Reset
}

func (c *controller) reset(context.Context) (made bool, err error) {
	if c.err != nil {
		return false, c.err
	}
	c.resets++
	c.b.booted = time.Now().Add(c.boots)
	c.b.away, c.b.unreachable = c.b.booted, false
	if c.silent {
		return true, errors.New("no answer")
	}
	return true, nil
}

func (c *controller) record(_ context.Context, r recovery.Reset) error {
	if c.recordErr != nil {
		return c.recordErr
	}
	c.recorded = append(c.recorded, r)
	return nil
}

func (c *controller) of() *recovery.Controller {
	return &recovery.Controller{Reset: c.reset, Record: c.record}
}

// A machine whose system does not answer, or does not reboot, is reset by its management controller: once, and not again while it boots.
func TestRebootByController(t *testing.T) {
	const plain, forced = "systemctl reboot", "systemctl reboot --force"
	hangs := func(b *box) { b.unreachable = true }
	for name, test := range map[string]struct {
		change      func(*box)
		controller  controller
		before      time.Duration // for how long the machine has been booting that another manager has reset
		told        []string
		resets      int
		least, most time.Duration
		problem     string
	}{
		"it reboots by itself": {func(*box) {}, controller{}, 0, []string{plain}, 0, time.Minute, 70 * time.Second, ""},
		"it does not answer":   {hangs, controller{boots: 4 * time.Minute}, 0, nil, 1, 6 * time.Minute, 7 * time.Minute, ""},
		"it hangs when it goes down": {func(b *box) { b.takes = -1 },
			controller{boots: time.Minute}, 0, []string{plain}, 1, 3 * time.Minute, 4 * time.Minute, ""},
		"it answers, and cannot be forced": {func(b *box) {
			b.refuses = true
			b.stuck = true
		}, controller{boots: time.Minute}, 0, []string{plain, forced}, 1, 3 * time.Minute, 4 * time.Minute, ""},
		"it does not say that it was reset": {hangs, controller{boots: 4 * time.Minute, silent: true},
			0, nil, 1, 6 * time.Minute, 7 * time.Minute, ""},
		"it takes long to boot": {hangs, controller{boots: 9 * time.Minute}, 0, nil, 1, 11 * time.Minute, 12 * time.Minute, ""},
		"it does not come back": {hangs, controller{boots: 24 * time.Hour}, 0, nil, 2, 20 * time.Minute, 20 * time.Minute, "was reset by its management controller, and the host has not come back"},
		"another manager has reset it": {func(b *box) {
			b.away = time.Now().Add(5 * time.Minute)
			b.booted = b.away
		}, controller{}, 3 * time.Minute, nil, 0, 5 * time.Minute, 6 * time.Minute, ""},
		"it refuses":            {hangs, controller{err: errors.New("401 Unauthorized")}, 0, nil, 0, 20 * time.Minute, 20 * time.Minute, "could not be asked to reboot: 401 Unauthorized"},
		"it cannot be recorded": {hangs, controller{recordErr: errors.New("conflict")}, 0, nil, 0, 20 * time.Minute, 20 * time.Minute, "record that the machine is to be reset: conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c := newBox(test.change), test.controller
				c.b = b
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				began := time.Now()
				reboot := recovery.Reboot{
					Host: "m1", Dial: b.dial, Asked: began.Add(-test.before - time.Second), Controller: c.of(),
				}
				if test.before > 0 {
					reboot.Controller.Last.Time = began.Add(-test.before)
				}
				err := reboot.Do(ctx)
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("it took %s, want %s to %s", took, test.least, test.most)
				}
				if !slices.Equal(b.told, test.told) || c.resets != test.resets {
					t.Errorf("it was told %q and reset %d times, want %q and %d", b.told, c.resets, test.told, test.resets)
				}
				if c.err == nil && len(c.recorded) != test.resets {
					t.Errorf("%d resets were recorded, want %d", len(c.recorded), test.resets)
				}
				if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
					t.Errorf("error %v, want %q", err, test.problem)
				}
			})
		})
	}
}

// A reset that was refused is recorded as such, so that whoever goes on with the reboot has no machine to wait for that does not boot: it
// tries again as soon as the one before would have.
func TestRefusedResetIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(func(b *box) { b.unreachable = true })
		c := controller{b: b, boots: time.Minute, err: errors.New("409 Conflict")}
		asked := time.Now().Add(-time.Second)
		stopped := errors.New("the manager stops")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 125*time.Second, stopped)
		defer cancel()
		err := (&recovery.Reboot{Host: "m1", Dial: b.dial, Asked: asked, Controller: c.of()}).Do(ctx)
		if err == nil || !strings.Contains(err.Error(), "could not be asked to reboot: 409 Conflict") {
			t.Errorf("error %v", err)
		}
		if len(c.recorded) != 2 || c.recorded[0].Refused || c.recorded[1] != (recovery.Reset{Time: c.recorded[0].Time, Refused: true}) {
			t.Fatalf("recorded are %v, want a reset, and that it was refused", c.recorded)
		}

		next := c.of()
		next.Last = c.recorded[1]
		c.err, c.recorded = nil, nil
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := (&recovery.Reboot{Host: "m1", Dial: b.dial, Asked: asked, Controller: next}).Do(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 4*time.Minute || c.resets != 1 {
			t.Errorf("the next manager takes %s and %d resets, want one after two minutes of silence", took, c.resets)
		}
		if len(c.recorded) != 1 || c.recorded[0].Refused {
			t.Errorf("recorded are %v, want one reset", c.recorded)
		}
	})
}

// A manager that stops while a controller refuses records that all the same.
func TestRefusalIsRecordedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(func(b *box) { b.unreachable = true })
		ctx, cancel := context.WithCancel(t.Context())
		c := controller{b: b}
		of := &recovery.Controller{
			Reset: func(context.Context) (bool, error) {
				cancel()
				return false, errors.New("409 Conflict")
			},
			Record: func(ctx context.Context, r recovery.Reset) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return c.record(ctx, r)
			},
		}
		if err := (&recovery.Reboot{Host: "m1", Dial: b.dial, Asked: time.Now(), Controller: of}).Do(ctx); err == nil {
			t.Error("a host that does not answer was rebooted")
		}
		if len(c.recorded) != 2 || !c.recorded[1].Refused {
			t.Errorf("recorded are %v, want a reset, and that it was refused", c.recorded)
		}
	})
}

func TestRebootEndsWithItsContext(t *testing.T) {
	stopped := errors.New("the manager stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBox(func(b *box) { b.deaf = true })
	reboot := recovery.Reboot{Host: "m1", Dial: b.dial, Asked: time.Now(), Before: func(context.Context, host.Host) { cancel(stopped) }}
	if err := reboot.Do(ctx); !errors.Is(err, stopped) {
		t.Errorf("error %v, want %v", err, stopped)
	}
}

func TestLogs(t *testing.T) {
	m := fake.New("m1")
	h := m.Connect()
	m.OnCommand = func(*fake.Machine, host.Command) host.Result {
		return host.Result{ExitCode: 127, Stderr: []byte("gzip: not found")}
	}
	if _, err := recovery.Logs(t.Context(), h); err == nil || !strings.Contains(err.Error(), "host m1: its logs cannot be read") {
		t.Errorf("error %v", err)
	}
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		return host.Result{Stdout: []byte("logs of " + strings.Join(c.Argv[4:], " and "))}
	}
	if content, err := recovery.Logs(t.Context(), h, "a.service", "b.service"); string(content) != "logs of a.service and b.service" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}
