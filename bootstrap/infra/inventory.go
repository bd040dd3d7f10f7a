// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// Inventory is the adapter for a KubexmConfig that names a KubexmHost itself, because no Machine stands behind it. It claims
// the host as a KubexmMachine would, so that nobody else gets it.
func Inventory(c client.Client, live client.Reader) *InventoryAdapter {
	return &InventoryAdapter{kubexm{client: c, live: live}}
}

// InventoryAdapter is an Adapter that can give its host back.
type InventoryAdapter struct{ kubexm }

// Host claims the KubexmHost and marks it as in use before anybody touches it.
func (i *InventoryAdapter) Host(ctx context.Context, s Subject) (*Host, error) {
	h, err := i.find(ctx, s)
	if err != nil {
		return nil, err
	}
	switch claim := h.Spec.ClaimRef; {
	case i.owns(s, h) && claim.UID == string(s.Config.UID):
	case i.owns(s, h): // clusterctl has moved both, or the KubexmConfig was made anew for its host
		if err := i.claim(ctx, s, h); apierrors.IsConflict(err) {
			return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s has changed just now", h.Name), Changed: true}
		} else if err != nil {
			return nil, err
		}
	case claim != (infrav1.MachineReference{}):
		message := fmt.Sprintf("the KubexmHost %s is claimed by the %s %s of the Cluster %s",
			h.Name, claim.KindOrDefault(), claim.Name, claim.ClusterName)
		if !s.Config.DeletionTimestamp.IsZero() {
			return nil, &HostGone{Message: message}
		}
		return nil, &HostPending{Message: message}
	case !s.Config.DeletionTimestamp.IsZero():
		return nil, &HostGone{Message: fmt.Sprintf("the KubexmHost %s is not claimed", h.Name)}
	case h.IsInMaintenance():
		return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s is in maintenance: %s", h.Name, h.Spec.Maintenance.Message)}
	case h.IsQuarantined():
		return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s is in quarantine: %s: %s",
			h.Name, h.Spec.Quarantine.Reason, h.Spec.Quarantine.Message)}
	case !conditions.IsTrue(h, infrav1.AvailableCondition):
		return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s is not available: %s", h.Name, cmp.Or(
			conditions.GetMessage(h, infrav1.AvailableCondition), "nobody has said so yet"))}
	default:
		if err := i.claim(ctx, s, h); apierrors.IsConflict(err) {
			return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s has changed just now", h.Name), Changed: true}
		} else if err != nil {
			return nil, err
		}
	}
	if err := i.markInUse(ctx, s, h); err != nil {
		return nil, err
	}
	return HostOf(h), nil
}

func (i *InventoryAdapter) find(ctx context.Context, s Subject) (*infrav1.KubexmHost, error) {
	h := &infrav1.KubexmHost{}
	name := s.Config.Spec.HostRef.Name
	if err := i.live.Get(ctx, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, h); apierrors.IsNotFound(err) {
		if s.Config.DeletionTimestamp.IsZero() {
			return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s does not exist", name)}
		}
		return nil, &HostGone{Message: fmt.Sprintf("the KubexmHost %s does not exist any more", name)}
	} else if err != nil {
		return nil, fmt.Errorf("get the KubexmHost %s: %w", name, err)
	}
	return h, nil
}

func (i *InventoryAdapter) owns(s Subject, h *infrav1.KubexmHost) bool {
	return h.Spec.ClaimRef.KindOrDefault() == infrav1.ClaimedByConfig && h.Spec.ClaimRef.Name == s.Config.Name
}

func (i *InventoryAdapter) claim(ctx context.Context, s Subject, h *infrav1.KubexmHost) error {
	before := h.DeepCopy()
	h.Claim(infrav1.MachineReference{
		Kind: infrav1.ClaimedByConfig, Name: s.Config.Name,
		ClusterName: s.Config.Labels[clusterv1.ClusterNameLabel], UID: string(s.Config.UID),
	})
	if err := i.client.Patch(ctx, h, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("claim the KubexmHost %s: %w", h.Name, err)
	}
	return nil
}

// markInUse makes sure that the host is not handed out again without a reset.
func (i *InventoryAdapter) markInUse(ctx context.Context, s Subject, h *infrav1.KubexmHost) error {
	if !s.Config.DeletionTimestamp.IsZero() || conditions.GetReason(h, infrav1.CleanCondition) == infrav1.InUseReason {
		return nil
	}
	return i.change(ctx, h, (*infrav1.KubexmHost).MarkInUse)
}

// ReportReachability writes the KubexmHost's facts and its condition Reachable.
func (i *InventoryAdapter) ReportReachability(ctx context.Context, s Subject, c Reachability) error {
	h, err := i.find(ctx, s)
	if err != nil {
		return err
	}
	return i.change(ctx, h, meeting(c))
}

// ReportReset writes the KubexmHost's condition Clean.
func (i *InventoryAdapter) ReportReset(ctx context.Context, s Subject, c ResetResult) error {
	h, err := i.find(ctx, s)
	if err != nil {
		return err
	}
	return i.change(ctx, h, leaving(c))
}

// Release gives the claim up. A host that was not reset stays in quarantine.
func (i *InventoryAdapter) Release(ctx context.Context, s Subject) error {
	h, err := i.find(ctx, s)
	if isLost(err) {
		return nil
	}
	if err != nil || !i.owns(s, h) {
		return err
	}
	if conditions.GetReason(h, infrav1.CleanCondition) == infrav1.InUseReason {
		if err := i.change(ctx, h, (*infrav1.KubexmHost).MarkNotReset); err != nil {
			return err
		}
		if h, err = i.find(ctx, s); err != nil {
			return err
		}
	}
	before := h.DeepCopy()
	h.Release(metav1.Now())
	err = i.client.Patch(ctx, h, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release the KubexmHost %s: %w", h.Name, err)
	}
	return nil
}
