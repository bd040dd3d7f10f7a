// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// state is how far a host is.
type state int

const (
	// mayBegin: it is healthy, and has another version.
	mayBegin state = iota
	// goesFirst: it failed to come to the version that its Machine has, and now another one is asked for. Its pool stands still until it
	// is well, so that it begins before all others.
	goesFirst
	// isUnfit: it is unhealthy, and has another version.
	isUnfit
	// isUpgrading: its Machine has the version.
	isUpgrading
	// hasFailed: its Machine has the version, and its host failed to come to it; it is tried again.
	hasFailed
	// isDone: it has the version, and is healthy.
	isDone
)

// host is a Machine and what is known of its host.
type host struct {
	machine *clusterv1.Machine
	config  *bootstrapv1.KubexmConfig // nil if the Machine has none
	// name is the Node's, else the host's, else the Machine's.
	name  string
	state state
	// why says more of the state, "" if there is nothing to say.
	why string
}

func newHost(m *clusterv1.Machine, c *bootstrapv1.KubexmConfig, version string) *host {
	h := &host{machine: m, config: c, name: cmp.Or(m.Status.NodeRef.Name, m.Name)}
	if c != nil {
		h.name = cmp.Or(m.Status.NodeRef.Name, c.Status.Host.Name, m.Name)
	}
	available, asked := conditions.IsTrue(m, clusterv1.MachineAvailableCondition), m.Spec.Version == version
	switch health := hosthealth.Of(c, version); {
	case asked && (health.Phase == hosthealth.Failed || health.Phase == hosthealth.Retrying):
		h.state = hasFailed
	case asked && available && health.Phase == hosthealth.Healthy:
		h.state = isDone
	case asked:
		h.state = isUpgrading
	case c == nil:
		h.state = isUnfit
	case hosthealth.IsFailing(c) && c.Status.KubernetesVersion != "" && c.Status.KubernetesVersion != m.Spec.Version:
		h.state = goesFirst
	case !available || hosthealth.IsFailing(c) || !hosthealth.IsReady(c):
		h.state = isUnfit
	}
	if h.state != mayBegin && h.state != goesFirst && h.state != isDone {
		h.why = h.problem()
	}
	return h
}

// problem is what stands between a host and being healthy, "" if nothing does.
func (h *host) problem() string {
	if h.config == nil {
		return "its Machine has no KubexmConfig"
	}
	if missing := hosthealth.Missing(h.config); missing != nil {
		return cmp.Or(missing.Message, missing.Reason)
	}
	if c := conditions.Get(h.machine, clusterv1.MachineAvailableCondition); c != nil && c.Status != metav1.ConditionTrue {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

func (h *host) isCalled(name string) bool {
	return name == h.name || name == h.machine.Name || h.config != nil && name == h.config.Status.Host.Name
}

// hosts are some of them, in order.
type hosts []*host

func (all hosts) of(s state) hosts {
	return slices.DeleteFunc(slices.Clone(all), func(h *host) bool { return h.state != s })
}

func (all hosts) count(s state) int { return len(all.of(s)) }

// words is a line for each.
func (all hosts) words() []string {
	lines := make([]string, 0, len(all))
	for _, h := range all {
		line := h.name
		switch {
		case h.state == mayBegin, h.state == goesFirst:
			line += " is starting"
		case h.why != "":
			line += ": " + h.why
		case h.state == isUpgrading:
			line += " is being updated"
		}
		lines = append(lines, line)
	}
	return lines
}
