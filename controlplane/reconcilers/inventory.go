// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// reconcileInventory makes a KubexmConfig for each host of the inventory that is a part of the cluster without being a Node, and
// deletes those of hosts that are not any more, as far as others serve in their place. Who converges them is who converges Machines' hosts.
func (r *KubexmControlPlaneReconciler) reconcileInventory(ctx context.Context, s *scope) error {
	if !s.Cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	wanted, err := r.chosen(ctx, s)
	if err != nil {
		return err
	}
	if err := r.releaseUnwanted(ctx, s, wanted); err != nil { // before others come: one of them may have been to begin etcd, and never has
		return err
	}
	if s.lacksEtcdHost(wanted) { // the cache may not show yet who is to begin etcd since a moment ago
		if s.Configs, err = configsOf(ctx, r.Reader, s.Cluster); err != nil {
			return err
		}
	}
	unknown := s.UnknownMember()
	for _, ref := range wanted {
		if s.InventoryConfig(ref) != nil {
			continue
		}
		if unknown != nil && ref.Role == spec.RoleEtcd {
			s.blocked = unknown.Prefixed("the host %s: ", ref.Name)
			continue
		}
		config := desired.InventoryConfig(s.ControlPlane, ref)
		if err := r.Client.Create(ctx, config); apierrors.IsAlreadyExists(err) {
			if err := r.isTaken(ctx, s, config); err != nil {
				return err
			}
			continue
		} else if err != nil {
			return fmt.Errorf("create the KubexmConfig %s: %w", config.Name, err)
		}
		s.Configs = append(s.Configs, *config)
	}
	return nil
}

// lacksEtcdHost reports whether one of etcd's hosts is to be made.
func (s *scope) lacksEtcdHost(wanted []bootstrapv1.HostReference) bool {
	return slices.ContainsFunc(wanted, func(ref bootstrapv1.HostReference) bool {
		return ref.Role == spec.RoleEtcd && s.InventoryConfig(ref) == nil
	})
}

// releaseUnwanted deletes the KubexmConfigs of hosts that are not wanted any more and may leave now.
func (r *KubexmControlPlaneReconciler) releaseUnwanted(ctx context.Context, s *scope, wanted []bootstrapv1.HostReference) (err error) {
	leaving, stay := s.Leaving(wanted)
	if len(leaving) > 0 { // the cache may not show yet who leaves since a moment ago
		if s.Configs, err = configsOf(ctx, r.Reader, s.Cluster); err != nil {
			return err
		}
		leaving, stay = s.Leaving(wanted)
	}
	s.staying = stay
	for _, config := range leaving {
		if err := r.Client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the KubexmConfig %s: %w", config.Name, err)
		}
		config.DeletionTimestamp = ptr.To(metav1.NewTime(s.Now)) // so that it is no new member
		ctrl.LoggerFrom(ctx).Info("Released a host that left the cluster", "KubexmConfig", config.Name)
	}
	return nil
}

// isTaken says so where the name of a KubexmConfig is somebody else's. If it is not, the cache does not show the KubexmConfig yet: it
// counts all the same, or the next of etcd's hosts would begin another cluster.
func (r *KubexmControlPlaneReconciler) isTaken(ctx context.Context, s *scope, config *bootstrapv1.KubexmConfig) error {
	found := &bootstrapv1.KubexmConfig{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(config), found); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !s.Controls(found) {
		s.blocked = decision.Block(bootstrapv1.InvalidReason,
			"the KubexmConfig %s is not of this control plane, and keeps the host %s out of the cluster: delete it",
			config.Name, config.Spec.HostRef.Name)
		return nil
	}
	// One that the cache shows has another role still.
	if !slices.ContainsFunc(s.Configs, func(c bootstrapv1.KubexmConfig) bool { return c.Name == found.Name }) {
		s.Configs = append(s.Configs, *found)
	}
	return nil
}

// chosen are the hosts that the specification chooses, etcd's first, by their names.
func (r *KubexmControlPlaneReconciler) chosen(ctx context.Context, s *scope) ([]bootstrapv1.HostReference, error) {
	var all []bootstrapv1.HostReference
	for _, part := range []struct {
		hosts spec.Hosts
		role  spec.Role
	}{
		{s.Object.Spec.Cluster.Etcd.Hosts, spec.RoleEtcd},
		{s.Object.Spec.Cluster.LoadBalancer.OwnHosts(), spec.RoleLoadBalancer},
	} {
		names := slices.Clone(part.hosts.Names)
		if part.hosts.Selector != nil {
			selected, err := r.selected(ctx, s.Object.Namespace, part.hosts.Selector)
			if err != nil {
				return nil, err
			}
			names = append(names, selected...)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			all = append(all, bootstrapv1.HostReference{Name: name, Role: part.role})
		}
	}
	return all, nil
}

func (r *KubexmControlPlaneReconciler) selected(ctx context.Context, namespace string, by *metav1.LabelSelector) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, fmt.Errorf("select hosts: %w", err)
	}
	list := &infrav1.KubexmHostList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list KubexmHosts: %w", err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// deleteInventory deletes the KubexmConfigs of all hosts that are no Nodes.
func (r *KubexmControlPlaneReconciler) deleteInventory(ctx context.Context, s *scope) (*decision.Blocker, error) {
	left := 0
	for i := range s.Configs {
		config := &s.Configs[i]
		if config.Spec.HostRef.Name == "" || !metav1.IsControlledBy(config, s.Object) {
			continue
		}
		left++
		if err := r.release(ctx, config); err != nil {
			return nil, err
		}
		if !config.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, config); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete the KubexmConfig %s: %w", config.Name, err)
		}
	}
	if left > 0 {
		return decision.Block(controlplanev1.WaitingForMachineDeletionReason, "%d hosts that are no Nodes are still being reset", left), nil
	}
	return nil, nil
}

// release takes the hook off that keeps a host, or a Machine's, as long as its etcd member is counted on.
func (r *KubexmControlPlaneReconciler) release(ctx context.Context, object client.Object) error {
	annotations := object.GetAnnotations()
	if _, held := annotations[controlplanev1.EtcdMemberRemovalHook]; !held {
		return nil
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", object)
	}
	delete(annotations, controlplanev1.EtcdMemberRemovalHook)
	object.SetAnnotations(annotations)
	if err := r.Client.Patch(ctx, object, client.MergeFrom(before)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate %s: %w", object.GetName(), err)
	}
	return nil
}
