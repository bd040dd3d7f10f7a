// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Workload observes a cluster through its own API.
type Workload func(ctx context.Context, kubeconfig secret.Value, c *snapshot.ControlPlane) *snapshot.Workload

// RemovedAPIs finds out which APIs are in use in a cluster that a version of Kubernetes does not serve.
type RemovedAPIs func(ctx context.Context, kubeconfig secret.Value, version string) *snapshot.APIs

// KubexmControlPlaneReconciler brings KubexmControlPlanes about. All fields but WatchFilter are required.
type KubexmControlPlaneReconciler struct {
	// Client reads from a cache, but Secrets; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	Events      events.EventRecorder
	Workload    Workload
	RemovedAPIs RemovedAPIs
	Serving     Serving
	// Clock is the one by which Machines age, and that maintenance windows are compared with.
	Clock clock.PassiveClock

	mu sync.Mutex
	// answered is when each cluster's API last answered, or was first asked, by the KubexmControlPlane's UID.
	answered map[types.UID]time.Time
	// asked is what was last found out of each cluster's APIs, by the KubexmControlPlane's UID.
	asked map[types.UID]askedAPIs
}

// scope is one reconcile's snapshot, and what is to be said of it in the end.
type scope struct {
	*snapshot.ControlPlane
	// clusterConfig is what the Cluster's hosts are told, nil while there is none.
	clusterConfig *bootstrapv1.KubexmClusterConfig
	// infrastructure are the Machines' infrastructure machines, by the Machines' names.
	infrastructure map[string]*unstructured.Unstructured
	// held is the KubexmOperation that holds the control plane's hosts, "" if none does: nothing is decided of them then.
	held string
	// blocked is why no Machine is made, replaced or changed though it should be, nil if nothing stands in the way.
	blocked *decision.Blocker
	// wait is what that waits for, if nothing else stands in the way.
	wait *snapshot.Wait
	// staying are why hosts that are no Nodes stay though they are not wanted any more.
	staying []*decision.Blocker
	// preflight is what must be repaired before another version is rolled out, nil if nothing must.
	preflight *decision.Blocker
	// serving is what became of the requests of kubelets for serving certificates, nil if it was not looked.
	serving *snapshot.Serving
	// deleting is what the deletion waits for, or that it is completed; nil while neither is known.
	deleting *decision.Blocker
	// silence is for how long the cluster's API has not answered, 0 if it does.
	silence time.Duration
	// kubeconfig is the administrator's, if there is one.
	kubeconfig secret.Value
}

// Reconcile brings one KubexmControlPlane closer to what it must be.
func (r *KubexmControlPlaneReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	object := &controlplanev1.KubexmControlPlane{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, object)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(object, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, object.ObjectMeta)
	if err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, fmt.Errorf("get the Cluster of the KubexmControlPlane %s: %w", klog.KObj(object), err)
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), cluster, object)
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if cluster == nil {
		return ctrl.Result{}, nil // Cluster API will own it, and then we are told
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, object, controlplanev1.ControlPlaneFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}
	s, err := r.fetch(ctx, object, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}

	defer func() {
		s.describe()
		object.Status.ObservedGeneration = object.Generation
		written.Close(ctx, &result, &reterr)
	}()
	if !object.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, s)
	}
	if err := r.reconcileControlPlane(ctx, s); errors.As(err, new(*untrusted)) {
		ctrl.LoggerFrom(ctx).Error(err, "The cluster's key pairs are not those that it was made with")
		return ctrl.Result{RequeueAfter: untrustedAgain}, nil // the condition says so
	} else if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: s.next()}, nil
}

// fetch reads all of the Cluster's Machines and KubexmConfigs, and what its own Machines' infrastructure machines are.
func (r *KubexmControlPlaneReconciler) fetch(
	ctx context.Context, object *controlplanev1.KubexmControlPlane, cluster *clusterv1.Cluster,
) (*scope, error) {
	s := &scope{ControlPlane: &snapshot.ControlPlane{Object: object, Cluster: cluster, Now: r.Clock.Now()}}
	machines, err := machinesOf(ctx, r.Client, cluster)
	s.Machines = machines
	if err != nil {
		return nil, err
	}
	if s.Configs, err = configsOf(ctx, r.Client, cluster); err != nil {
		return nil, err
	}
	if err := r.fetchClusterConfig(ctx, s); err != nil {
		return nil, err
	}
	if s.held, err = holder.By(ctx, r.Reader, s.clusterConfig); err != nil {
		return nil, err
	}
	return s, r.fetchInfrastructure(ctx, s)
}

func (r *KubexmControlPlaneReconciler) fetchInfrastructure(ctx context.Context, s *scope) error {
	s.infrastructure, s.Templates = map[string]*unstructured.Unstructured{}, map[string]snapshot.Template{}
	for _, m := range s.Own() {
		ref := m.Spec.InfrastructureRef
		found, err := external.GetObjectFromContractVersionedRef(ctx, r.Client, ref, s.Object.Namespace)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get the %s %s: %w", ref.Kind, ref.Name, err)
		}
		s.infrastructure[m.Name] = found
		made := snapshot.Template{
			GroupKind: found.GetAnnotations()[clusterv1.TemplateClonedFromGroupKindAnnotation],
			Name:      found.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation],
		}
		if made.GroupKind != "" && made.Name != "" {
			s.Templates[m.Name] = made
		}
	}
	return nil
}

func machinesOf(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := reader.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("list the Machines of the Cluster %s: %w", klog.KObj(cluster), err)
	}
	return list.Items, nil
}

func configsOf(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster) ([]bootstrapv1.KubexmConfig, error) {
	list := &bootstrapv1.KubexmConfigList{}
	if err := reader.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("list the KubexmConfigs of the Cluster %s: %w", klog.KObj(cluster), err)
	}
	return list.Items, nil
}

// reconcileControlPlane is what becomes of a KubexmControlPlane that stays. What was observed of Machines is written whatever else fails: a
// refused write of another object must not make components look unknown.
func (r *KubexmControlPlaneReconciler) reconcileControlPlane(ctx context.Context, s *scope) error {
	failed := r.reconcilePhases(ctx, s)
	if failed != nil && s.ControlPlane.Workload == nil {
		return failed // before anything was observed
	}
	if err := r.reportOnMachines(ctx, s); err != nil {
		failed = errors.Join(failed, fmt.Errorf("conditions of Machines: %w", err))
	}
	return failed
}

// reconcilePhases does what there is to do for a KubexmControlPlane, in order.
func (r *KubexmControlPlaneReconciler) reconcilePhases(ctx context.Context, s *scope) error {
	for _, phase := range []struct {
		name string
		do   func(context.Context, *scope) error
	}{
		{"certificate authorities", r.reconcileAuthorities}, // before any host needs them
		{"kubeconfig", r.reconcileKubeconfig},
		{"cluster's API", r.observeCluster}, // before anything is decided
		{"who holds its hosts", r.standStill},
		{"workers of other bootstrap providers", r.reconcileOtherWorkers},
		{"hosts that are no Nodes", r.reconcileInventory},
		{"members", r.reconcileMembers},                      // before a host that needs them joins, and while one leaves
		{"unhealthy Machines", r.reconcileUnhealthyMachines}, // before others are made or replaced
		{"Machines", r.reconcileMachines},                    // before the endpoint is known: it may be that of the first host
		{"hosts that leave", r.reconcileLeavingHosts},
		{"what reaches Machines in place", r.syncMachines},
	} {
		if err := phase.do(ctx, s); errors.Is(err, errHeld) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return nil
}

// errHeld ends the phases of a control plane whose hosts are held.
var errHeld = errors.New("its hosts are held")

// standStill decides nothing while a KubexmOperation does something with all hosts of the control plane and of etcd: no member comes or
// goes.
func (r *KubexmControlPlaneReconciler) standStill(_ context.Context, s *scope) error {
	if s.held == "" {
		return nil
	}
	s.blocked = decision.Block(bootstrapv1.HeldReason, "%s", holder.Why(s.held))
	return errHeld
}

// observeCluster observes the cluster through its own API, once there is one.
func (r *KubexmControlPlaneReconciler) observeCluster(ctx context.Context, s *scope) error {
	if len(s.Own()) == 0 || s.kubeconfig.IsZero() {
		return nil
	}
	s.ControlPlane.Workload = r.Workload(ctx, s.kubeconfig, s.ControlPlane)
	s.silence = r.silence(s.Object.UID, s.ControlPlane.Workload.Err == nil, s.Now)
	r.askForAPIs(ctx, s)
	return nil
}

// heldAgain is when a control plane whose hosts are held is reconciled again.
const heldAgain = 10 * time.Second

// lessOften is when a cluster's API is asked again that has been silent for long, 0 if it has not been: each question waits for it, and
// those who ask are few.
func (s *scope) lessOften() time.Duration {
	if !s.Begun() || s.connectionDown() == nil || s.silence < time.Minute {
		return 0
	}
	return min(s.silence/10, time.Minute)
}

func (s *scope) next() time.Duration {
	s.describe()
	next := s.Next()
	if len(s.Own()) == 0 && s.blocked != nil && s.blocked.Reason == controlplanev1.NotAvailableReason {
		next = templateAgain // what the first Machine is made from may come to exist
	}
	if s.held != "" {
		return heldAgain // a KubexmOperation that goes is not watched here
	}
	if s.wait == nil {
		return max(next, s.lessOften())
	}
	next = time.Minute // we are told of an approval
	if !s.wait.Until.IsZero() {
		next = min(next, s.wait.Until.Sub(s.Now))
	}
	return next
}
