// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// again is when to look again at what nobody tells us of: time that has passed.
const again = 5 * time.Second

// KubexmOperationReconciler has hosts do what KubexmOperations ask for. All fields but WatchFilter are required; Hosts for what is one
// plan over several hosts.
type KubexmOperationReconciler struct {
	// Client reads from a cache; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	Events      events.EventRecorder
	// Hosts are how hosts are reached, and Jobs what is done with several by one plan.
	Hosts Hosts
	Jobs  *Jobs

	mu sync.Mutex
	// progress is how far each host is in a job that goes on, and attempts how often a restore has failed, by the KubexmOperation.
	progress map[types.UID]*hostsProgress
	attempts map[types.UID]attempt
}

// scope is all that one reconcile knows.
type scope struct {
	operation *bootstrapv1.KubexmOperation
	verb      verb
	// configs are those of the target, nil if there are none, and all those of the namespace.
	configs []bootstrapv1.KubexmConfig
	cluster *clusterv1.Cluster
	now     time.Time
	// members and together are what a restore is decided on, and what its jobs need.
	members  *membership
	together *together
	// ended is whether the job's result was taken in, and can be forgotten once the object is written.
	ended bool
}

// phase does one part of the work. It reports whether the next may go on.
type phase struct {
	name string
	do   func(context.Context, *scope) (goOn bool, result ctrl.Result, err error)
}

// Reconcile does the next of what one KubexmOperation is for.
func (r *KubexmOperationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	o := &bootstrapv1.KubexmOperation{}
	object, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, o)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if r.Jobs.Disown(request.NamespacedName, o.UID, errGone) || err != nil {
		return ctrl.Result{}, nil // we are notified when the job of the one that had this name has ended
	}
	isTogether := o.Spec.Type == bootstrapv1.RestoreEtcdType
	if r.WatchFilter != "" && !labels.HasWatchLabel(o, r.WatchFilter) || !o.DeletionTimestamp.IsZero() && !isTogether {
		return ctrl.Result{}, nil // nothing is to be taken back
	}
	s := &scope{operation: o, now: time.Now()}
	if s.verb, err = verbOf(o.Spec.Type); err != nil {
		return ctrl.Result{}, err
	}
	if s.configs, err = r.target(ctx, o, s.verb); err != nil {
		return ctrl.Result{}, err
	}
	if s.cluster, err = r.clusterOf(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), s.cluster, o)
	if isPaused && isTogether {
		r.Jobs.Cancel(request.NamespacedName, errPaused)
	}
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	phases := []phase{
		{"keep what has ended for a while", r.expire},
		{"find the target", r.begin},
		{"gather results and ask hosts", r.advance},
		{"complete", r.complete},
	}
	if isTogether && o.Annotations[bootstrapv1.OperationCompletedAnnotation] == "" && o.DeletionTimestamp.IsZero() {
		if added, err := finalizers.EnsureFinalizer(ctx, r.Client, o, bootstrapv1.OperationFinalizer); err != nil || added {
			return ctrl.Result{}, err
		}
	}
	if isTogether {
		phases = r.restorePhases()
	}
	defer func() {
		o.Status.ObservedGeneration = o.Generation
		// Not before the result is written: a conflict would lose it.
		if written := object.Close(ctx, &result, &reterr); written && s.ended { // of restores alone
			r.Jobs.Forget(request.NamespacedName)
		}
	}()
	for _, p := range phases {
		goOn, result, err := p.do(ctx, s)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("%s: %w", p.name, err)
		}
		if !goOn {
			return result, nil
		}
	}
	return ctrl.Result{}, nil
}

// clusterOf is the Cluster of the operation, nil if it has none, or not yet.
func (r *KubexmOperationReconciler) clusterOf(ctx context.Context, s *scope) (*clusterv1.Cluster, error) {
	name := s.operation.Labels[clusterv1.ClusterNameLabel]
	if of := clustersOf(s.configs); name == "" && len(of) == 1 {
		name = of[0]
	}
	if name == "" {
		return nil, nil
	}
	cluster, err := util.GetClusterByName(ctx, r.Client, s.operation.Namespace, name)
	if apierrors.IsNotFound(err) { // a cache may be behind, and hosts that are held are released when their Cluster is gone
		cluster = &clusterv1.Cluster{}
		err = r.Reader.Get(ctx, client.ObjectKey{Namespace: s.operation.Namespace, Name: name}, cluster)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the Cluster of the KubexmOperation %s: %w", klog.KObj(s.operation), err)
	}
	return cluster, nil
}

// expire deletes an operation that has ended when its time has passed, and says of one whose status was lost how it has ended.
func (r *KubexmOperationReconciler) expire(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	at, how, _ := strings.Cut(o.Annotations[bootstrapv1.OperationCompletedAnnotation], " ")
	ended, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return true, ctrl.Result{}, nil // none, or none of ours
	}
	if o.Status.CompletionTime.IsZero() {
		o.Status.CompletionTime = metav1.NewTime(ended)
		status := metav1.ConditionFalse
		if how == bootstrapv1.OperationSucceededReason {
			status = metav1.ConditionTrue
		}
		setSucceeded(o, status, how, "it ended before its status was lost, and with it what came of each host")
	}
	if o.Spec.TTLSecondsAfterFinished == nil {
		return false, ctrl.Result{}, nil
	}
	left := ended.Add(time.Duration(*o.Spec.TTLSecondsAfterFinished) * time.Second).Sub(s.now)
	if left > 0 {
		return false, ctrl.Result{RequeueAfter: left}, nil
	}
	err = r.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID})
	return false, ctrl.Result{}, client.IgnoreNotFound(err)
}

func setSucceeded(o *bootstrapv1.KubexmOperation, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(o, metav1.Condition{Type: bootstrapv1.SucceededCondition, Status: status, Reason: reason, Message: message})
}

// begin finds the hosts. Before any is asked, it is written when the operation began, and it becomes a part of its Cluster: it is moved
// and deleted with that.
func (r *KubexmOperationReconciler) begin(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	if o.Annotations[bootstrapv1.OperationStartedAnnotation] != "" && len(o.Status.Hosts) > 0 {
		return true, ctrl.Result{}, nil
	}
	if of := clustersOf(s.configs); len(of) > 1 {
		setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.OperationWaitingReason, fmt.Sprintf(
			"several Clusters in this namespace have a %s %s: %s; set the label %s of this to the one that is meant",
			o.Spec.Target.Kind, o.Spec.Target.Name, strings.Join(of, ", "), clusterv1.ClusterNameLabel))
		return false, ctrl.Result{RequeueAfter: again}, nil
	}
	if len(s.configs) == 0 || s.cluster == nil {
		setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.TargetNotFoundReason,
			fmt.Sprintf("there is no %s %s in this namespace that has a host for this with a KubexmConfig", o.Spec.Target.Kind, o.Spec.Target.Name))
		return false, ctrl.Result{RequeueAfter: again}, nil
	}
	if o.Annotations[bootstrapv1.OperationStartedAnnotation] == "" {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationStartedAnnotation, s.now.UTC().Format(time.RFC3339))
	}
	metav1.SetMetaDataLabel(&o.ObjectMeta, clusterv1.ClusterNameLabel, s.cluster.Name)
	o.OwnerReferences = util.EnsureOwnerRef(o.OwnerReferences, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: s.cluster.Name, UID: s.cluster.UID,
	})
	started, err := time.Parse(time.RFC3339, o.Annotations[bootstrapv1.OperationStartedAnnotation])
	if err != nil {
		return false, ctrl.Result{}, fmt.Errorf("the annotation %s: %w", bootstrapv1.OperationStartedAnnotation, err)
	}
	o.Status.StartTime, o.Status.Hosts = metav1.NewTime(started), nil // those may have been written, and the annotation not
	s.list()
	r.show(s)
	return false, ctrl.Result{RequeueAfter: time.Millisecond}, nil // hosts are asked when this is written
}

// list says which hosts the target has.
func (s *scope) list() {
	for i := range s.configs {
		c := &s.configs[i]
		name := c.Status.Host.Name
		if name == "" {
			name = c.Name
		}
		s.operation.Status.Hosts = append(s.operation.Status.Hosts, bootstrapv1.HostOperationStatus{
			ConfigName: c.Name, Name: name, Phase: bootstrapv1.OperationPending,
		})
	}
}

// show says how the operation stands, and returns that, whether it has ended, and whether it was not done on a host.
func (r *KubexmOperationReconciler) show(s *scope) (message string, ended, failed bool) {
	o := s.operation
	var failures []string
	o.Status.Summary, ended, failures = sum(o.Status.Hosts)
	message = "it has ended with " + o.Status.Summary + " hosts"
	if len(failures) > 0 {
		message += ": " + strings.Join(failures, ", ")
	}
	setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.OperationRunningReason, message)
	return message, ended, len(failures) > 0
}

// advance takes in what came of hosts that were asked, and asks those whose turn it is. The request comes first, and is the record: who
// goes on after this was killed finds it.
func (r *KubexmOperationReconciler) advance(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	started, err := time.Parse(time.RFC3339, o.Annotations[bootstrapv1.OperationStartedAnnotation])
	if err != nil {
		return false, ctrl.Result{}, fmt.Errorf("the annotation %s: %w", bootstrapv1.OperationStartedAnnotation, err)
	}
	p := &progress{
		verb: s.verb, name: o.Name, started: started, created: o.CreationTimestamp.Time, now: s.now, spec: &o.Spec,
		configs: map[string]*bootstrapv1.KubexmConfig{},
	}
	for _, h := range o.Status.Hosts {
		c := &bootstrapv1.KubexmConfig{}
		// From the API server: by an old copy, a host would be asked twice.
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: h.ConfigName}, c)
		switch {
		case err == nil:
			p.configs[h.ConfigName] = c
		case !apierrors.IsNotFound(err):
			return false, ctrl.Result{}, fmt.Errorf("get the KubexmConfig %s: %w", h.ConfigName, err)
		}
	}
	for _, h := range p.advance(o.Status.Hosts) {
		if err := r.ask(ctx, s, p, h); err != nil {
			return false, ctrl.Result{}, err
		}
	}
	_, ended, _ := r.show(s)
	return ended, ctrl.Result{RequeueAfter: again}, nil
}

// ask asks one host, unless its KubexmConfig is not as it was any more: then it is decided anew.
func (r *KubexmOperationReconciler) ask(ctx context.Context, s *scope, p *progress, h *bootstrapv1.HostOperationStatus) error {
	c := p.configs[h.ConfigName]
	before, at := c.DeepCopy(), s.now.UTC().Truncate(time.Second)
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, p.annotation, p.request(at))
	err := r.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("annotate the KubexmConfig %s: %w", c.Name, err)
	}
	h.Phase, h.RequestTime, h.Message = bootstrapv1.OperationRunning, metav1.NewTime(at), "it was asked for"
	ctrl.LoggerFrom(ctx).Info("Asked a host for an operation", "type", s.operation.Spec.Type, "host", h.Name)
	r.Events.Eventf(s.operation, c, corev1.EventTypeNormal, "HostRequested", string(s.operation.Spec.Type), "requested on host %s", h.Name)
	return nil
}

// complete ends the operation.
func (r *KubexmOperationReconciler) complete(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	message, _, failed := r.show(s)
	status, reason, kind := metav1.ConditionTrue, bootstrapv1.OperationSucceededReason, corev1.EventTypeNormal
	if failed {
		status, reason, kind = metav1.ConditionFalse, bootstrapv1.OperationFailedReason, corev1.EventTypeWarning
	}
	setSucceeded(o, status, reason, message)
	o.Status.CompletionTime = metav1.NewTime(s.now)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationCompletedAnnotation, s.now.UTC().Format(time.RFC3339)+" "+reason)
	r.Events.Eventf(o, nil, kind, "Operation"+reason, string(o.Spec.Type), "%s", message)
	return false, ctrl.Result{RequeueAfter: time.Millisecond}, nil
}
