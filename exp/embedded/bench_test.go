// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package embedded_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
)

// BenchmarkStart measures a start in an empty directory and one that finds its state there, the stop after it, and the
// resident memory of each process (MiB) when it is ready.
func BenchmarkStart(b *testing.B) {
	for _, kind := range []string{"cold", "warm"} {
		b.Run(kind, func(b *testing.B) {
			dir := b.TempDir()
			if kind == "warm" {
				p, err := embedded.Start(context.Background(), options(dir))
				if err != nil {
					b.Fatal(err)
				}
				stop(b, p)
			}
			sums := map[string]float64{}
			for b.Loop() {
				b.StopTimer()
				if kind == "cold" {
					dir = b.TempDir()
				}
				b.StartTimer()
				p, err := embedded.Start(context.Background(), options(dir))
				b.StopTimer()
				if err != nil {
					b.Fatal(err)
				}
				processes := childPIDs(b, dir)
				processes["self"] = os.Getpid()
				for name, pid := range processes {
					sums[name] += resident(b, pid)
				}
				begin := time.Now()
				stop(b, p)
				sums["stop"] += time.Since(begin).Seconds()
				b.StartTimer()
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "start-s")
			b.ReportMetric(sums["stop"]/float64(b.N), "stop-s")
			delete(sums, "stop")
			for name, sum := range sums {
				b.ReportMetric(sum/float64(b.N), name+"-MiB")
			}
		})
	}
}

// resident is VmRSS of proc(5) in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("process %d has no VmRSS", pid)
	return 0
}
