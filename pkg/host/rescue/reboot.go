// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const (
	// every is how often a host is tried to be reached.
	every = 3 * time.Second
	// patience is how long a host has to shut down in order before it is asked to hurry: longer than systemd gives a unit to stop.
	patience = 2 * time.Minute
	// booting is how long a machine that was reset has until it is reset once more: servers take minutes to their own checks.
	booting = 10 * time.Minute
	// anew is when a reset is tried again that was not accepted.
	anew = 30 * time.Second
	// exchange is how long the host may take to answer one question.
	exchange = 30 * time.Second
)

// Reboot reboots one host.
type Reboot struct {
	// Host is the host's name, for errors.
	Host string
	// Dial connects to the host.
	Dial func(context.Context) (host.Host, error)
	// Asked is when the reboot was asked for, by our clock. A host that has booted since then is not rebooted.
	Asked time.Time
	// Admit is asked once, before the host is told anything, whether it may be rebooted: an error of a kind that trying again does not
	// help (host.KindForeign) ends the reboot. May be nil.
	Admit func(context.Context, host.Host) error
	// Before is called once, before the host is rebooted. May be nil.
	Before func(context.Context, host.Host)
	// Reset resets the host's machine by other means than the host itself, where it does not answer or does not reboot. May be nil.
	Reset func(context.Context) error
	// ResetAt is when that was last recorded, the zero time if it was not, and Record records it. It is called before the reset, so that
	// whoever goes on with the reboot gives the machine time to boot. May be nil.
	ResetAt time.Time
	Record  func(context.Context, time.Time) error
}

// Do returns when the host has booted and answers: nil, or why it has not by the end of ctx. It may be called again with the same
// Asked, by another process too: how long the host has been up tells what is done.
func (r *Reboot) Do(ctx context.Context) error {
	told := reboots{heard: time.Now()}
	if r.ResetAt.After(r.Asked) {
		told.reset = r.ResetAt
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	for {
		if r.Reset != nil && told.wantReset(time.Now()) {
			told.refusal = r.reset(ctx, &told)
		}
		done, err := r.try(ctx, &told)
		if done {
			return nil
		}
		if host.KindOf(err) == host.KindForeign {
			return err
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return r.late(ctx, &told, last)
		case <-ticker.C:
		}
	}
}

// reboots is what the host was told: first and last are when.
type reboots struct {
	first, last time.Time
	refused     bool
	// forced is when it was first told to reboot without waiting, heard when it answered last, or was asked first.
	forced, heard time.Time
	// reset and tried are when its machine was reset by other means, and when that was last tried; refusal is what came of it.
	reset, tried time.Time
	refusal      error
}

// wantReset reports whether the machine is to be reset by other means: its system has not answered for a while, or does not reboot though
// it was forced to.
func (t *reboots) wantReset(now time.Time) bool {
	since := func(times ...time.Time) time.Duration { return now.Sub(slices.MaxFunc(times, time.Time.Compare)) }
	switch {
	case since(t.reset) < booting || since(t.tried) < anew:
		return false
	case !t.forced.IsZero() && since(t.forced) >= patience:
		return true
	}
	return since(t.heard, t.last) >= patience
}

// reset has the machine reset. That is recorded first: a machine that boots must not be reset by whoever goes on with this.
func (r *Reboot) reset(ctx context.Context, told *reboots) error {
	told.tried = time.Now()
	if r.Record != nil {
		if err := r.Record(ctx, told.tried); err != nil {
			return fmt.Errorf("record that the machine is to be reset: %w", err)
		}
	}
	if err := r.Reset(ctx); err != nil {
		return err
	}
	told.reset = told.tried
	if told.first.IsZero() {
		told.first = told.tried
	}
	return nil
}

// try observes the host once, and has it reboot if it has not been told to, or does not.
func (r *Reboot) try(ctx context.Context, told *reboots) (done bool, err error) {
	h, err := r.Dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, ignoreLoss(h.Close())) }()
	began := time.Now()
	up, err := uptime(ctx, h)
	if err != nil {
		return false, err
	}
	told.heard = time.Now()
	// The second holds whatever the difference between our clock and that of who asked.
	if began.Add(-up).After(r.Asked) || !told.first.IsZero() && up < time.Since(told.first) {
		return true, nil
	}
	if !told.last.IsZero() && !told.refused && time.Since(told.last) < patience {
		return false, nil // it shuts down
	}
	if told.first.IsZero() && r.Admit != nil {
		if err := r.Admit(ctx, h); err != nil {
			return false, err
		}
	}
	if told.first.IsZero() && r.Before != nil {
		r.Before(ctx, h)
	}
	argv := []string{"systemctl", "reboot"}
	if !told.last.IsZero() {
		// Without waiting for units to stop; file systems are unmounted.
		argv = []string{"systemctl", "reboot", "--force"}
		if told.forced.IsZero() {
			told.forced = time.Now()
		}
	}
	told.last = time.Now()
	if told.first.IsZero() {
		told.first = told.last
	}
	return false, ignoreLoss(told.tell(ctx, h, argv))
}

func (t *reboots) tell(ctx context.Context, h host.Host, argv []string) error {
	said, err := h.Exec(ctx, host.Command{Title: "reboot", Argv: argv, Timeout: exchange})
	t.refused = err == nil && said.ExitCode != 0
	if t.refused {
		return &host.Error{Kind: host.KindCommand, Host: h.Name(), Message: strings.Join(argv, " ") + " fails", ExitCode: said.ExitCode,
			Output: strings.TrimSpace(string(said.Stderr)), Remedy: "reboot the host by other means, such as its management controller"}
	}
	return err
}

// ignoreLoss leaves out that the connection is lost, which is to be expected of a host that reboots.
func ignoreLoss(err error) error {
	if host.KindOf(err) == host.KindUnreachable {
		return nil
	}
	return err
}

func (r *Reboot) late(ctx context.Context, told *reboots, last error) error {
	e := &host.Error{Kind: host.KindTimeout, Host: r.Host, Message: "the host was told to reboot, and has not come back", Err: last,
		Remedy: "look at its console"}
	if told.first.IsZero() {
		e.Message, e.Remedy = "the host could not be told to reboot", "reboot it by other means, such as its management controller"
	}
	if !told.reset.IsZero() {
		e.Message = "the machine was reset by its management controller, and the host has not come back"
	}
	switch {
	case last == nil && told.refusal == nil:
		e.Err = context.Cause(ctx)
	case told.refusal != nil:
		e.Err = told.refusal
		if last != nil {
			e.Err = fmt.Errorf("%w; and of the host itself: %w", told.refusal, last)
		}
		e.Remedy = "see whether address, user and certificate of the management controller are as declared, and what it says itself"
	}
	return e
}

// uptimeScript prints for how many seconds the first process has been running, in hundredths: since boot, and in a container since
// that was started. Field 22 of proc_pid_stat(5) counts in USER_HZ, which is 100 wherever Kubernetes runs.
const uptimeScript = `read -r now rest </proc/uptime && read -r line </proc/1/stat || exit
set -- ${line##*) }
echo $((${now%.*}${now#*.} - ${20}))`

// uptime is how long the host has been up.
func uptime(ctx context.Context, h host.Host) (time.Duration, error) {
	said, err := h.Exec(ctx, host.Command{Title: "uptime", Argv: []string{"sh", "-c", uptimeScript}, Timeout: exchange})
	if err != nil {
		return 0, err
	}
	hundredths, err := strconv.ParseInt(strings.TrimSpace(string(said.Stdout)), 10, 64)
	if said.ExitCode != 0 || err != nil {
		return 0, &host.Error{Kind: host.KindCommand, Host: h.Name(), ExitCode: said.ExitCode,
			Message: fmt.Sprintf("how long the host has been up is not to be found out: %q", said.Stdout), Output: strings.TrimSpace(string(said.Stderr))}
	}
	return time.Duration(hundredths) * 10 * time.Millisecond, nil
}
