// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rescue

import (
	"context"
	"errors"
	"fmt"
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
}

// Do returns when the host has booted and answers: nil, or why it has not by the end of ctx. It may be called again with the same
// Asked, by another process too: how long the host has been up tells what is done.
func (r *Reboot) Do(ctx context.Context) error {
	var told reboots
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	for {
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
	if last == nil {
		e.Err = context.Cause(ctx)
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
