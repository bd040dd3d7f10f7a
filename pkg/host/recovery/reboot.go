// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

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
	// exchange is how long the host may take to answer one question, and how long a reset's refusal may take to be recorded.
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
	// Admit is asked once, before anything is asked of the host, whether it may be rebooted: an error of a kind that trying again does
	// not help (host.KindForeign) ends the reboot. May be nil.
	Admit func(context.Context, host.Host) error
	// Before is called once, before the host is rebooted. May be nil.
	Before func(context.Context, host.Host)
	// Controller resets the machine where the host does not answer or does not reboot. May be nil.
	Controller *Controller
}

// Controller resets a machine by other means than its own system.
type Controller struct {
	// Reset has the machine reset, and returns whether it was, or may have been though that was not confirmed. An error is why it was
	// not, or is not known.
	Reset func(context.Context) (made bool, err error)
	// Last is what was recorded last. Record records a reset before it is tried, so that whoever goes on with the reboot gives the
	// machine time to boot, and once more if it was refused, so that they need not.
	Last   Reset
	Record func(context.Context, Reset) error
}

// Reset is what is recorded of a reset.
type Reset struct {
	// Time is when it was tried, by our clock; the zero time if none was.
	Time time.Time
	// Refused is whether the machine was certainly not reset.
	Refused bool
}

// act is what a transition does: nothing but the error if it does not come about.
type act func(r *Reboot, ctx context.Context, h host.Host, p *progress) (done bool, err error)

// Do returns when the host has booted and answers: nil, or why it has not by the end of ctx. It may be called again with the same
// Asked, by another process too: how long the host has been up, and what was recorded of resets, tell what is done.
func (r *Reboot) Do(ctx context.Context) error {
	var known Reset
	if r.Controller != nil {
		known = r.Controller.Last
	}
	p := resumed(r.Asked, time.Now(), known)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last error
	for {
		booted, err := r.try(ctx, p)
		if booted {
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
			return r.late(ctx, p, last)
		case <-ticker.C:
		}
	}
}

// try observes the host once, and does what is to be done then.
func (r *Reboot) try(ctx context.Context, p *progress) (booted bool, err error) {
	seen := silent
	h, up, err := r.observe(ctx)
	if h != nil {
		defer func() { err = errors.Join(err, ignoreLoss(h.Close())) }()
	}
	if err == nil {
		p.heard = time.Now()
		// The second holds whatever the difference between our clock and that of who asked.
		if p.heard.Add(-up).After(r.Asked) || !p.first.IsZero() && up < p.heard.Sub(p.first) {
			return true, nil
		}
		seen = answers
		if p.refused {
			seen = refuses
		}
	}
	now := time.Now()
	t := p.next(seen, now, r.Controller != nil)
	if t == nil {
		return false, err
	}
	done, failed := t.act(r, ctx, h, p)
	if done {
		p.enter(t.to, now)
	}
	return false, errors.Join(err, failed)
}

// observe connects to the host and finds out how long it has been up. The connection, if there is one, is to be closed.
func (r *Reboot) observe(ctx context.Context) (host.Host, time.Duration, error) {
	h, err := r.Dial(ctx)
	if err != nil {
		return nil, 0, err
	}
	up, err := uptime(ctx, h)
	return h, up, err
}

// ask has the host reboot in order.
func (r *Reboot) ask(ctx context.Context, h host.Host, p *progress) (bool, error) {
	return r.systemctl(ctx, h, p, "reboot")
}

// force has the host reboot without waiting for units to stop. File systems are unmounted.
func (r *Reboot) force(ctx context.Context, h host.Host, p *progress) (bool, error) {
	return r.systemctl(ctx, h, p, "reboot", "--force")
}

func (r *Reboot) systemctl(ctx context.Context, h host.Host, p *progress, args ...string) (bool, error) {
	if !p.admitted {
		if r.Admit != nil {
			if err := r.Admit(ctx, h); err != nil {
				return false, err
			}
		}
		p.admitted = true
		if r.Before != nil {
			r.Before(ctx, h)
		}
	}
	argv := append([]string{"systemctl"}, args...)
	said, err := h.Exec(ctx, host.Command{Title: "reboot", Argv: argv, Timeout: exchange})
	p.refused = err == nil && said.ExitCode != 0
	if p.refused {
		return true, &host.Error{
			Kind: host.KindCommand, Host: h.Name(), Message: strings.Join(argv, " ") + " fails", ExitCode: said.ExitCode,
			Output: strings.TrimSpace(string(said.Stderr)), Remedy: "reboot the host by other means, such as its management controller",
		}
	}
	return true, ignoreLoss(err)
}

// reset has the machine reset. What comes of that is told apart from what the host itself says.
func (r *Reboot) reset(ctx context.Context, _ host.Host, p *progress) (bool, error) {
	c, now := r.Controller, time.Now()
	p.tried = now
	if err := c.record(ctx, Reset{Time: now}); err != nil {
		p.refusal = fmt.Errorf("record that the machine is to be reset: %w", err)
		return false, nil
	}
	made, err := c.Reset(ctx)
	p.refusal = err
	if made {
		p.last, p.refused = now, false
		return true, nil
	}
	// Also when the time is up, or the manager stops: this is for whoever goes on.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchange)
	defer cancel()
	if err := c.record(ctx, Reset{Time: now, Refused: true}); err != nil {
		p.refusal = fmt.Errorf("%w; and that the machine was not reset is not recorded: %w", p.refusal, err)
	}
	return false, nil
}

func (c *Controller) record(ctx context.Context, r Reset) error {
	if c.Record == nil {
		return nil
	}
	return c.Record(ctx, r)
}

// ignoreLoss leaves out that the connection is lost, which is to be expected of a host that reboots.
func ignoreLoss(err error) error {
	if host.KindOf(err) == host.KindUnreachable {
		return nil
	}
	return err
}

func (r *Reboot) late(ctx context.Context, p *progress, last error) error {
	e := &host.Error{
		Kind: host.KindTimeout, Host: r.Host, Err: last,
		Message: "the host was asked to reboot, and has not come back", Remedy: "see what its console shows",
	}
	switch {
	case !p.last.IsZero():
		e.Message = "the machine was reset by its management controller, and the host has not come back"
	case p.state == waiting:
		e.Message = "the host could not be asked to reboot"
		e.Remedy = "reboot it by other means, such as its management controller"
	}
	switch {
	case last == nil && p.refusal == nil:
		e.Err = context.Cause(ctx)
	case p.refusal != nil:
		e.Err = p.refusal
		if last != nil {
			e.Err = fmt.Errorf("%w; and of the host itself: %w", p.refusal, last)
		}
		e.Remedy = "see whether address, user and certificate of the management controller are the declared ones, and what it says itself"
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
