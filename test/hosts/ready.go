// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	readyTimeout = time.Minute
	readyPoll    = 50 * time.Millisecond
)

// WaitReady returns when the host has booted (systemd says running) and its sshd
// answers. A boot that ended with failed units is an error that names them; a host
// that is not ready within a minute is one that tells how far it came.
func (h *Host) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := h.waitBooted(ctx); err != nil {
		return err
	}
	for {
		err := h.greet(ctx)
		if err == nil {
			return nil
		}
		if pause(ctx) != nil {
			return fmt.Errorf("sshd does not answer: %w", err)
		}
	}
}

func (h *Host) waitBooted(ctx context.Context) error {
	for {
		// Before systemd listens the command fails at once, hence the loop around --wait.
		state, err := h.Exec(ctx, "systemctl", "is-system-running", "--wait")
		switch state {
		case "running":
			return nil
		case "degraded", "maintenance":
			return fmt.Errorf("systemd is %s: %s", state, h.failedUnits(ctx))
		}
		if pause(ctx) != nil {
			return fmt.Errorf("not booted (systemd says %q): %w", state, errors.Join(err, h.lastOutput(ctx)))
		}
	}
}

// failedUnits names the failed units with the end of each one's log.
func (h *Host) failedUnits(ctx context.Context) string {
	out, err := h.Exec(ctx, "systemctl", "list-units", "--failed", "--plain", "--no-legend")
	if err != nil {
		return err.Error()
	}
	var failed []string
	for _, line := range lines(out) {
		unit := strings.Fields(line)[0]
		log, err := h.Exec(ctx, "journalctl", "--unit", unit, "--lines", "5", "--output", "cat", "--no-pager")
		if err != nil {
			log = err.Error()
		}
		failed = append(failed, fmt.Sprintf("%s failed (%s)", unit, tail(log, 5)))
	}
	return strings.Join(failed, "; ")
}

// lastOutput is what the first process printed before it could log elsewhere.
func (h *Host) lastOutput(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	out, err := docker(ctx, nil, "logs", "--tail", "10", h.container)
	if err != nil || out == "" {
		return err
	}
	return fmt.Errorf("its console says: %s", tail(out, 10))
}

// greet connects to sshd and reads its greeting (RFC 4253, section 4.2).
func (h *Host) greet(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	greeting, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(greeting, "SSH-2.0-") {
		err = fmt.Errorf("greeting %q is not SSH's", greeting)
	}
	return err
}

// pause waits a moment between two looks, or returns why there is no time left.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(readyPoll):
		return nil
	}
}
