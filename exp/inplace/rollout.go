// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment/mdutil"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// Rollout is all that is known of a MachineDeployment, and the decisions that follow from it alone.
type Rollout struct {
	Deployment *clusterv1.MachineDeployment
	// ControlPlane is the Cluster's, nil if it has none.
	ControlPlane *controlplanev1.KubexmControlPlane
	// MachineSets are the MachineDeployment's, Machines theirs, and Configs those of the Machines.
	MachineSets []clusterv1.MachineSet
	Machines    []clusterv1.Machine
	Configs     []bootstrapv1.KubexmConfig
}

// Kind is what is done next.
type Kind string

const (
	// Rest does nothing until something changes.
	Rest Kind = "Rest"
	// Upgrade gives Machines the version.
	Upgrade Kind = "Upgrade"
	// Pause keeps Cluster API from comparing templates.
	Pause Kind = "Pause"
	// Template gives the MachineSet's template the version.
	Template Kind = "Template"
	// Finish gives the MachineDeployment's template the version, and ends the pause.
	Finish Kind = "Finish"
	// Clear takes the annotations off.
	Clear Kind = "Clear"
	// Release ends the pause of what is being deleted.
	Release Kind = "Release"
)

// Act is what is done next, and what is said of it.
type Act struct {
	Kind Kind
	// Version is the version that is asked for.
	Version string
	// Machines are those that Upgrade is for, MachineSet is what Template is for.
	Machines   []*clusterv1.Machine
	MachineSet *clusterv1.MachineSet
	// Reason and Message are those of UpgradingCondition. Without a reason there is nothing to say.
	Reason, Message string
}

// Decide says what is done next. Each act is one request, and leads to a state from which the next follows, no matter who decides.
func (r *Rollout) Decide() Act {
	switch version := pausedFor(r.Deployment); {
	case version != "" && !r.Deployment.DeletionTimestamp.IsZero():
		return Act{Kind: Release}
	case version != "":
		return r.complete(version)
	}
	version := r.Deployment.Annotations[VersionAnnotation]
	if version == "" {
		return r.ended()
	}
	if why := cmp.Or(r.refuses(version), r.replaces(), r.awaitsControlPlane(version)); why != nil {
		return Act{Kind: Rest, Version: version, Reason: why.Reason, Message: why.Message}
	}
	hosts := r.hosts(version)
	if hosts.count(isDone) < len(hosts) || r.missing() > 0 {
		return r.slide(version, hosts)
	}
	if r.Deployment.Spec.Template.Spec.Version == version {
		return Act{Kind: Clear, Version: version, Reason: UpgradedReason, Message: upgraded(len(hosts), version)}
	}
	return Act{Kind: Pause, Version: version, Reason: CompletingReason,
		Message: upgraded(len(hosts), version) + "; updating the MachineDeployment's template"}
}

func upgraded(n int, version string) string {
	return fmt.Sprintf("%d of %d Machines have %s", n, n, version)
}

// ended is what is said when nothing is asked for.
func (r *Rollout) ended() Act {
	if !conditions.IsTrue(r.Deployment, UpgradingCondition) {
		return Act{Kind: Rest}
	}
	version := r.Deployment.Spec.Template.Spec.Version
	if slices.ContainsFunc(r.Machines, func(m clusterv1.Machine) bool { return m.Spec.Version != version }) {
		return Act{Kind: Rest, Reason: CanceledReason, Message: "the annotation " + VersionAnnotation + " was removed; Machines keep their versions"}
	}
	return Act{Kind: Rest, Reason: UpgradedReason, Message: upgraded(len(r.Machines), version)}
}

// slide lets as many hosts begin as the window has room for.
func (r *Rollout) slide(version string, hosts hosts) Act {
	act := Act{Kind: Rest, Version: version, Reason: UpgradingReason}
	tell := func(more ...string) {
		parts := append([]string{fmt.Sprintf("%d of %d Machines have %s", hosts.count(isDone), len(hosts), version)}, more...)
		act.Message = strings.Join(parts, "\n")
	}
	if broken := hosts.of(hasFailed); len(broken) > 0 {
		act.Reason = HostFailedReason
		tell(append(broken.words(), "No other host is updated until these have the version. Their KubexmConfigs say more.")...)
		return act
	}
	window := max(1, int(mdutil.MaxUnavailable(*r.Deployment)))
	next := hosts.of(mayBegin)
	if canary := r.canary(hosts); canary != nil && canary.state != isDone {
		window, next = 1, slices.DeleteFunc(next, func(h *host) bool { return h != canary })
	}
	if first := hosts.of(goesFirst); len(first) > 0 {
		next = first // also before the canary, which could not take its turn either
	}
	room := window - hosts.count(isUpgrading) - hosts.count(isUnfit) - r.missing()
	begin := next[:max(0, min(room, len(next)))]
	if underway := append(hosts.of(isUpgrading), begin...); len(underway) > 0 {
		tell(underway.words()...)
	} else {
		act.Reason = WaitingForMachinesReason
		words := hosts.of(isUnfit).words()
		if n := r.missing(); n > 0 {
			words = append(words, fmt.Sprintf("%d of %d Machines are missing", n, ptr.Deref(r.Deployment.Spec.Replicas, 1)))
		}
		tell(append(words, fmt.Sprintf(
			"Unhealthy hosts are not upgraded, and count among the %d that may be unavailable: repair them, or delete their Machines.", window))...)
	}
	if len(begin) > 0 {
		act.Kind = Upgrade
		for _, h := range begin {
			act.Machines = append(act.Machines, h.machine)
		}
	}
	return act
}

// missing is how many Machines there are too few.
func (r *Rollout) missing() int {
	alive := 0
	for i := range r.Machines {
		if r.Machines[i].DeletionTimestamp.IsZero() {
			alive++
		}
	}
	return max(0, int(ptr.Deref(r.Deployment.Spec.Replicas, 1))-alive)
}

// canary is the host that goes first, nil if none was named.
func (r *Rollout) canary(all hosts) *host {
	name := r.Deployment.Annotations[CanaryAnnotation]
	at := slices.IndexFunc(all, func(h *host) bool { return name != "" && h.isCalled(name) })
	if at < 0 {
		return nil
	}
	return all[at]
}

// complete makes the templates say what the Machines are.
func (r *Rollout) complete(version string) Act {
	act := Act{Kind: Rest, Version: version, Reason: CompletingReason}
	set := r.populated()
	switch {
	case !conditions.IsTrue(r.Deployment, clusterv1.PausedCondition):
		act.Message = "Cluster API has not paused the MachineDeployment yet"
	case set != nil && set.Spec.Template.Spec.Version != version:
		act.Kind, act.MachineSet = Template, set
		act.Message = "updating the template of the MachineSet " + set.Name + " to " + version
	case set != nil && set.Status.ObservedGeneration < set.Generation:
		act.Message = "Cluster API has not seen the MachineSet " + set.Name + " with the version " + version + " yet"
	default:
		act.Kind, act.Reason, act.Message = Finish, UpgradedReason, upgraded(len(r.Machines), version)
		if r.older(version) {
			act.Reason, act.Message = UpgradingReason, "a Machine was made meanwhile, and is upgraded too"
		}
	}
	return act
}

// older reports whether a Machine was made with an older version while the others were upgraded.
func (r *Rollout) older(version string) bool {
	return slices.ContainsFunc(r.Machines, func(m clusterv1.Machine) bool {
		return m.DeletionTimestamp.IsZero() && m.Spec.Version != version
	})
}

// populated is the MachineSet that has the Machines, nil if none is made of the MachineDeployment's template but for the
// version.
func (r *Rollout) populated() *clusterv1.MachineSet {
	var found *clusterv1.MachineSet
	for i := range r.MachineSets {
		set := &r.MachineSets[i]
		wanted := r.Deployment.Spec.Template.DeepCopy()
		wanted.Spec.Version = set.Spec.Template.Spec.Version
		if same, _ := mdutil.MachineTemplateUpToDate(&set.Spec.Template, wanted); !same {
			continue
		}
		if found == nil || replicas(set) > replicas(found) {
			found = set
		}
	}
	return found
}

func replicas(set *clusterv1.MachineSet) int32 {
	return max(ptr.Deref(set.Spec.Replicas, 0), ptr.Deref(set.Status.Replicas, 0))
}

// replaces is why Cluster API's own work comes first, nil if it has none.
func (r *Rollout) replaces() *decision.Blocker {
	md := r.Deployment
	if md.Status.ObservedGeneration < md.Generation || conditions.IsTrue(md, clusterv1.PausedCondition) {
		return decision.Block(WaitingForRolloutReason, "Cluster API has not observed the MachineDeployment's last change yet")
	}
	current := false
	for i := range r.MachineSets {
		set := &r.MachineSets[i]
		same, difference := mdutil.MachineTemplateUpToDate(&set.Spec.Template, &md.Spec.Template)
		switch {
		case same:
			current = true
		case replicas(set) > 0:
			return decision.Block(WaitingForRolloutReason, "Machines of the MachineSet %s are being replaced: %s", set.Name, strings.Join(difference.ConditionMessages, ", "))
		}
	}
	if !current {
		return decision.Block(WaitingForRolloutReason, "the MachineDeployment has no MachineSet of its template yet")
	}
	for i := range r.Machines {
		m := &r.Machines[i]
		if !m.DeletionTimestamp.IsZero() {
			return decision.Block(WaitingForRolloutReason, "the Machine %s is being deleted", m.Name)
		}
		if _, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]; updating {
			return decision.Block(WaitingForRolloutReason, "the Machine %s is updated in place by Cluster API's hooks", m.Name)
		}
	}
	return nil
}

// awaitsControlPlane is why no kubelet may have the version yet, nil if it may: kubelets are never newer than an API server.
func (r *Rollout) awaitsControlPlane(version string) *decision.Blocker {
	switch c := r.ControlPlane; {
	case c == nil:
		return decision.Block(WaitingForControlPlaneReason, "the Cluster has no KubexmControlPlane, which says what its hosts share")
	case older(c.Spec.Version, version):
		return decision.Block(WaitingForControlPlaneReason, "the control plane is to have %s: set the KubexmControlPlane's spec.version to %s first", c.Spec.Version, version)
	case len(c.Status.Versions) == 0:
		return decision.Block(WaitingForControlPlaneReason, "it is not known yet which version the control plane has")
	default:
		for _, has := range c.Status.Versions {
			if older(has.Version, version) {
				return decision.Block(WaitingForControlPlaneReason, "%d of the control plane's Machines have %s still", has.Replicas, has.Version)
			}
		}
	}
	return nil
}

// configOf is a Machine's KubexmConfig, nil if it has none.
func (r *Rollout) configOf(m *clusterv1.Machine) *bootstrapv1.KubexmConfig {
	at := slices.IndexFunc(r.Configs, func(c bootstrapv1.KubexmConfig) bool { return c.Name == m.Spec.Bootstrap.ConfigRef.Name })
	if at < 0 {
		return nil
	}
	return &r.Configs[at]
}

// hosts are all of the MachineDeployment's, by their names.
func (r *Rollout) hosts(version string) hosts {
	var all hosts
	for i := range r.Machines {
		all = append(all, newHost(&r.Machines[i], r.configOf(&r.Machines[i]), version))
	}
	slices.SortFunc(all, func(a, b *host) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Pause changes a MachineDeployment as the kind of the same name says.
func (a Act) Pause(md *clusterv1.MachineDeployment) {
	metav1.SetMetaDataAnnotation(&md.ObjectMeta, clusterv1.PausedAnnotation, pausePrefix+a.Version)
}

// Finish changes a MachineDeployment as the kind of the same name says. What is asked for stays where there is more to do.
func (a Act) Finish(md *clusterv1.MachineDeployment) {
	md.Spec.Template.Spec.Version = a.Version
	delete(md.Annotations, clusterv1.PausedAnnotation)
	if a.Reason == UpgradedReason && md.Annotations[VersionAnnotation] == a.Version {
		a.Clear(md)
	}
}

// Clear changes a MachineDeployment as the kind of the same name says.
func (a Act) Clear(md *clusterv1.MachineDeployment) {
	delete(md.Annotations, VersionAnnotation)
	delete(md.Annotations, CanaryAnnotation)
}

// Release changes a MachineDeployment as the kind of the same name says.
func (a Act) Release(md *clusterv1.MachineDeployment) {
	delete(md.Annotations, clusterv1.PausedAnnotation)
}

// Condition is UpgradingCondition as it is while the act is done.
func (a Act) Condition() metav1.Condition {
	status := metav1.ConditionTrue
	switch a.Reason {
	case UpgradedReason, CanceledReason, InvalidReason:
		status = metav1.ConditionFalse
	}
	return metav1.Condition{Type: UpgradingCondition, Status: status, Reason: a.Reason, Message: a.Message}
}
