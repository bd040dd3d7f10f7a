// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

// clusterConfigOwner is the field manager of all that a KubexmClusterConfig says.
const clusterConfigOwner = bootstrapv1.ClusterConfigOwner

// fetchClusterConfig reads the Cluster's KubexmClusterConfig from the API server: what is decided of members goes on from it.
func (r *KubexmControlPlaneReconciler) fetchClusterConfig(ctx context.Context, s *scope) error {
	found := &bootstrapv1.KubexmClusterConfig{}
	s.Served = ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false)
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.Cluster), found)
	switch {
	case apierrors.IsNotFound(err):
		s.clusterConfig, s.Known = nil, nil
		return nil
	case err != nil:
		return fmt.Errorf("get the KubexmClusterConfig %s: %w", s.Cluster.Name, err)
	}
	s.clusterConfig, s.Known = found, found.Spec.Members
	s.Served = s.Served || found.Spec.APIServerVersion != ""
	return nil
}

// reconcileMembers declares which hosts the cluster consists of and how far each is on its way in or out, with all else that hosts
// share. They follow.
func (r *KubexmControlPlaneReconciler) reconcileMembers(ctx context.Context, s *scope) error {
	if s.clusterConfig == nil && !s.Cluster.DeletionTimestamp.IsZero() {
		return nil // it was deleted with the Cluster, and nobody needs it any more
	}
	members := s.Members()
	if s.drops(members) {
		// A cache may not show yet what exists.
		var err error
		if s.Machines, err = machinesOf(ctx, r.Reader, s.Cluster); err != nil {
			return err
		}
		if s.Configs, err = configsOf(ctx, r.Reader, s.Cluster); err != nil {
			return err
		}
		members = s.Members()
	}
	if unlocated := s.Unlocated(); unlocated != "" {
		// Without the list from before, one of these would be a part of the members only: nobody is notified of an address before all are
		// known.
		ctrl.LoggerFrom(ctx).Info("Waiting to declare the members' addresses until all are known", "KubexmConfig", unlocated)
		for i := range members {
			members[i].Address = ""
		}
	}
	err := r.applyClusterConfig(ctx, s, desired.ClusterConfig(s.ControlPlane, s.clusterConfig, members))
	if apierrors.IsInvalid(err) {
		// Such as of what the Cluster object says, which nobody has checked before.
		s.blocked = decision.Block(bootstrapv1.InvalidReason, "%v", err)
	}
	return err
}

// drops reports whether members lack one that was known, or nothing was known before.
func (s *scope) drops(members []bootstrapv1.ClusterMember) bool {
	return s.clusterConfig == nil || slices.ContainsFunc(s.Known, func(was bootstrapv1.ClusterMember) bool {
		return !slices.ContainsFunc(members, func(m bootstrapv1.ClusterMember) bool { return m.Name == was.Name })
	})
}

// applyClusterConfig writes the KubexmClusterConfig, if it is to say anything else.
func (r *KubexmControlPlaneReconciler) applyClusterConfig(ctx context.Context, s *scope, wanted *bootstrapv1.KubexmClusterConfig) error {
	if is := s.clusterConfig; is != nil {
		owned := slices.ContainsFunc(is.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == s.Cluster.UID })
		if owned && is.Labels[clusterv1.ClusterNameLabel] == s.Cluster.Name && equality.Semantic.DeepEqual(is.Spec, wanted.Spec) {
			return nil
		}
		if err := r.adoptFields(ctx, is); err != nil {
			return fmt.Errorf("take over the fields of the KubexmClusterConfig %s: %w", is.Name, err)
		}
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return fmt.Errorf("encode the KubexmClusterConfig %s: %w", wanted.Name, err)
	}
	object := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(clusterConfigOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the KubexmClusterConfig %s: %w", wanted.Name, err)
	}
	return r.fetchClusterConfig(ctx, s)
}

// adoptFields makes the fields ours that others have written by updates, as clusterctl does when it moves objects: what others own
// stays when it is not applied any more, a member that has left for one.
func (r *KubexmControlPlaneReconciler) adoptFields(ctx context.Context, is *bootstrapv1.KubexmClusterConfig) error {
	others := sets.New[string]()
	for _, f := range is.ManagedFields {
		if f.Operation == metav1.ManagedFieldsOperationUpdate {
			others.Insert(f.Manager)
		}
	}
	if others.Len() == 0 {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(is, others, clusterConfigOwner)
	if err != nil || len(patch) == 0 {
		return err
	}
	return r.Client.Patch(ctx, is.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))
}

// reconcileLeavingHosts releases those hosts that nobody counts on any more.
func (r *KubexmControlPlaneReconciler) reconcileLeavingHosts(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		if m.DeletionTimestamp.IsZero() || !s.MayTerminate(&m) {
			continue
		}
		if err := r.release(ctx, &m); err != nil {
			return err
		}
	}
	for i := range s.Configs {
		if config := &s.Configs[i]; s.Controls(config) && !config.DeletionTimestamp.IsZero() && s.MayLeave(config) {
			if err := r.release(ctx, config); err != nil {
				return err
			}
		}
	}
	return nil
}
