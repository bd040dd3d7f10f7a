// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// targetOf is what a host must be. The error has the path of every field that is wrong, as seen from the target.
func targetOf(s *scope) (spec.Target, error) {
	t := spec.Target{
		ClusterName:       s.cluster.Name,
		KubernetesVersion: s.clusterConfig.Spec.Version,
		Cluster:           s.shared(),
		Node:              *s.config.Spec.Node.DeepCopy(),
	}
	t.Host = hostOf(s.host, s.role(), &t.Cluster.Network)
	if s.machine != nil {
		t.KubernetesVersion = cmp.Or(s.machine.Spec.Version, t.KubernetesVersion)
		limitDrain(&t, s.machine)
	}
	follow(&t, s)
	// When the host may be changed is no part of what it must be.
	t.Cluster.Disruption, t.Node.Disruption = spec.Disruption{}, spec.Disruption{}
	withoutPolicies(&t)
	withoutStrangers(&t)
	t.Default()
	if errs := t.Validate(field.NewPath("target")); len(errs) > 0 {
		return t, errs.ToAggregate()
	}
	if t.Host.Role == spec.RoleWorker {
		// Not before the validation, which keeps users from setting it: Cluster API takes it off again when the Node has
		// the Machine's labels (contract of bootstrap providers, "Taint Nodes at creation").
		t.Node.NodeTaints = append(slices.Clip(t.Node.NodeTaints), corev1.Taint{
			Key: clusterv1.NodeUninitializedTaint.Key, Effect: clusterv1.NodeUninitializedTaint.Effect,
		})
	}
	return t, nil
}

// limitDrain gives a drain before programs are replaced as long as the Machine gives one before it is deleted, where limits do not
// say otherwise. (There, 0 is for ever; here, it is for the step to say.)
func limitDrain(t *spec.Target, machine *clusterv1.Machine) {
	const most = 24 * 60 * 60 // of a limit
	limit := spec.Limit{Step: "node/drain"}
	seconds := min(ptr.Deref(machine.Spec.Deletion.NodeDrainTimeoutSeconds, 0), most)
	ofDrain := func(l spec.Limit) bool { return l.Step == limit.Step }
	// The host's own limit of a step comes in the place of the cluster's, so what that says else is said again.
	if i := slices.IndexFunc(t.Cluster.Limits, ofDrain); i >= 0 {
		limit = t.Cluster.Limits[i]
	}
	own := slices.IndexFunc(t.Node.Limits, ofDrain)
	if own >= 0 {
		limit = t.Node.Limits[own]
	}
	if seconds <= 0 || limit.TimeoutSeconds != 0 {
		return
	}
	limit.TimeoutSeconds = seconds
	if own >= 0 {
		t.Node.Limits[own] = limit
		return
	}
	t.Node.Limits = append(t.Node.Limits, limit)
}

// follow says of which members the cluster consists, to hosts that have to do with it: a change of the list is a change of
// what the host must be. See bootstrapv1.MemberPhase.
func follow(t *spec.Target, s *scope) {
	t.Order = s.config.Spec.Order
	shared := *t.Cluster.DeepCopy()
	shared.Default()
	etcd := spec.RoleEtcd
	if shared.Etcd.IsStacked() {
		etcd = spec.RoleControlPlane
	}
	for _, m := range s.clusterConfig.Spec.Members {
		switch {
		case m.Address == "": // it is on its way in, and nobody can reach it yet
		case m.Stays() && slices.Contains(concerns(t.Host.Role, &shared), m.Role):
			t.Members = append(t.Members, m.Host())
		case m.Phase == bootstrapv1.MemberRemoved && m.Role == etcd && t.Host.Role == etcd:
			t.Leaving = append(t.Leaving, m.Host())
		}
	}
	byName := func(a, b spec.Member) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(t.Members, byName)
	slices.SortFunc(t.Leaving, byName)
}

// membersMissing is what a host waits for that must not be planned for with less than there is, "" if nothing: the virtual address,
// which the Cluster may have another idea of; its own place among the members; etcd's own hosts, all of which an API server must know;
// and an API server for whoever balances load between them.
func membersMissing(s *scope, shared *spec.Cluster) string {
	wanted := s.clusterConfig.Spec.Cluster.ControlPlaneEndpoint.Address
	if is := shared.ControlPlaneEndpoint.Address; wanted != "" && is != wanted {
		return fmt.Sprintf("the Cluster's spec.controlPlaneEndpoint is %s, and the KubexmControlPlane's "+
			"spec.cluster.controlPlaneEndpoint.address %s: give the infrastructure cluster the latter before it is created", is, wanted)
	}
	declared := *shared.DeepCopy()
	declared.Default()
	if role := s.role(); role != spec.RoleWorker {
		if m := s.member(); m == nil || m.Role != role || m.Address == "" || !m.Stays() {
			return fmt.Sprintf("the KubexmClusterConfig %s does not list the host as one of its members yet (spec.members, with the role %s and "+
				"an address)", s.clusterConfig.Name, role)
		}
	}
	if needs := concerns(s.role(), &declared); slices.Contains(needs, spec.RoleControlPlane) && s.located(spec.RoleControlPlane) == 0 {
		return "it is not known yet where a host of the control plane is: a load balancer without servers would serve nobody"
	}
	if s.role() != spec.RoleControlPlane || declared.Etcd.IsStacked() || declared.Etcd.Type == spec.EtcdExternal {
		return ""
	}
	return s.etcdMissing(&declared)
}

// located is how many members with a role stay whose addresses are known.
func (s *scope) located(role spec.Role) int {
	n := 0
	for _, m := range s.clusterConfig.Spec.Members {
		if m.Role == role && m.Stays() && m.Address != "" {
			n++
		}
	}
	return n
}

// etcdMissing says which of etcd's own hosts is not known yet, "" if all are.
func (s *scope) etcdMissing(shared *spec.Cluster) string {
	members := s.clusterConfig.Spec.Members
	for _, name := range shared.Etcd.Hosts.Names {
		if !slices.ContainsFunc(members, func(m bootstrapv1.ClusterMember) bool { return m.Name == name && m.Role == spec.RoleEtcd }) {
			return fmt.Sprintf("it is not known yet where etcd's host %s is: see its KubexmConfig", name)
		}
	}
	for _, m := range members {
		if m.Role == spec.RoleEtcd && m.Stays() && m.Address == "" {
			return fmt.Sprintf("it is not known yet where etcd's host %s is: see its KubexmConfig", m.Name)
		}
	}
	if s.located(spec.RoleEtcd) == 0 {
		return "it is not known yet where any of etcd's own hosts is"
	}
	return ""
}

// controlPlaneBehind is what a worker waits for whose version is newer than an API server's, which a kubelet's must not be; "" if
// it is not.
func controlPlaneBehind(s *scope) string {
	if s.role() != spec.RoleWorker || s.machine == nil {
		return ""
	}
	has := s.clusterConfig.Spec.APIServerVersion
	oldest, err := version.ParseSemantic(has)
	if err != nil {
		return "" // there is none yet, or one that is not ours to judge
	}
	wanted, err := version.ParseSemantic(s.machine.Spec.Version)
	if err != nil || !oldest.LessThan(wanted) {
		return ""
	}
	return fmt.Sprintf("the control plane has %s still: no kubelet may be newer than an API server, and the Machine's spec.version is %s",
		has, s.machine.Spec.Version)
}

// concerns are the roles whose hosts a host with this role has to know.
func concerns(role spec.Role, shared *spec.Cluster) []spec.Role {
	switch {
	case role == spec.RoleControlPlane && shared.Etcd.IsStacked():
		return []spec.Role{spec.RoleControlPlane}
	case role == spec.RoleControlPlane:
		return []spec.Role{spec.RoleControlPlane, spec.RoleEtcd}
	case role == spec.RoleLoadBalancer:
		return []spec.Role{spec.RoleControlPlane, spec.RoleLoadBalancer}
	case role == spec.RoleEtcd:
		return []spec.Role{spec.RoleEtcd}
	case shared.ControlPlaneEndpoint.IsLocal():
		return []spec.Role{spec.RoleControlPlane}
	}
	return nil
}

// hostOf is a host in a cluster with that network. The order of addresses is the infrastructure's, which need not know the
// cluster's families.
func hostOf(h *infra.Host, role spec.Role, network *spec.Network) spec.Host {
	return spec.Host{
		Name: h.Name, Role: role, Address: h.Address, InternalAddresses: network.Usable(h.Internal), Arch: h.Arch, ProviderID: h.ProviderID,
	}
}

// inputOf is the digest of all that a run depends on, but for the host itself. versions are those of Secrets that the
// target names.
func inputOf(t spec.Target, h *infra.Host, versions []string) (string, error) {
	raw, err := json.Marshal(struct {
		Target   spec.Target
		Host     *infra.Host
		Versions []string
	}{t, h, versions})
	if err != nil {
		return "", fmt.Errorf("digest of what the host must be: %w", err)
	}
	return digest(raw), nil
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// namedSecret is a Secret, and the field that names it.
type namedSecret struct {
	name string
	path *field.Path
}

// secretsOf are the Secrets that a host's files are made from, each once, by name.
func secretsOf(c *bootstrapv1.KubexmConfig) []namedSecret {
	var named []namedSecret
	for i, f := range c.Spec.Files {
		if name := f.ContentFrom.Secret.Name; name != "" {
			named = append(named, namedSecret{name, field.NewPath("spec", "files").Index(i).Child("contentFrom", "secret", "name")})
		}
	}
	slices.SortStableFunc(named, func(a, b namedSecret) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(named, func(a, b namedSecret) bool { return a.name == b.name })
}
