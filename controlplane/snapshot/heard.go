// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// fresh is how old what etcd has said may be when one of its members is removed: the Node is drained and the API server ended before
// the member goes, and it would not go then if another one had died meanwhile.
const fresh = time.Minute

// confirmedHealthy is how many of the etcd members on these Machines' hosts have just said that they are healthy. Why is the reason that
// not all are counted, and ask are those to be asked for that now.
func (c *ControlPlane) confirmedHealthy(of []clusterv1.Machine) (well int, ask []clusterv1.Machine, why *decision.Blocker) {
	for i := range of {
		m, config := &of[i], c.ConfigOf(&of[i])
		switch {
		case config == nil:
			why = cmp.Or(why, decision.Block(controlplanev1.HealthUnknownReason, "it is not known how etcd is on the host of the Machine %s: its KubexmConfig does not exist", m.Name))
			continue
		case !m.Status.NodeRef.IsDefined():
			why = cmp.Or(why, c.HasNoNode(m))
			continue
		}
		said := &config.Status.Etcd
		status, problem := c.EtcdMember(m)
		switch {
		case !c.isFresh(said.ObservedTime.Time):
			if !c.isFresh(config.Asked(bootstrapv1.AskEtcdAnnotation)) {
				ask = append(ask, *m)
			}
			since := "never"
			if !said.ObservedTime.IsZero() {
				since = "last at " + said.ObservedTime.UTC().Format(time.RFC3339)
			}
			why = cmp.Or(why, decision.Block(WaitingForEtcdReason, "before a member of etcd is removed, the others must be known to be healthy: etcd on the "+
				"host of the Machine %s was %s asked, and is asked now", m.Name, since))
		case said.Message != "" || status == metav1.ConditionFalse:
			why = cmp.Or(why, decision.Block(MachineUnhealthyReason, "the Machine %s is not healthy: etcd: %s", m.Name, problem))
		case hosthealth.Problem(config, bootstrapv1.HostReachableCondition) != nil:
			why = cmp.Or(why, decision.Block(controlplanev1.HealthUnknownReason,
				"it is not known whether the Machine %s is healthy: etcd: %s", m.Name, problem))
		default:
			well++
		}
	}
	return well, ask, why
}

func (c *ControlPlane) isFresh(at time.Time) bool {
	return !at.IsZero() && c.Now.Sub(at).Abs() <= fresh
}

// awaitEtcd lets a Machine be deleted once the etcd of all others has just said that it is well, and asks for that before.
func (c *ControlPlane) awaitEtcd(d Decision) Decision {
	if d.Delete == nil || !c.Stacked() {
		return d
	}
	others := slices.DeleteFunc(c.Own(), func(m clusterv1.Machine) bool { return m.Name == d.Delete.Name })
	if _, ask, why := c.confirmedHealthy(others); why != nil {
		return Decision{Blocked: why, Ask: ask}
	}
	return d
}
