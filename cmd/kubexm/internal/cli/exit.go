// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/serial"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Exit codes. They are a promise to scripts: see exitCodes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPreflight   = 3
	exitLocked      = 4
	exitInterrupted = 130
)

// exitCodes is what help says of them.
const exitCodes = `Exit codes:
  0    success, or already up to date
  1    it failed
  2    the command line or the config file is wrong; nothing was touched
  3    the hosts are not fit (preflight, recover, adopt), the state is an older copy, APIs are in use that the new version does not serve,
       or certificates are about to expire (certs check); no host was changed
  4    another kubexm, or another writer on a host, is at work
  130  interrupted; the next run resumes`

// usageError is a mistake in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// unfit are hosts that cannot become what they must be, or cannot be reached.
type unfit struct {
	problems  []preflight.Problem
	unreached error
	// hint is what else may help, in a line of its own; may be "".
	hint string
}

// Unwrap returns why hosts could not be reached.
func (u *unfit) Unwrap() error { return u.unreached }

func (u *unfit) Error() string {
	var lines []string
	var bad []preflight.Problem
	hosts := map[string]bool{}
	for _, p := range u.problems {
		if p.Severity == preflight.Error {
			hosts[p.Host] = true
			bad = append(bad, p)
		}
	}
	var failed *engine.Error
	if errors.As(u.unreached, &failed) {
		for _, f := range failed.Failures {
			hosts[f.Host] = true
			lines = append(lines, "  "+strings.ReplaceAll(f.Error(), "\n", "\n  "))
		}
	} else if u.unreached != nil {
		lines = append(lines, "  "+u.unreached.Error())
	}
	for _, p := range alike(bad) {
		lines = append(lines, fmt.Sprintf("  %s: %s: %s\n    Remedy: %s", p.Host, p.Check, p.Cause, p.Remedy))
	}
	if u.hint != "" {
		lines = append(lines, u.hint)
	}
	return fmt.Sprintf("preflight: %s not fit, nothing was changed:\n%s", areHosts(len(hosts)), strings.Join(lines, "\n"))
}

func areHosts(n int) string {
	if n == 1 {
		return "1 host is"
	}
	return fmt.Sprintf("%d hosts are", n)
}

// exitStatus is that of a command that was run for the user, who knows what came of it.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitCode is the code for what a command returned.
func exitCode(ctx context.Context, err error) int {
	var (
		status exitStatus
		usage  usageError
		wrong  *config.Error
		bad    *unfit
		lost   *unrecovered
		apis   *removedAPIs
		behind *serial.Behind
		locked *clusterdir.LockedError
		inUse  *embedded.InUseError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &bad), errors.As(err, &lost), errors.As(err, &apis), errors.As(err, &behind),
		host.KindOf(err) == host.KindSuperseded:
		return exitPreflight
	case errors.As(err, &locked), errors.As(err, &inUse), host.KindOf(err) == host.KindLocked:
		return exitLocked
	}
	return exitFailed
}
