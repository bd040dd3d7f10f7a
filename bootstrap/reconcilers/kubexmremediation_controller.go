// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/remediation"
)

// remediating is what is done, in events.
const remediating = "Remediate"

// KubexmRemediationReconciler has hosts of unhealthy workers repaired, and their Machines replaced where that does not help. It touches
// no host: it asks for that by annotations of KubexmConfigs. All fields but WatchFilter are required.
type KubexmRemediationReconciler struct {
	// Client reads from a cache; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	Events      events.EventRecorder
}

// Reconcile does the next of what one KubexmRemediation is for. That it exists is how a MachineHealthCheck asks for it, and it goes
// when the Machine is healthy.
func (r *KubexmRemediationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	object := &bootstrapv1.KubexmRemediation{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, object)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(object, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	p, cluster, err := r.fetch(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), cluster, object)
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.reconcileDelete(ctx, p)
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, object, bootstrapv1.RemediationFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	defer func() {
		object.Status.ObservedGeneration = object.Generation
		written.Close(ctx, &result, &reterr)
	}()
	return r.reconcileMachine(ctx, p)
}

// fetch reads what is decided on. The Cluster is nil if there is none.
func (r *KubexmRemediationReconciler) fetch(
	ctx context.Context, object *bootstrapv1.KubexmRemediation,
) (*remediationCase, *clusterv1.Cluster, error) {
	p := &remediationCase{remediation: object}
	machine, err := util.GetOwnerMachine(ctx, r.Client, object.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("get the Machine of the KubexmRemediation %s: %w", klog.KObj(object), err)
	}
	name := object.Labels[clusterv1.ClusterNameLabel]
	if err == nil && machine != nil {
		p.machine, name = machine, machine.Spec.ClusterName
		if p.config, err = r.configOf(ctx, machine); err != nil {
			return nil, nil, err
		}
	}
	if name == "" {
		return p, nil, nil
	}
	cluster, err := util.GetClusterByName(ctx, r.Client, object.Namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return p, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("get the Cluster of the KubexmRemediation %s: %w", klog.KObj(object), err)
	}
	return p, cluster, nil
}

// configOf is a Machine's KubexmConfig, nil if it has another kind's, or none any more.
func (r *KubexmRemediationReconciler) configOf(ctx context.Context, machine *clusterv1.Machine) (*bootstrapv1.KubexmConfig, error) {
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.GroupKind() != bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind() {
		return nil, nil
	}
	config := &bootstrapv1.KubexmConfig{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the KubexmConfig of the Machine %s: %w", klog.KObj(machine), err)
	}
	return config, nil
}

// reconcileMachine does what is decided. The annotation comes first, and is the record: who goes on after this was killed finds it.
func (r *KubexmRemediationReconciler) reconcileMachine(ctx context.Context, p *remediationCase) (ctrl.Result, error) {
	d := p.decide(time.Now())
	if d.ask != nil {
		err := r.ask(ctx, p, d.ask)
		if apierrors.IsConflict(err) { // the KubexmConfig is not what was decided by any more: perhaps the host was asked already
			return ctrl.Result{RequeueAfter: time.Second}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	status := &p.remediation.Status
	if !d.converge.IsZero() {
		status.LastConvergeTime = d.converge
	}
	if !d.reboot.IsZero() {
		status.LastRebootTime = d.reboot
	}
	conditions.Set(p.remediation, metav1.Condition{
		Type: bootstrapv1.RemediatingCondition, Status: d.status, Reason: d.Reason, Message: d.Message,
	})
	if d.onMachine {
		if err := r.reportOnMachine(ctx, p, &d); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: d.after}, nil
}

// ask asks the host for what an attempt is, unless its KubexmConfig is not as it was any more: that is a conflict.
func (r *KubexmRemediationReconciler) ask(ctx context.Context, p *remediationCase, to *remediation.Attempt) error {
	before := p.config.DeepCopy()
	p.config.Ask(to.Stage.Annotation, to.Asked)
	if err := r.Client.Patch(ctx, p.config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("annotate the KubexmConfig %s: %w", klog.KObj(p.config), err)
	}
	ctrl.LoggerFrom(ctx).Info("Asked to repair the host of an unhealthy Machine", "Machine", p.machine.Name, "annotation", to.Stage.Annotation)
	why := conditions.GetMessage(p.machine, clusterv1.MachineHealthCheckSucceededCondition)
	r.Events.Eventf(p.remediation, p.machine, corev1.EventTypeWarning, to.Stage.Reason, remediating, "%s",
		short(fmt.Sprintf("the Machine %s is unhealthy: %s: %s", p.machine.Name, to.Stage.Doing(), why)))
	return nil
}

// reportOnMachine says on the Machine what is done with it, and has its MachineSet replace it when it is that one's turn: it does so with
// Machines whose HealthCheckSucceeded and OwnerRemediated both are False.
func (r *KubexmRemediationReconciler) reportOnMachine(ctx context.Context, p *remediationCase, d *remediationDecision) error {
	helper, err := patch.NewHelper(p.machine, r.Client)
	if err != nil {
		return err
	}
	conditions.Set(p.machine, metav1.Condition{
		Type: clusterv1.MachineExternallyRemediatedCondition, Status: metav1.ConditionFalse, Reason: d.Reason, Message: d.Message,
	})
	if d.handsOn {
		conditions.Set(p.machine, metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
			Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, Message: d.Message,
		})
	}
	err = helper.Patch(ctx, p.machine, patch.WithOwnedConditions{Conditions: []string{clusterv1.MachineExternallyRemediatedCondition}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the conditions of the Machine %s: %w", klog.KObj(p.machine), err)
	}
	if d.handsOn && err == nil {
		ctrl.LoggerFrom(ctx).Info("Left an unhealthy Machine to its MachineSet", "Machine", p.machine.Name)
		r.Events.Eventf(p.remediation, p.machine, corev1.EventTypeWarning, "WaitingForOwnerRemediation", remediating, "%s",
			short(fmt.Sprintf("the Machine %s is unhealthy still: %s", p.machine.Name, d.Message)))
	}
	return nil
}

// reconcileDelete takes back what the Machine says of being remediated, and lets the KubexmRemediation go.
func (r *KubexmRemediationReconciler) reconcileDelete(ctx context.Context, p *remediationCase) error {
	if m := p.machine; m != nil && !util.IsControlPlaneMachine(m) && conditions.Has(m, clusterv1.MachineExternallyRemediatedCondition) {
		helper, err := patch.NewHelper(m, r.Client)
		if err != nil {
			return err
		}
		conditions.Delete(m, clusterv1.MachineExternallyRemediatedCondition)
		err = helper.Patch(ctx, m, patch.WithOwnedConditions{Conditions: []string{clusterv1.MachineExternallyRemediatedCondition}})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("write the conditions of the Machine %s: %w", klog.KObj(m), err)
		}
	}
	before := p.remediation.DeepCopy()
	if !controllerutil.RemoveFinalizer(p.remediation, bootstrapv1.RemediationFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, p.remediation, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of the KubexmRemediation %s: %w", klog.KObj(p.remediation), err)
	}
	return nil
}
