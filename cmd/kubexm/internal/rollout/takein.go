// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TakeIn declares control plane hosts that are the cluster's already to a management plane that has not made them, with a Machine for each
// that names it: one after the other, the first would find members of etcd that no Machine has. Hosts that have a Machine, and those in
// quarantine, are left alone. The cluster is paused meanwhile, so that nobody makes anything of a part of it; it goes on when the objects
// are applied. It may be cut and done again.
func TakeIn(ctx context.Context, c client.Client, all []client.Object, hosts []string) error {
	var key client.ObjectKey
	var own []string
	paused := make([]client.Object, 0, len(all))
	for _, object := range all {
		switch o := object.(type) {
		case *clusterv1.Cluster:
			key = client.ObjectKeyFromObject(o)
			o = o.DeepCopy()
			o.Spec.Paused = ptr.To(true)
			object = o
		case *infrav1.KubexmHost:
			if objects.IsControlPlane(o.Labels[objects.PoolLabel]) && slices.Contains(hosts, o.Name) {
				own = append(own, o.Name)
			}
		}
		paused = append(paused, object)
	}
	s, err := Read(ctx, c, key)
	if err != nil || len(s.withoutMachine(own)) == 0 {
		return err
	}
	if _, err := Apply(ctx, c, paused); err != nil {
		return err
	}
	// Nothing changes any more: what was claimed before the pause is seen now.
	if s, err = Read(ctx, c, key); err != nil {
		return err
	}
	if s.Cluster == nil || s.ControlPlane == nil {
		return fmt.Errorf("the objects of cluster %s are not there any more", key.Name)
	}
	missing := s.withoutMachine(own)
	if missing, err = s.nameHosts(ctx, c, missing); err != nil {
		return err
	}
	mode := spec.BootstrapInit // which host began is not known, and makes no difference to one that is a part of the cluster
	if slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool { return isControlPlane(&m) }) {
		mode = spec.BootstrapJoin
	}
	plane := &snapshot.ControlPlane{Cluster: s.Cluster, Object: s.ControlPlane}
	for _, host := range missing {
		if err := takeIn(ctx, c, plane, host, mode); err != nil {
			return fmt.Errorf("declare the Machine of the control plane host %s: %w", host, err)
		}
		mode = spec.BootstrapJoin
	}
	return nil
}

// withoutMachine are those of the hosts that may have a Machine, and that none has or names.
func (s *Snapshot) withoutMachine(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(name string) bool {
		at := slices.IndexFunc(s.Hosts, func(h infrav1.KubexmHost) bool { return h.Name == name })
		if at >= 0 && (s.Hosts[at].IsQuarantined() || s.machineOn(&s.Hosts[at]) != nil) {
			return true
		}
		return slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool {
			infra := s.infraOf(&m)
			return infra != nil && infra.Spec.HostName == name
		})
	})
}

// infraOf is a Machine's KubexmMachine, nil if there is none.
func (s *Snapshot) infraOf(m *clusterv1.Machine) *infrav1.KubexmMachine {
	at := slices.IndexFunc(s.InfraMachines, func(i infrav1.KubexmMachine) bool { return i.Name == m.Spec.InfrastructureRef.Name })
	if at < 0 {
		return nil
	}
	return &s.InfraMachines[at]
}

// nameHosts gives hosts to control plane Machines that wait for one: any other that they claimed would be missing elsewhere. It returns the
// hosts that are left.
func (s *Snapshot) nameHosts(ctx context.Context, c client.Client, hosts []string) ([]string, error) {
	for i := range s.Machines {
		m := &s.Machines[i]
		infra := s.infraOf(m)
		if len(hosts) == 0 || infra == nil || !isControlPlane(m) || !m.DeletionTimestamp.IsZero() ||
			infra.Spec.ProviderID != "" || infra.Spec.HostName != "" {
			continue
		}
		before := infra.DeepCopy()
		infra.Spec.HostName, infra.Spec.HostSelector, infra.Spec.Preferences = hosts[0], nil, nil
		if err := c.Patch(ctx, infra, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return nil, fmt.Errorf("give the host %s to the KubexmMachine %s: %w", hosts[0], infra.Name, err)
		}
		hosts = hosts[1:]
	}
	return hosts, nil
}

// takeIn makes the objects that a control plane Machine consists of, those that are not there.
func takeIn(ctx context.Context, c client.Client, plane *snapshot.ControlPlane, host string, mode spec.BootstrapMode) error {
	sum := sha256.Sum256([]byte(host))
	name := plane.Object.Name + "-" + hex.EncodeToString(sum[:4])
	if err := c.Create(ctx, desired.Config(plane, name, mode)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	infrastructure, err := kubexmMachine(ctx, c, plane, name, host)
	if err != nil {
		return err
	}
	if err := c.Create(ctx, infrastructure); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	machine := desired.Machine(plane, name, clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: name,
	})
	// The host is a member for certain: no list of members is made before all addresses are known.
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, bootstrapv1.HostResetHook, "")
	if err := c.Create(ctx, machine); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// kubexmMachine is one as of the control plane's template, but for the host that it names, which takes the place of a choice.
func kubexmMachine(
	ctx context.Context, c client.Client, plane *snapshot.ControlPlane, name, host string,
) (*unstructured.Unstructured, error) {
	owner := desired.Owner(plane.Object)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	declared := plane.Object.Spec.MachineTemplate.Spec.InfrastructureRef
	ref := &corev1.ObjectReference{
		APIVersion: infrav1.GroupVersion.String(), Kind: declared.Kind, Namespace: plane.Object.Namespace, Name: declared.Name,
	}
	template, err := external.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	made, err := external.GenerateTemplate(&external.GenerateTemplateInput{
		Template: template, TemplateRef: ref, Namespace: plane.Object.Namespace, Name: name, ClusterName: plane.Cluster.Name,
		OwnerRef: &owner, Labels: desired.Labels(plane), Annotations: desired.Annotations(plane),
	})
	if err != nil {
		return nil, err
	}
	for _, choice := range []string{"hostSelector", "preferences"} {
		unstructured.RemoveNestedField(made.Object, "spec", choice)
	}
	return made, unstructured.SetNestedField(made.Object, host, "spec", "hostName")
}
