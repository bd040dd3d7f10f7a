// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosthealth says how a host is, by its KubexmConfig alone. It is pure, and the one answer for all reconcilers.
package hosthealth

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// Phase is how far a host is.
type Phase string

const (
	// Updating means that the host is not known to be what its KubexmConfig says yet.
	Updating Phase = "Updating"
	// Failed means the same, and that its last run has failed, or that its access is closed so that none will be.
	Failed Phase = "Failed"
	// Retrying means the same, and that another run goes on after some that have failed.
	Retrying Phase = "Retrying"
	// NotReady means that the host is what its KubexmConfig says, and its condition HostReady is not True.
	NotReady Phase = "NotReady"
	// Healthy means that nothing is missing.
	Healthy Phase = "Healthy"
)

// Reasons of a Health that is not Healthy, beside those of the host's own conditions.
const (
	// ConfigNotFoundReason means that the Machine has no KubexmConfig.
	ConfigNotFoundReason = "KubexmConfigNotFound"
	// OutdatedReason means that the host has another version of Kubernetes than it is to have.
	OutdatedReason = "HostOutdated"
	// ConvergingReason means that a run goes on.
	ConvergingReason = bootstrapv1.ConvergingReason
	// ChangeNotObservedReason means that the last change of the KubexmConfig was not brought to the host yet.
	ChangeNotObservedReason = "ChangeNotObserved"
)

// Health is how a host is, and why.
type Health struct {
	Phase Phase
	// Blocker is what stands between the host and being Healthy; nil if it is.
	*decision.Blocker
}

// Of is how the host of a KubexmConfig is that is to have this version of Kubernetes. Without a version, any will do.
func Of(c *bootstrapv1.KubexmConfig, version string) Health {
	if c == nil {
		return Health{Updating, decision.Block(ConfigNotFoundReason, "it has no KubexmConfig")}
	}
	if behind := Behind(c, version); behind != nil {
		switch {
		case c.Status.Operation(bootstrapv1.ConvergeOperation).Outcome == bootstrapv1.RunFailed, Closed(c) != nil:
			return Health{Failed, behind}
		case IsFailing(c):
			return Health{Retrying, behind}
		}
		return Health{Updating, behind}
	}
	ready := meta.FindStatusCondition(c.Status.Conditions, bootstrapv1.HostReadyCondition)
	switch {
	case ready == nil:
		return Health{NotReady, decision.Block(bootstrapv1.NotStartedReason, "it is not ready yet")}
	case ready.Status != metav1.ConditionTrue:
		return Health{NotReady, decision.Block(ready.Reason, "%s", cmp.Or(ready.Message, "it is not ready yet"))}
	}
	return Health{Phase: Healthy}
}

// IsFailing reports whether the host's last runs have failed, and none has succeeded since.
func IsFailing(c *bootstrapv1.KubexmConfig) bool {
	return ptr.Deref(c.Status.Operation(bootstrapv1.ConvergeOperation).Failures, 0) > 0
}

// Behind is why the host is not known to be what its KubexmConfig says with this version of Kubernetes; nil if it is. Whether it is
// reachable and its Node ready at present does not count.
func Behind(c *bootstrapv1.KubexmConfig, version string) *decision.Blocker {
	converged := meta.FindStatusCondition(c.Status.Conditions, bootstrapv1.HostConvergedCondition)
	waits := ""
	if allowed := Problem(c, bootstrapv1.DisruptionAllowedCondition); allowed != nil {
		waits = "; " + allowed.Reason + ", says its " + bootstrapv1.DisruptionAllowedCondition
	}
	last := c.Status.Operation(bootstrapv1.ConvergeOperation)
	switch has := c.Status.KubernetesVersion; {
	case converged == nil:
		return decision.Block(bootstrapv1.NotStartedReason, "it is not as planned yet")
	case converged.Status != metav1.ConditionTrue:
		return decision.Block(converged.Reason, "%s", strings.TrimSuffix("it is not as planned yet: "+converged.Message, ": "))
	case has == "" && version != "":
		return decision.Block(OutdatedReason, "it is not known to have %s yet", version)
	case has != version && version != "":
		return decision.Block(OutdatedReason, "it has %s, and is to have %s%s", has, version, waits)
	case !last.StartTime.IsZero() && last.EndTime.IsZero():
		return decision.Block(ConvergingReason, "a change is being made at present")
	case c.Status.ConvergedGeneration != c.Generation:
		return decision.Block(ChangeNotObservedReason, "it does not have the last change of its KubexmConfig yet%s", waits)
	}
	return nil
}

// IsReady reports whether the host was ready when it was last observed, whatever it is to become since.
func IsReady(c *bootstrapv1.KubexmConfig) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, bootstrapv1.HostReadyCondition)
}

// Closed is that the access to the host was closed for good, and what to do; nil if it was not. Such a host is well as long as it is what
// it must be, and nothing can be done with it.
func Closed(c *bootstrapv1.KubexmConfig) *decision.Blocker {
	if !c.IsClosed() {
		return nil
	}
	said := meta.FindStatusCondition(c.Status.Conditions, bootstrapv1.HostReachableCondition)
	return &decision.Blocker{Reason: said.Reason, Message: said.Message}
}

// isFalse is what a condition says that is False; nil if it is not. That the access to a host was closed is no fault of the host.
func isFalse(c *bootstrapv1.KubexmConfig, kind string) *decision.Blocker {
	said := meta.FindStatusCondition(c.Status.Conditions, kind)
	if said != nil && said.Status == metav1.ConditionFalse && (kind != bootstrapv1.HostReachableCondition || !c.IsClosed()) {
		return &decision.Blocker{Reason: said.Reason, Message: said.Message}
	}
	return nil
}

// Problem is the first of these conditions that is False; nil if none is. A host on its way to what it must be has none.
func Problem(c *bootstrapv1.KubexmConfig, kinds ...string) *decision.Blocker {
	for _, kind := range kinds {
		if said := isFalse(c, kind); said != nil && said.Reason != bootstrapv1.ConvergingReason {
			return said
		}
	}
	return nil
}

// Missing is what a host waits for, be it a problem or not: the first of its conditions that is False, in the order in which it comes to
// them; nil if none is. The summary is the last: the others say the same in fewer words.
func Missing(c *bootstrapv1.KubexmConfig) *decision.Blocker {
	for _, kind := range []string{
		bootstrapv1.HostResetCondition, // of a host that leaves, nothing else counts
		bootstrapv1.DataSecretAvailableCondition, bootstrapv1.HostReachableCondition, bootstrapv1.PreflightPassedCondition,
		bootstrapv1.HostConvergedCondition, bootstrapv1.NodeJoinedCondition, bootstrapv1.DisruptionAllowedCondition,
		bootstrapv1.HostReadyCondition,
	} {
		if said := isFalse(c, kind); said != nil {
			return said
		}
	}
	return nil
}

// WithReason is a Blocker as "Reason: message", "" if it is nil.
func WithReason(b *decision.Blocker) string {
	if b == nil {
		return ""
	}
	return strings.TrimSuffix(b.Reason+": "+b.Message, ": ")
}

// CanReboot reports whether the host can be rebooted: by itself, or by its management controller.
func CanReboot(c *bootstrapv1.KubexmConfig) bool { return Answers(c) || c.Status.Host.BMCAddress != "" }

// Answer is what a host says of what it was asked for at a time; nil as long as it has not ended. What was asked for later has answered
// that, too. Without a KubexmConfig, nobody answers.
func Answer(c *bootstrapv1.KubexmConfig, kind bootstrapv1.OperationType, asked time.Time) *bootstrapv1.OperationStatus {
	if c == nil {
		return nil
	}
	last := c.Status.Operation(kind)
	if last.RequestTime.Time.Before(asked) || last.EndTime.IsZero() || last.Outcome == bootstrapv1.RunInterrupted {
		return nil
	}
	return last
}

// Answers reports whether the host was reached when it was last tried to, or was not tried yet.
func Answers(c *bootstrapv1.KubexmConfig) bool {
	return !meta.IsStatusConditionFalse(c.Status.Conditions, bootstrapv1.HostReachableCondition)
}
