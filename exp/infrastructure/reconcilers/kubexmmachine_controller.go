// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// KubexmMachineReconciler gives each KubexmMachine a host, and takes it back.
type KubexmMachineReconciler struct {
	Options
}

// machineScope is all that one reconcile knows.
type machineScope struct {
	machine *infrav1.KubexmMachine
	// owner and cluster are nil while there is none.
	owner   *clusterv1.Machine
	cluster *clusterv1.Cluster
	// waiting is what the deletion waits for, nil if nothing is in the way.
	waiting *decision.Blocker
}

// Reconcile brings one KubexmMachine closer to what it must be.
func (r *KubexmMachineReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	machine := &infrav1.KubexmMachine{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, machine)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.isOthers(machine) {
		return ctrl.Result{}, nil
	}
	scope, err := r.fetch(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if scope.owner == nil && machine.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // as for KubexmConfigs: Cluster API writes to it until it owns it
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), scope.cluster, machine)
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, machine, infrav1.MachineFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}

	defer func() {
		setMachineReady(scope)
		machine.Status.ObservedGeneration = machine.Generation
		written.Close(ctx, &result, &reterr)
	}()
	if !machine.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reconcileDelete(ctx, scope)
	}
	return r.reconcileHost(ctx, scope)
}

func (r *KubexmMachineReconciler) fetch(ctx context.Context, machine *infrav1.KubexmMachine) (*machineScope, error) {
	scope := &machineScope{machine: machine}
	owner, err := util.GetOwnerMachine(ctx, r.Client, machine.ObjectMeta)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get the Machine of the KubexmMachine %s: %w", klog.KObj(machine), err)
	}
	scope.owner = owner
	name := machine.Labels[clusterv1.ClusterNameLabel]
	if owner != nil {
		name = owner.Spec.ClusterName
	}
	if name == "" {
		return scope, nil
	}
	cluster, err := util.GetClusterByName(ctx, r.Client, machine.Namespace, name)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the Cluster of the KubexmMachine %s: %w", klog.KObj(machine), err)
	}
	if err == nil {
		scope.cluster = cluster
	}
	return scope, nil
}

// reconcileHost gives the machine its host.
func (r *KubexmMachineReconciler) reconcileHost(ctx context.Context, s *machineScope) (ctrl.Result, error) {
	switch {
	case s.cluster == nil:
		setClaimed(s.machine, infrav1.WaitingForClusterReason, "the Cluster of its Machine is not there yet")
		return ctrl.Result{}, nil
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		setClaimed(s.machine, infrav1.WaitingForClusterReason, "the infrastructure of the Cluster is not provisioned yet")
		return ctrl.Result{}, nil
	case !s.owner.DeletionTimestamp.IsZero() && s.machine.Status.HostRef.Name == "":
		setClaimed(s.machine, infrav1.DeletingReason, "the Machine is being deleted, and gets no host any more")
		return ctrl.Result{}, nil
	}

	candidate, err := r.snapshot(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if orphaned := candidate.orphan(); orphaned != nil {
		return ctrl.Result{RequeueAfter: lookAgain()}, r.disown(ctx, orphaned)
	}
	chosen := candidate.choose(r.now())
	if chosen.host == nil {
		setClaimed(s.machine, chosen.reason, chosen.message)
		return ctrl.Result{RequeueAfter: chosen.retry}, nil
	}
	if !chosen.claimed {
		if err := r.claim(ctx, chosen.host, s); apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: lookAgain()}, nil // another machine was faster, or the host has changed
		} else if err != nil {
			return ctrl.Result{}, fmt.Errorf("claim the KubexmHost %s: %w", klog.KObj(chosen.host), err)
		}
	}
	if s.machine.Status.HostRef.Name == "" {
		if err := r.markInUse(ctx, chosen.host); apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: lookAgain()}, nil // its reconciler has said just now that it is claimed
		} else if err != nil {
			return ctrl.Result{}, fmt.Errorf("mark the KubexmHost %s as in use: %w", klog.KObj(chosen.host), err)
		}
	}
	describe(s, chosen.host)
	return ctrl.Result{}, nil
}

// lookAgain is when to look at hosts again that have changed just now: soon, and not all machines at once.
func lookAgain() time.Duration { return wait.Jitter(100*time.Millisecond, 1) }

// snapshot reads the hosts that the choice is among. A machine that has its host observes that one alone.
func (r *KubexmMachineReconciler) snapshot(ctx context.Context, s *machineScope) (*claimant, error) {
	c := &claimant{machine: s.machine, owner: s.owner}
	if name := s.machine.Status.HostRef.Name; name != "" {
		host := infrav1.KubexmHost{}
		key := client.ObjectKey{Namespace: s.machine.Namespace, Name: name}
		if err := r.Reader.Get(ctx, key, &host); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the KubexmHost %s: %w", name, err)
		} else if err == nil {
			c.hosts = []infrav1.KubexmHost{host}
		}
		return c, nil
	}
	hosts := &infrav1.KubexmHostList{}
	if err := r.Reader.List(ctx, hosts, client.InNamespace(s.machine.Namespace)); err != nil {
		return nil, fmt.Errorf("list KubexmHosts: %w", err)
	}
	owners, machines, err := r.members(ctx, s.cluster)
	if err != nil {
		return nil, err
	}
	if c.ids, err = r.readIdentities(ctx); err != nil {
		return nil, err
	}
	if c.network, err = r.networkOf(ctx, s.cluster); err != nil {
		return nil, err
	}
	c.hosts, c.peers = hosts.Items, peersOf(s.owner, owners, machines)
	return c, nil
}

// disown ends the claim of a machine of the same name that is gone, and that nobody has released: its finalizer was removed by hand. The
// host goes into quarantine unless it was reset.
func (r *KubexmMachineReconciler) disown(ctx context.Context, host *infrav1.KubexmHost) error {
	before := host.DeepCopy()
	host.Release(metav1.NewTime(r.now()))
	changed := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, host, changed); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("release the KubexmHost %s: %w", klog.KObj(host), err)
	}
	return nil
}

// claim writes the machine's name and UID on the host, unless the host has changed since it was read. A claim that is the machine's already
// gets its UID: clusterctl has moved both, and a moved object is another one.
func (r *KubexmMachineReconciler) claim(ctx context.Context, host *infrav1.KubexmHost, s *machineScope) error {
	before := host.DeepCopy()
	host.Claim(infrav1.MachineReference{Name: s.machine.Name, ClusterName: s.cluster.Name, UID: string(s.machine.UID)})
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Claimed a host", "KubexmHost", klog.KObj(host))
	return nil
}

// markInUse makes sure, before anybody touches the host, that it is not handed out again without a reset.
func (r *KubexmMachineReconciler) markInUse(ctx context.Context, host *infrav1.KubexmHost) error {
	before := host.DeepCopy()
	host.MarkInUse()
	setAvailable(host, availability(host, r.now()))
	return r.Client.Status().Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// describe writes what the machine says of its host.
func describe(s *machineScope, host *infrav1.KubexmHost) {
	m := s.machine
	m.Spec.ProviderID = infrav1.ProviderID(host)
	m.Status.HostRef = infrav1.HostReference{Name: host.Name}
	m.Status.Addresses = addressesOf(host)
	m.Status.FailureDomain = host.Spec.FailureDomain
	conditions.Set(m, metav1.Condition{
		Type: infrav1.HostClaimedCondition, Status: metav1.ConditionTrue, Reason: infrav1.HostClaimedReason,
		Message: fmt.Sprintf("%s (%s)", host.Name, host.Spec.Address),
	})
	if ptr.Deref(s.owner.Spec.Bootstrap.DataSecretName, "") != "" {
		m.Status.Initialization.Provisioned = ptr.To(true)
	}
}

// reconcileDelete ends the claim on the host, when the Machine does not need it any more. A host that was not reset goes into quarantine.
func (r *KubexmMachineReconciler) reconcileDelete(ctx context.Context, s *machineScope) error {
	machine := s.machine
	hosts := &infrav1.KubexmHostList{}
	if err := r.Reader.List(ctx, hosts, client.InNamespace(machine.Namespace)); err != nil {
		return fmt.Errorf("list KubexmHosts: %w", err)
	}
	for i := range hosts.Items {
		host := &hosts.Items[i]
		if !host.IsOf(machine) {
			continue
		}
		if !conditions.IsTrue(host, infrav1.CleanCondition) { // or it is not known, and may be in use
			if waiting, err := r.needs(ctx, s, host); err != nil || waiting != nil {
				s.waiting = waiting
				return err // the Machine is watched
			}
		}
		if conditions.GetReason(host, infrav1.CleanCondition) == infrav1.InUseReason {
			before := host.DeepCopy()
			host.MarkNotReset()
			changed := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := r.Client.Status().Patch(ctx, host, changed); err != nil {
				return fmt.Errorf("put the KubexmHost %s into quarantine: %w", klog.KObj(host), err)
			}
		}
		before := host.DeepCopy()
		host.Release(metav1.NewTime(r.now()))
		changed := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, host, changed); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release the KubexmHost %s: %w", klog.KObj(host), err)
		}
		ctrl.LoggerFrom(ctx).Info("Released a host", "KubexmHost", klog.KObj(host))
	}
	controllerutil.RemoveFinalizer(machine, infrav1.MachineFinalizer)
	return nil
}

// needs says why the Machine still needs its host, nil if it does not. By the contract its hooks come before the end of its
// infrastructure, and the reset is one of them; but that end does not always begin with the Machine: the garbage collector
// deletes what it owns at once when it is deleted in the foreground, and anybody may delete a KubexmMachine alone.
func (r *KubexmMachineReconciler) needs(ctx context.Context, s *machineScope, host *infrav1.KubexmHost) (*decision.Blocker, error) {
	if s.owner == nil {
		return nil, nil
	}
	owner := &clusterv1.Machine{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.owner), owner); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get the Machine %s: %w", klog.KObj(s.owner), err)
	}
	for name := range owner.Annotations {
		if !strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) {
			continue
		}
		if owner.DeletionTimestamp.IsZero() {
			return decision.Block(infrav1.WaitingForReleaseReason,
				"the Machine %s uses the host %s: delete the Machine, which has the host reset first", owner.Name, host.Name), nil
		}
		return decision.Block(infrav1.WaitingForReleaseReason,
			"the host %s is released when the hooks of the Machine %s are done, its reset among them", host.Name, owner.Name), nil
	}
	return nil, nil
}

func setClaimed(machine *infrav1.KubexmMachine, reason, message string) {
	conditions.Set(machine, metav1.Condition{
		Type: infrav1.HostClaimedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message,
	})
}

// setMachineReady sums up the other conditions.
func setMachineReady(s *machineScope) {
	ready := metav1.Condition{Type: infrav1.ReadyCondition, Status: metav1.ConditionTrue, Reason: infrav1.ReadyReason}
	deleting := metav1.Condition{Type: infrav1.DeletingCondition, Status: metav1.ConditionFalse, Reason: infrav1.NotDeletingReason}
	claimed := conditions.Get(s.machine, infrav1.HostClaimedCondition)
	switch {
	case !s.machine.DeletionTimestamp.IsZero():
		deleting.Status, deleting.Reason = metav1.ConditionTrue, infrav1.DeletingReason
		if s.waiting != nil {
			deleting.Reason, deleting.Message = s.waiting.Reason, s.waiting.Message
		}
		ready.Status, ready.Reason = metav1.ConditionFalse, infrav1.DeletingReason
	case claimed == nil:
		ready.Status, ready.Reason = metav1.ConditionUnknown, infrav1.WaitingForOwnerReason
	case claimed.Status != metav1.ConditionTrue:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, claimed.Reason, claimed.Message
	case !ptr.Deref(s.machine.Status.Initialization.Provisioned, false):
		ready.Status, ready.Reason = metav1.ConditionFalse, infrav1.WaitingForBootstrapDataReason
		ready.Message = "the Machine has no bootstrap data yet"
	}
	conditions.Set(s.machine, deleting)
	conditions.Set(s.machine, ready)
}
