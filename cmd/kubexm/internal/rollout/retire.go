// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// Leaving are the hosts of the cluster that are in use and that pools does not have in the same pool: pools is the pool of
// each declared host.
func (s *Snapshot) Leaving(pools map[string]string) []infrav1.KubexmHost {
	var leaving []infrav1.KubexmHost
	for i := range s.Hosts {
		if h := &s.Hosts[i]; s.inUse(h) && pools[h.Name] != h.Labels[objects.PoolLabel] {
			leaving = append(leaving, *h)
		}
	}
	return leaving
}

// inUse reports whether a Machine has the host, or the control plane uses it as it is.
func (s *Snapshot) inUse(h *infrav1.KubexmHost) bool {
	return h.Spec.ClaimRef.Name != "" || slices.ContainsFunc(s.Configs, func(c bootstrapv1.KubexmConfig) bool {
		return c.Spec.HostRef.Name == h.Name
	})
}

// InUse are the names of the hosts of the cluster that are in use.
func (s *Snapshot) InUse() []string {
	var names []string
	for i := range s.Hosts {
		if s.inUse(&s.Hosts[i]) {
			names = append(names, s.Hosts[i].Name)
		}
	}
	return names
}

// HasHost reports whether the cluster has a host with this name.
func (s *Snapshot) HasHost(name string) bool {
	return slices.ContainsFunc(s.Hosts, func(h infrav1.KubexmHost) bool { return h.Name == name })
}

// ControlPlanes is how many hosts the control plane has.
func (s *Snapshot) ControlPlanes() int {
	n := 0
	for i := range s.Hosts {
		if h := &s.Hosts[i]; s.inUse(h) && objects.IsControlPlane(h.Labels[objects.PoolLabel]) {
			n++
		}
	}
	return n
}

// Release sees to it that, when there are to be fewer Machines, those on these hosts go.
func (s *Snapshot) Release(ctx context.Context, c client.Client, hosts []infrav1.KubexmHost) error {
	for i := range hosts {
		machine := s.machineOn(&hosts[i])
		if machine == nil {
			continue
		}
		patch := client.MergeFrom(machine.DeepCopy())
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, clusterv1.DeleteMachineAnnotation, "")
		if err := c.Patch(ctx, machine, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("Machine %s: %w", machine.Name, err)
		}
	}
	return nil
}

// machineOn is the Machine that has a host, or nil.
func (s *Snapshot) machineOn(host *infrav1.KubexmHost) *clusterv1.Machine {
	claim := host.Spec.ClaimRef
	at := slices.IndexFunc(s.Machines, func(m clusterv1.Machine) bool {
		return claim.KindOrDefault() == infrav1.ClaimedByMachine && m.Spec.InfrastructureRef.Name == claim.Name
	})
	if at < 0 {
		return nil
	}
	return &s.Machines[at]
}

// Prune removes MachineDeployments that are not among the declared objects; their Machines go with them. It removes the credentials of
// jump hosts, too, through which declared hosts are not reached any more.
func (s *Snapshot) Prune(ctx context.Context, c client.Client, declared []client.Object) error {
	if err := s.pruneJumps(ctx, c, declared); err != nil {
		return err
	}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if slices.ContainsFunc(declared, func(o client.Object) bool {
			_, same := o.(*clusterv1.MachineDeployment)
			return same && o.GetName() == d.Name
		}) {
			continue
		}
		if err := c.Delete(ctx, d); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("MachineDeployment %s: %w", d.Name, err)
		}
	}
	return nil
}

func (s *Snapshot) pruneJumps(ctx context.Context, c client.Client, declared []client.Object) error {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		name := h.Spec.Access.ProxyJump.Credentials.SecretRef.Name
		if name == "" || !slices.ContainsFunc(declared, func(o client.Object) bool {
			now, same := o.(*infrav1.KubexmHost)
			return same && now.Name == h.Name && now.Spec.Access.ProxyJump.IsZero()
		}) {
			continue
		}
		if err := deleteSecret(ctx, c, h.Namespace, name); err != nil {
			return err
		}
	}
	return nil
}

func deleteSecret(ctx context.Context, c client.Client, namespace, name string) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := c.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("Secret %s: %w", name, err)
	}
	return nil
}

// PruneHosts removes hosts that are not declared any more, with their credentials, once nobody has them.
func (s *Snapshot) PruneHosts(ctx context.Context, c client.Client, pools map[string]string) error {
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if _, declared := pools[h.Name]; declared || s.inUse(h) {
			continue
		}
		if err := c.Delete(ctx, h); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("KubexmHost %s: %w", h.Name, err)
		}
		for _, name := range []string{h.Spec.Access.Credentials.SecretRef.Name, h.Spec.Access.ProxyJump.Credentials.SecretRef.Name} {
			if name == "" {
				continue
			}
			if err := deleteSecret(ctx, c, h.Namespace, name); err != nil {
				return err
			}
		}
	}
	return nil
}
