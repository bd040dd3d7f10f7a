// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

// Engine runs plans. It holds no state between runs and may be used concurrently.
type Engine struct{ o Options }

// New returns an Engine.
func New(o Options) *Engine { return &Engine{o: o.withDefaults()} }

// Run makes the plan so and waits for the end. The error is an *Error that lists root causes. When ctx ends, what is under
// way is stopped at once and the error wraps its cause.
func (e *Engine) Run(ctx context.Context, p *plan.Plan) (Report, error) {
	return e.run(ctx, p, e.o.Reader)
}
