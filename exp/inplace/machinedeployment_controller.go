// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// againAfter is when to decide again on what was not as it had been read.
const againAfter = 100 * time.Millisecond

// MachineDeploymentReconciler brings about what the annotations of MachineDeployments ask for. All fields but WatchFilter are required.
type MachineDeploymentReconciler struct {
	// Client reads from a cache; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	Events      events.EventRecorder
}

// Reconcile brings one MachineDeployment's Machines one act closer to the version.
func (r *MachineDeploymentReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	md := &clusterv1.MachineDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, md); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !concerned(md) || r.WatchFilter != "" && !labels.HasWatchLabel(md, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	cluster, err := util.GetClusterByName(ctx, r.Client, md.Namespace, md.Spec.ClusterName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("get the Cluster of the MachineDeployment %s: %w", klog.KObj(md), err)
	}
	if ptr.Deref(cluster.Spec.Paused, false) || annotations.HasPaused(md) && pausedFor(md) == "" {
		return ctrl.Result{}, nil // both are watched
	}
	act, err := r.decide(ctx, cluster, md)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.do(ctx, md, act); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: againAfter}, nil // somebody else changed it, and the cache will have it soon
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, md, act)
}

// concerned reports whether there is anything to do for a MachineDeployment, or to say. One that is being deleted must not stay paused
// here: Cluster API would not delete its Machines.
func concerned(md *clusterv1.MachineDeployment) bool {
	return pausedFor(md) != "" || md.DeletionTimestamp.IsZero() &&
		(md.Annotations[VersionAnnotation] != "" || conditions.IsTrue(md, UpgradingCondition))
}

// decide says what is done next. Whatever changes something is decided from the API server's own answers: by a cache that lags
// behind, more hosts would begin than may, or a Machine that has just been made would be forgotten.
func (r *MachineDeploymentReconciler) decide(
	ctx context.Context, cluster *clusterv1.Cluster, md *clusterv1.MachineDeployment,
) (Act, error) {
	rollout, err := fetch(ctx, r.Client, cluster, md)
	if err != nil {
		return Act{}, err
	}
	act := rollout.Decide()
	if act.Kind == Rest {
		return act, nil
	}
	if rollout, err = fetch(ctx, r.Reader, cluster, md); err != nil {
		return Act{}, err
	}
	return rollout.Decide(), nil
}

func fetch(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster, md *clusterv1.MachineDeployment) (*Rollout, error) {
	rollout := &Rollout{Deployment: md}
	of := []client.ListOption{client.InNamespace(md.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: md.Name}}
	sets, machines, configs := &clusterv1.MachineSetList{}, &clusterv1.MachineList{}, &bootstrapv1.KubexmConfigList{}
	for _, list := range []client.ObjectList{sets, machines, configs} {
		if err := reader.List(ctx, list, of...); err != nil {
			return nil, fmt.Errorf("list what belongs to the MachineDeployment %s: %w", klog.KObj(md), err)
		}
	}
	rollout.MachineSets = slices.DeleteFunc(sets.Items, func(s clusterv1.MachineSet) bool {
		return !metav1.IsControlledBy(&s, md) || !s.DeletionTimestamp.IsZero()
	})
	rollout.Machines = slices.DeleteFunc(machines.Items, func(m clusterv1.Machine) bool {
		return !slices.ContainsFunc(rollout.MachineSets, func(s clusterv1.MachineSet) bool { return metav1.IsControlledBy(&m, &s) })
	})
	rollout.Configs = configs.Items
	ref := cluster.Spec.ControlPlaneRef
	if ref.GroupKind() != controlplanev1.GroupVersion.WithKind("KubexmControlPlane").GroupKind() {
		return rollout, nil
	}
	controlPlane := &controlplanev1.KubexmControlPlane{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, controlPlane)
	if err == nil {
		rollout.ControlPlane = controlPlane
	}
	return rollout, client.IgnoreNotFound(err)
}

// do does the act.
func (r *MachineDeploymentReconciler) do(ctx context.Context, md *clusterv1.MachineDeployment, act Act) error {
	log := ctrl.LoggerFrom(ctx).WithValues("version", act.Version)
	switch act.Kind {
	case Upgrade:
		for _, m := range act.Machines {
			before := m.DeepCopy()
			m.Spec.Version = act.Version
			if err := r.Client.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("give the Machine %s the version %s: %w", klog.KObj(m), act.Version, err)
			}
			log.Info("Upgrading a host in place", "Machine", klog.KObj(m), "from", before.Spec.Version)
			r.Events.Eventf(md, m, corev1.EventTypeNormal, UpgradingReason, "Upgrade", "Machine %s: %s → %s", m.Name, before.Spec.Version, act.Version)
		}
	case Pause:
		return r.patch(ctx, md, act.Pause)
	case Template:
		before := act.MachineSet.DeepCopy()
		act.MachineSet.Spec.Template.Spec.Version = act.Version
		if err := r.Client.Patch(ctx, act.MachineSet, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("give the MachineSet %s the version %s: %w", klog.KObj(act.MachineSet), act.Version, err)
		}
	case Finish:
		return r.patch(ctx, md, act.Finish)
	case Clear:
		return r.patch(ctx, md, act.Clear)
	case Release:
		return r.patch(ctx, md, act.Release)
	case Rest:
	}
	return nil
}

// patch changes the MachineDeployment, if nobody else has since it was read: what was decided may not be so any more.
func (r *MachineDeploymentReconciler) patch(
	ctx context.Context, md *clusterv1.MachineDeployment, change func(*clusterv1.MachineDeployment),
) error {
	before := md.DeepCopy()
	change(md)
	if err := r.Client.Patch(ctx, md, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the MachineDeployment %s: %w", klog.KObj(md), err)
	}
	return nil
}

// report says in the MachineDeployment's conditions what is done, and of what somebody has to know there is an event as well.
func (r *MachineDeploymentReconciler) report(ctx context.Context, md *clusterv1.MachineDeployment, act Act) error {
	if act.Reason == "" {
		return nil
	}
	helper, err := patch.NewHelper(md, r.Client)
	if err != nil {
		return err
	}
	was := conditions.GetReason(md, UpgradingCondition)
	conditions.Set(md, act.Condition())
	ours := patch.WithOwnedConditions{Conditions: []string{UpgradingCondition}}
	if err := helper.Patch(ctx, md, ours); client.IgnoreNotFound(err) != nil {
		return err
	}
	if was != act.Reason {
		kind := corev1.EventTypeNormal
		if act.Reason == HostFailedReason || act.Reason == InvalidReason {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(md, nil, kind, act.Reason, "Upgrade", "%s", short(act.Message))
	}
	return nil
}

// short is a message that fits an Event.
func short(message string) string {
	const most = 1000
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}
