// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Template is what an infrastructure machine was made from: the template's kind and group, such as
// KubexmMachineTemplate.infrastructure.cluster.x-k8s.io, and its name.
type Template struct{ GroupKind, Name string }

// Change is something by which a Machine differs from what is declared.
type Change struct {
	// Text says what, in the words of Cluster API's own control plane: its tools put versions first.
	Text string
	// InPlace is whether the Machine's host follows where it is. For all else, the Machine is replaced.
	InPlace bool
	// Version is whether it is one of the version of Kubernetes.
	Version bool
	// ByTime is whether it comes with time, and not by what is declared.
	ByTime bool
}

// Changes are why a Machine is not up to date; none if it is. What hosts share is not among them: hosts follow that.
func (c *ControlPlane) Changes(m *clusterv1.Machine) []Change {
	var changes []Change
	object := c.Object.Spec
	if is := m.Spec.Version; is != object.Version {
		changes = append(changes, Change{
			Text:    fmt.Sprintf("Version %s, %s required", is, object.Version),
			InPlace: object.Rollout.Strategy.Type == controlplanev1.InPlaceStrategy, Version: true,
		})
	}
	wanted := object.MachineTemplate.Spec.InfrastructureRef
	if made, known := c.Templates[m.Name]; known && made != (Template{wanted.GroupKind().String(), wanted.Name}) {
		changes = append(changes, Change{Text: fmt.Sprintf("%s is not up-to-date: it was made from %s, %s required",
			m.Spec.InfrastructureRef.Kind, made.Name, wanted.Name)})
	}
	if after := object.Rollout.After; !after.IsZero() && after.Time.Before(c.Now) && m.CreationTimestamp.Before(&after) {
		changes = append(changes, Change{Text: "KubexmControlPlane spec.rollout.after expired"})
	}
	if _, soon := c.certificatesEndSoon(m); soon {
		changes = append(changes, Change{Text: "Certificates will expire soon", ByTime: true})
	}
	return changes
}

// Following is what a Machine's host is still on its way to; none if it is there.
func (c *ControlPlane) Following(m *clusterv1.Machine) []Change {
	wanted := m.Spec.Version
	if config := c.ConfigOf(m); config != nil {
		if has := config.Status.KubernetesVersion; has != "" && has != wanted {
			return []Change{{Text: fmt.Sprintf("KubexmConfig.status.kubernetesVersion %s, %s required", has, wanted)}}
		}
	}
	if info := m.Status.NodeInfo; info != nil && info.KubeletVersion != "" && info.KubeletVersion != wanted {
		return []Change{{Text: fmt.Sprintf("Node.status.nodeInfo.kubeletVersion %s, %s required", info.KubeletVersion, wanted)}}
	}
	return nil
}

// outdated are the Machines that are not up to date and not being deleted, the oldest first: those to replace, and those whose
// hosts only have to follow.
func (c *ControlPlane) outdated() (replace, follow []clusterv1.Machine) {
	for _, m := range c.Own() {
		changes := c.Changes(&m)
		switch {
		case len(changes) == 0 || !m.DeletionTimestamp.IsZero():
		case slices.ContainsFunc(changes, func(change Change) bool { return !change.InPlace }):
			replace = append(replace, m)
		default:
			follow = append(follow, m)
		}
	}
	return replace, follow
}

// maxSurge is how many Machines there may be beside replicas while Machines are replaced.
func (c *ControlPlane) maxSurge() int {
	return int(ptr.Deref(c.Object.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, 1))
}

// irreplaceable is why Machines cannot be replaced at all; nil if they can be.
func (c *ControlPlane) irreplaceable() *decision.Blocker {
	shared := c.Shared()
	switch {
	case !shared.LoadBalancer.IsPresent():
		return decision.Block(ReplacementImpossibleReason, "the API server is reached at the one host that there is, which cannot be replaced "+
			"by another: "+
			"set rollout.strategy.type to InPlace, which is for other versions, or take the change back")
	case c.Replicas() < 2 && c.maxSurge() == 0:
		return decision.Block(ReplacementImpossibleReason, "there is one Machine, and without it no cluster: "+
			"set rollout.strategy.rollingUpdate.maxSurge to 1, or rollout.strategy.type to InPlace")
	}
	return nil
}

// mostMinorsBehind is how many minor versions a kubelet may be older than an API server (Kubernetes' version skew policy).
const mostMinorsBehind = 3

// unready is why Machines may not be brought to the declared version yet; nil if they may: etcd's own hosts, which follow it by
// themselves, come before; and no kubelet may be left behind too far.
func (c *ControlPlane) unready() *decision.Blocker {
	wanted := c.Object.Spec.Version
	for i := range c.Configs {
		config := &c.Configs[i]
		if config.Spec.HostRef.Role != spec.RoleEtcd || !c.Controls(config) || !config.DeletionTimestamp.IsZero() {
			continue
		}
		if behind := hosthealth.Behind(config, wanted); behind != nil {
			return decision.Block(WaitingForEtcdHostsReason, "etcd's host %s is updated first: %s", config.Spec.HostRef.Name, behind)
		}
	}
	for _, m := range c.Workers() {
		if has := VersionOf(&m); minorsBetween(has, wanted) > mostMinorsBehind {
			return decision.Block(KubeletTooOldReason, "the Machine %s has %s, and kubelets may be %d minor versions older than API servers at most: upgrade it first",
				m.Name, has, mostMinorsBehind)
		}
	}
	return nil
}

// minorsBetween is how many minor versions one version is older than another; 0 where that cannot be said.
func minorsBetween(older, newer string) int {
	a, err := version.ParseSemantic(older)
	if err != nil {
		return 0
	}
	b, err := version.ParseSemantic(newer)
	if err != nil || a.Major() != b.Major() {
		return 0
	}
	return int(b.Minor()) - int(a.Minor())
}

// why are changes in one line, each once.
func (c *ControlPlane) why(machines []clusterv1.Machine) string {
	var texts []string
	for i := range machines {
		for _, change := range c.Changes(&machines[i]) {
			if !slices.Contains(texts, change.Text) {
				texts = append(texts, change.Text)
			}
		}
	}
	return strings.Join(texts, "; ")
}
