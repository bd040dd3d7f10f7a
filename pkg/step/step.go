// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Step is one idempotent act. Implementations are values with exported, serialisable fields and no state.
type Step interface {
	// Meta describes the step.
	Meta() Meta
	// Observe says what must be known of the host to decide. It is empty for steps on the controller.
	Observe() host.Query
	// Precheck compares the desired state with what was seen. No difference means that nothing needs to be done. It is
	// pure. An error means that it cannot be decided; ErrUnknown, that an input is not there yet.
	Precheck(v View) (Diff, error)
	// Run makes it so. The caller verifies afterwards: it looks again, and Precheck must find no difference. (Steps that
	// only wait verify themselves.)
	Run(ctx context.Context, rt *Runtime) error
	// Rollback restores what was there before Run.
	Rollback(ctx context.Context, rt *Runtime) error
}

// Actor is a step whose Run is one act on the host: all that neighbours want is then done in one exchange.
type Actor interface {
	Step
	// Effect says what to change, given what was seen. It is called only when Precheck finds a difference.
	Effect(v View) (Effect, error)
}

// Effect is what an Actor wants done to a host.
type Effect struct {
	Changes []host.Change
	// Blobs must be staged first.
	Blobs []Artifact
	// Stdin feeds the one Command among Changes that streams.
	Stdin *Artifact
}

// Meta is what a step says of itself.
type Meta struct {
	// Name is component/act, e.g. "containerd/config". It is unique within a task.
	Name string `json:"name"`
	// Description is one line for a person.
	Description string `json:"description,omitempty"`
	// Timeout of one attempt; 0 means DefaultTimeout.
	Timeout Duration `json:"timeout,omitempty"`
	// Retry policy; the zero value means that a failure is final, except where the connection was lost.
	Retry Retry `json:"retry,omitzero"`
	// Takes and Makes are the names of outputs that the step needs and produces.
	Takes []string `json:"takes,omitempty"`
	Makes []string `json:"makes,omitempty"`
	// Disrupts says in a few words what users of the host notice when the step runs ("restarts kubelet").
	Disrupts string `json:"disrupts,omitempty"`
	// Follows says whether the host follows the other members of its cluster by the step, which then does not wait for what other
	// changes of a host in use wait for: it would harm more than the step does.
	Follows Follows `json:"follows,omitempty"`
	// Stays, if not "", says what has no way back once the step is done ("etcd"): no rollback of a task, a run or a savepoint takes back
	// what its task did, this step and those before it. Only a reset does.
	Stays string `json:"stays,omitempty"`
}

// Follows is when a step is one by which a host follows the other members of its cluster. Empty is never.
type Follows string

const (
	// FollowsAlways is whatever the step disrupts.
	FollowsAlways Follows = "Always"
	// FollowsUnlessDisruptive is where the step disrupts nothing.
	FollowsUnlessDisruptive Follows = "UnlessDisruptive"
	// FollowsOthers is together with such steps: it brings what they need, and is no reason to act by itself.
	FollowsOthers Follows = "Others"
)

// DefaultTimeout bounds an attempt of a step that names no timeout.
const DefaultTimeout = 5 * time.Minute

// Retry says how often and after what delay a failed attempt is repeated.
type Retry struct {
	// Attempts in all; 0 means 1.
	Attempts int `json:"attempts,omitempty"`
	// Delay before the second attempt, doubled for each further one up to MaxDelay, with jitter.
	Delay    Duration `json:"delay,omitempty"`
	MaxDelay Duration `json:"maxDelay,omitempty"`
}

// Diff is what Precheck finds; empty means so already.
type Diff []Delta

// Delta is one difference, in words for a person and without secrets.
type Delta struct {
	// Subject is the resource, as host.Change.Key names it.
	Subject string `json:"subject"`
	// From and To are short: a value, a digest, "absent".
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// View is what a decision is made from.
type View struct {
	// Facts of the host; nil on the controller.
	Facts *host.Facts
	// Values resolves references; see Text.
	Values Values
	// Node is the plan node's ID and Digest the digest of its step, as the journal knows them.
	Node, Digest string
}

// Values resolves what stands in a step as a reference.
type Values interface {
	// Secret returns a secret's value. The error names the reference, never the value.
	Secret(ref SecretRef) ([]byte, error)
	// Output returns an output, or ErrUnknown when nothing has made it yet.
	Output(name string) ([]byte, error)
}
