// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// memberPhase is one phase of a member: the whole protocol by which a host joins and leaves is the table of them.
type memberPhase struct {
	phase bootstrapv1.MemberPhase
	// holds reports whether a member is in this phase, or beyond it.
	holds func(memberState) bool
	// begins says the same in words, others what other hosts do then, and own what the host's own reconciler does. They are rows of
	// docs/architecture.md.
	begins, others, own string
}

// memberState is all that a phase follows from.
type memberState struct {
	host
	// was is the phase that the member had last.
	was bootstrapv1.MemberPhase
	// missed is whether it has a member of etcd that counts for others that stay.
	missed bool
	// versioned is whether the host was brought to a version of Kubernetes, and stopped whether it is known what became of its API server.
	versioned, stopped bool
}

// memberPhases are all of them, in the order in which a member goes through them.
var memberPhases = []memberPhase{
	{
		phase:  bootstrapv1.MemberJoining,
		holds:  func(memberState) bool { return true },
		begins: "its KubexmConfig exists; nothing is made of it before its address is known",
		others: "list it: load balancers as a server that health checks keep away until it answers, etcd hosts and API servers as a " +
			"member to be found",
		own: "makes the host what it must be",
	},
	{
		phase: bootstrapv1.MemberServing,
		holds: func(m memberState) bool {
			return !m.isLeaving() && (m.was == bootstrapv1.MemberServing || m.versioned)
		},
		begins: "the host was brought to a version once",
		others: "as before: the change of phase changes no plan",
		own:    "keeps it so",
	},
	{
		phase:  bootstrapv1.MemberDraining,
		holds:  func(m memberState) bool { return !m.stays },
		begins: "its Machine (or its KubexmConfig, if it has none) is deleted",
		others: "drop it; its etcd member exists still",
		own: "stops the API server once the Node is drained, where etcd is beside it, and says so in APIServerStopped, which is True, " +
			"or False where that was given up; if the condition is lost, it does so again",
	},
	{
		phase: bootstrapv1.MemberRemoved,
		holds: func(m memberState) bool {
			switch {
			case m.stays:
				return false
			case m.was == bootstrapv1.MemberRemoved:
				return true
			case !m.missed:
				return false
			case m.role == spec.RoleEtcd:
				return true
			case m.was == bootstrapv1.MemberJoining && !m.versioned: // it had no API server yet
				return m.drained || !m.hasNode
			}
			return m.drained && m.stopped
		},
		begins: "the Node is drained and APIServerStopped is there; at once for a host that never served, and for one of etcd's own",
		others: "those with etcd remove its member; a host that was brought to this very list has its digest in `status.membersDigest`",
		own:    "waits; when one staying host has the digest, the hook comes off, and the host is reset",
	},
}

// isLeaving reports whether the member was on its way out. If it stays now, its deletion was not moved along with it.
func (m *memberState) isLeaving() bool {
	return m.was == bootstrapv1.MemberDraining || m.was == bootstrapv1.MemberRemoved
}

// phase is that of a host: the last that holds.
func (c *ControlPlane) phase(h host) bootstrapv1.MemberPhase {
	m := memberState{host: h, was: bootstrapv1.MemberJoining, missed: h.etcd && c.missed(h)}
	if known := c.known(h.name); known != nil {
		m.was = known.Phase
	}
	if h.config != nil {
		m.versioned = h.config.Status.KubernetesVersion != ""
		m.stopped = conditions.Has(h.config, bootstrapv1.APIServerStoppedCondition)
	}
	for _, p := range slices.Backward(memberPhases) {
		if p.holds(m) {
			return p.phase
		}
	}
	return bootstrapv1.MemberJoining
}
