// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"context"
	"iter"
	"time"
)

// cuts kills the program again and again, a little later each time, until it ends by itself or the loop does: after first, then after what
// next makes of that. It yields after how long the program was killed, and wants that to be least times or more.
func (e *environment) cuts(args []string, least int, first time.Duration, next func(time.Duration) time.Duration) iter.Seq[time.Duration] {
	e.t.Helper()
	return func(yield func(time.Duration) bool) {
		e.t.Helper()
		count := 0
		for after := first; ; after = next(after) {
			ctx, cancel := context.WithTimeout(e.t.Context(), after)
			out, err := e.Run(ctx, args...)
			cut := ctx.Err() != nil
			cancel()
			if err == nil {
				break
			}
			if !cut {
				e.t.Fatalf("after %d cuts: %s", count, out)
			}
			if count++; !yield(after) {
				break
			}
		}
		if e.t.Logf("cut %d times", count); count < least {
			e.t.Errorf("it was cut %d times only", count)
		}
	}
}

// later adds the same each time.
func later(by time.Duration) func(time.Duration) time.Duration {
	return func(after time.Duration) time.Duration { return after + by }
}
