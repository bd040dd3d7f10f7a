// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// targetOf is what a host must be. The error has the path of every field that is wrong, as seen from the target.
func targetOf(s *scope) (spec.Target, error) {
	t := spec.Target{
		ClusterName:       s.cluster.Name,
		KubernetesVersion: s.controlPlane.Spec.Version,
		Cluster:           SharedOf(s.cluster, s.controlPlane),
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
// what the host must be.
func follow(t *spec.Target, s *scope) {
	t.Order = s.config.Spec.Order
	shared := *t.Cluster.DeepCopy()
	shared.Default()
	for _, m := range s.controlPlane.Status.Members {
		if slices.Contains(concerns(t.Host.Role, &shared), m.Role) {
			t.Members = append(t.Members, m)
		}
	}
	if t.Host.Role == spec.RoleEtcd || t.Host.Role == spec.RoleControlPlane && shared.Etcd.IsStacked() {
		t.Leaving = slices.Clone(s.controlPlane.Status.Leaving)
	}
}

// membersMissing is what a host waits for that must not be planned for with less than the specification says, "" if nothing:
// the virtual address, which the Cluster may have another idea of, and etcd's own hosts, all of which an API server must know.
func membersMissing(s *scope, shared *spec.Cluster) string {
	wanted := s.controlPlane.Spec.Cluster.ControlPlaneEndpoint.Address
	if is := shared.ControlPlaneEndpoint.Address; wanted != "" && is != wanted {
		return fmt.Sprintf("the Cluster's spec.controlPlaneEndpoint is %s, and the KubexmControlPlane's "+
			"spec.cluster.controlPlaneEndpoint.address %s: give the infrastructure cluster the latter before it is created", is, wanted)
	}
	if s.role() != spec.RoleControlPlane {
		return ""
	}
	for _, name := range shared.Etcd.Hosts.Names {
		if !slices.ContainsFunc(s.controlPlane.Status.Members, func(m spec.Member) bool { return m.Name == name && m.Role == spec.RoleEtcd }) {
			return fmt.Sprintf("it is not known yet where etcd's host %s is: see its KubexmConfig", name)
		}
	}
	return ""
}

// controlPlaneBehind is what a worker waits for whose version is newer than an API server's, which a kubelet's must not be; "" if
// it is not.
func controlPlaneBehind(s *scope) string {
	if s.role() != spec.RoleWorker || s.machine == nil {
		return ""
	}
	oldest, err := version.ParseSemantic(s.controlPlane.Status.Version)
	if err != nil {
		return "" // there is none yet, or one that is not ours to judge
	}
	wanted, err := version.ParseSemantic(s.machine.Spec.Version)
	if err != nil || !oldest.LessThan(wanted) {
		return ""
	}
	return fmt.Sprintf("the control plane has %s still: no kubelet may be newer than an API server, and the Machine's spec.version is %s",
		s.controlPlane.Status.Version, s.machine.Spec.Version)
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

// SharedOf is what all hosts of a cluster share: what the KubexmControlPlane says, and over it what the Cluster says.
func SharedOf(cluster *clusterv1.Cluster, controlPlane *controlplanev1.KubexmControlPlane) spec.Cluster {
	shared := *controlPlane.Spec.Cluster.DeepCopy()
	network := cluster.Spec.ClusterNetwork
	if blocks := network.Pods.CIDRBlocks; len(blocks) > 0 {
		shared.Network.PodCIDRs = slices.Clone(blocks)
	}
	if blocks := network.Services.CIDRBlocks; len(blocks) > 0 {
		shared.Network.ServiceCIDRs = slices.Clone(blocks)
	}
	shared.DNS.ClusterDomain = cmp.Or(network.ServiceDomain, shared.DNS.ClusterDomain)

	endpoint := cluster.Spec.ControlPlaneEndpoint
	shared.ControlPlaneEndpoint.Port = cmp.Or(endpoint.Port, shared.ControlPlaneEndpoint.Port)
	if _, err := netip.ParseAddr(endpoint.Host); err == nil {
		shared.ControlPlaneEndpoint.Address = endpoint.Host
	} else if endpoint.Host != "" {
		shared.ControlPlaneEndpoint.Domain = endpoint.Host
	}
	return shared
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
