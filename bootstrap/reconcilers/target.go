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
		KubernetesVersion: cmp.Or(s.machine.Spec.Version, s.controlPlane.Spec.Version),
		Cluster:           SharedOf(s.cluster, s.controlPlane),
		Node:              *s.config.Spec.Node.DeepCopy(),
		Host:              hostOf(s.host, spec.RoleWorker),
	}
	if s.isControlPlane() {
		t.Host.Role = spec.RoleControlPlane
	}
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

func hostOf(h *infra.Host, role spec.Role) spec.Host {
	return spec.Host{
		Name: h.Name, Role: role, Address: h.Address, InternalAddresses: h.Internal, Arch: h.Arch, ProviderID: h.ProviderID,
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

// secretsOf are the names of the Secrets that a KubexmConfig takes files from, each once, in order.
func secretsOf(c *bootstrapv1.KubexmConfig) []string {
	var names []string
	for _, f := range c.Spec.Files {
		if name := f.ContentFrom.Secret.Name; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
