// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// claimant is a Machine in need of a host, and all that the choice depends on.
type claimant struct {
	machine *infrav1.KubexmMachine
	owner   *clusterv1.Machine

	// hosts are those of the machine's namespace, or the one that it has.
	hosts []infrav1.KubexmHost
	// ids are those of all hosts, of whatever namespaces, nil where the machine has its host.
	ids *identities
	// network is the cluster's, as far as a host must fit it.
	network spec.Network
	// preferred are the machine's preferences.
	preferred []preference
	// peers are the machines that do the same work as this one.
	peers peers
}

// choice is what a claimant gets: a host, or the reason why there is none.
type choice struct {
	host *infrav1.KubexmHost
	// claimed is whether the host is the machine's already.
	claimed bool

	reason, message string
	// retry is when a host may become free that nobody reports, 0 if there is no such host.
	retry time.Duration
}

// choose finds the machine's host. A machine that ever had a host gets that one or none: its Node's identity is there.
func (c *claimant) choose(now time.Time) choice {
	for i := range c.hosts {
		if c.hosts[i].IsOf(c.machine) {
			return choice{host: &c.hosts[i], claimed: c.hosts[i].Spec.ClaimRef.UID == string(c.machine.UID)}
		}
	}
	if had := c.machine.Spec.ProviderID; had != "" {
		return c.reclaim(had)
	}

	selector, err := selectorOf(&c.machine.Spec)
	if err == nil {
		c.preferred, err = preferencesOf(&c.machine.Spec)
	}
	if err != nil {
		return choice{reason: infrav1.NoHostReason, message: "spec." + err.Error()}
	}
	var free []*infrav1.KubexmHost
	refused := refusals{}
	for i := range c.hosts {
		host := &c.hosts[i]
		if why := c.unfit(host, selector); why != "" {
			refused.add(why, host.Name)
		} else if why := c.outside(host); why != "" {
			refused.add(why, host.Name)
			refused.retryAfter(networksAgain)
		} else if state := availability(host, now); !state.available {
			refused.add(state.refusal, host.Name)
			refused.retryAfter(state.until)
		} else if state := c.ids.refuses(host); state != nil {
			refused.add(state.refusal, host.Name)
		} else {
			free = append(free, host)
		}
	}
	if len(free) == 0 {
		return choice{reason: infrav1.NoHostReason, message: c.explain(refused), retry: refused.retry}
	}
	return choice{host: slices.MinFunc(free, c.compare)}
}

// orphan is a host that a machine of the same name has claimed, which is not this one, nil if there is none.
func (c *claimant) orphan() *infrav1.KubexmHost {
	for i := range c.hosts {
		if h := &c.hosts[i]; h.IsNamedBy(c.machine) && !h.IsOf(c.machine) && h.Spec.ClaimRef.UID != "" {
			return h
		}
	}
	return nil
}

// reclaim finds the host that the machine had, where the claim on it was lost.
func (c *claimant) reclaim(providerID string) choice {
	for i := range c.hosts {
		host := &c.hosts[i]
		if infrav1.ProviderID(host) != providerID {
			continue
		}
		if taken := host.Spec.ClaimRef; taken != (infrav1.MachineReference{}) {
			return choice{reason: infrav1.HostLostReason, message: fmt.Sprintf(
				"the KubexmMachine %s of the Cluster %s has claimed this Machine's host %s: delete this Machine", taken.Name, taken.ClusterName, host.Name)}
		}
		return choice{host: host}
	}
	return choice{reason: infrav1.HostLostReason, message: fmt.Sprintf(
		"the KubexmHost of %s does not exist any more: create it again, or delete this Machine", providerID)}
}

// unfit says why the machine does not want a host, or nothing.
func (c *claimant) unfit(host *infrav1.KubexmHost, selector labels.Selector) string {
	switch wanted := c.owner.Spec.FailureDomain; {
	case c.machine.Spec.HostName != "" && c.machine.Spec.HostName != host.Name:
		return "named otherwise"
	case !selector.Matches(labels.Set(host.Labels)):
		return "not selected"
	case wanted != "" && wanted != host.Spec.FailureDomain:
		return "not in the failure domain " + wanted
	}
	return lacks(host, c.machine.Spec.Requirements)
}

// compare prefers failure domains with fewer peers that stay, then with fewer peers at all, then hosts that are not known to be out of
// reach, then hosts by the machine's preferences, then those whose last heartbeat has shown that they can be used, then those that are free
// the longest, then hosts by name. A Machine that replaces an unhealthy one does not get that one's host while there is another as good.
func (c *claimant) compare(a, b *infrav1.KubexmHost) int {
	silent := func(h *infrav1.KubexmHost) int { return toInt(conditions.IsFalse(h, infrav1.ReachableCondition)) }
	alive := func(h *infrav1.KubexmHost) int {
		return toInt(conditions.IsTrue(h, infrav1.ReachableCondition) && !h.Status.LastHeartbeatTime.IsZero())
	}
	return cmp.Or(
		cmp.Compare(c.peers.staying[a.Spec.FailureDomain], c.peers.staying[b.Spec.FailureDomain]),
		cmp.Compare(c.peers.all[a.Spec.FailureDomain], c.peers.all[b.Spec.FailureDomain]),
		cmp.Compare(silent(a), silent(b)),
		cmp.Compare(c.weight(b), c.weight(a)),
		cmp.Compare(alive(b), alive(a)),
		freeSince(a).Compare(freeSince(b)),
		cmp.Compare(a.Name, b.Name),
	)
}

// toInt orders what is not so before what is.
func toInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// freeSince is when a host was reset, zero if it was never claimed.
func freeSince(host *infrav1.KubexmHost) time.Time {
	if clean := conditions.Get(host, infrav1.CleanCondition); clean != nil {
		return clean.LastTransitionTime.Time
	}
	return time.Time{}
}

// explain says why no host is free.
func (c *claimant) explain(refused refusals) string {
	if wanted := c.machine.Spec.HostName; wanted != "" {
		if !slices.ContainsFunc(c.hosts, func(h infrav1.KubexmHost) bool { return h.Name == wanted }) {
			return fmt.Sprintf("the KubexmHost %s does not exist in the namespace %s", wanted, c.machine.Namespace)
		}
		return fmt.Sprintf("the KubexmHost %s cannot be claimed: %s", wanted, refused.of(wanted))
	}
	if len(c.hosts) == 0 {
		return fmt.Sprintf("there are no KubexmHosts in the namespace %s", c.machine.Namespace)
	}
	return fmt.Sprintf("no host is free; of the %d in the namespace %s: %s", len(c.hosts), c.machine.Namespace, refused)
}

// refusals are hosts that cannot be claimed, in the order of their names, by reason.
type refusals struct {
	byReason map[string][]string
	retry    time.Duration
}

func (r *refusals) add(why, host string) {
	if r.byReason == nil {
		r.byReason = map[string][]string{}
	}
	r.byReason[why] = append(r.byReason[why], host)
}

func (r *refusals) retryAfter(wait time.Duration) {
	if wait > 0 && (r.retry == 0 || wait < r.retry) {
		r.retry = wait
	}
}

func (r refusals) of(host string) string {
	for why, hosts := range r.byReason {
		if slices.Contains(hosts, host) {
			return why
		}
	}
	return "unknown"
}

// String counts reasons, and names a few of the hosts.
func (r refusals) String() string {
	const named = 3
	var parts []string
	for why, hosts := range r.byReason {
		slices.Sort(hosts)
		names := strings.Join(hosts[:min(named, len(hosts))], ", ")
		if len(hosts) > named {
			names += ", …"
		}
		parts = append(parts, fmt.Sprintf("%d %s (%s)", len(hosts), why, names))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// work is what a Machine does: the Machines of one control plane or MachineDeployment do the same.
func work(machine *clusterv1.Machine) string {
	if _, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
		return "control plane"
	}
	return "deployment " + machine.Labels[clusterv1.MachineDeploymentNameLabel]
}

// peers count machines that do the same work, by the failure domain of their hosts: those that stay, and all. A rollout makes the successor
// of a machine before that goes: were both counted alike, the successors would be spread over what their predecessors leave.
type peers struct{ staying, all map[string]int }

// peersOf are those of owner that have a host.
func peersOf(owner *clusterv1.Machine, owners []clusterv1.Machine, machines []infrav1.KubexmMachine) peers {
	same := map[string]*clusterv1.Machine{}
	for i := range owners {
		if other := &owners[i]; other.Name != owner.Name && work(other) == work(owner) {
			same[other.Spec.InfrastructureRef.Name] = other
		}
	}
	count := peers{staying: map[string]int{}, all: map[string]int{}}
	for i := range machines {
		m := &machines[i]
		of := same[m.Name]
		if of == nil || m.Status.HostRef.Name == "" {
			continue
		}
		count.all[m.Status.FailureDomain]++
		if stays(of) {
			count.staying[m.Status.FailureDomain]++
		}
	}
	return count
}

// stays reports whether a Machine is neither deleted nor to be replaced, for all that is known. One whose host is on its way to what the
// Machine says stays.
func stays(machine *clusterv1.Machine) bool {
	now := conditions.Get(machine, clusterv1.MachineUpToDateCondition)
	outdated := now != nil && now.Status == metav1.ConditionFalse && now.Reason != clusterv1.MachineUpToDateUpdatingReason
	return machine.DeletionTimestamp.IsZero() && !outdated
}

// addressesOf are a host's addresses as Machines have them.
func addressesOf(host *infrav1.KubexmHost) clusterv1.MachineAddresses {
	addresses := clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: host.Name}}
	internal := host.Spec.InternalAddresses
	if len(internal) == 0 {
		internal = []string{host.Spec.Address}
	}
	for _, address := range internal {
		addresses = append(addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
	}
	return append(addresses, clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: host.Spec.Address})
}
