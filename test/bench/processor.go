// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// processors is what the names of measurements of processor time end with.
const processors = "/processors"

// usage prints the processor time of a host's control group in nanoseconds, whichever the version of control groups.
const usage = `cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec \(.*\)/\1000/p' /sys/fs/cgroup/cpu.stat`

// processorTime is how many seconds of processor time these hosts, this process and its children use for f. It says more than
// the clock where others use the machine, too.
func (l *lab) processorTime(ctx context.Context, names []string, f func() error) (float64, error) {
	hostsBefore, err := l.usedByHosts(ctx, names)
	if err != nil {
		return 0, err
	}
	before, err := usedHere()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := usedHere()
	if err != nil {
		return 0, err
	}
	hostsAfter, err := l.usedByHosts(ctx, names)
	return (after - before + hostsAfter - hostsBefore).Seconds(), err
}

// usedHere is what this process and its children that have ended have used so far.
func usedHere() (total time.Duration, err error) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err != nil {
			return 0, err
		}
		total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return total, nil
}

func (l *lab) usedByHosts(ctx context.Context, names []string) (total time.Duration, err error) {
	for _, name := range names {
		h, err := l.host(name)
		if err != nil {
			return 0, err
		}
		out, err := h.Exec(ctx, "sh", "-c", usage)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(out, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("host %s tells its processor time as %q", name, out)
		}
		total += time.Duration(n)
	}
	return total, nil
}
