// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/cluster-api/util/paused"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// askAgain is when to ask again what no object of this cluster tells: whether a host lets us in, whether a turn was released, or
	// whether the time of something has come while something else goes on.
	askAgain = 10 * time.Second
	// unwatchedAgain is when to read again what is waited for, where its changes may pass unseen. All else is watched.
	unwatchedAgain = time.Minute
)

// Causes for which a run is stopped.
var (
	errPaused   = errors.New("the Cluster or the KubexmConfig is paused")
	errGone     = errors.New("the KubexmConfig does not exist any more")
	errDeleting = errors.New("the host is to be reset")
	errChanged  = errors.New("the host is to become something else")
	errGivenUp  = errors.New("the reset of the host is skipped")
	errTooLate  = errors.New("its maintenance window closed before the run could begin")
)

// Artifacts opens the bundle for a version of Kubernetes.
type Artifacts func(ctx context.Context, from spec.Artifacts, version string) (*artifact.Bundle, error)

// Runner runs jobs on hosts.
type Runner = hostrun.Runner[outcome]

// NewRunner returns a Runner for so many hosts at once, which shows progress at most once per throttle.
func NewRunner(ctx context.Context, hostsAtOnce int, throttle time.Duration) *Runner {
	return hostrun.New[outcome](ctx, hostsAtOnce, throttle)
}

// KubexmConfigReconciler makes each KubexmConfig's host what it must be. All fields but WatchFilter, Watch, Reads and Logs are required.
type KubexmConfigReconciler struct {
	// Client reads from a cache, but Secrets; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Watch has what objects of an infrastructure provider's kind are about reconciled, from now on, or once the kind is installed. It
	// returns when to read them again because changes may pass unseen until then, 0 if they do not.
	Watch  func(context.Context, schema.GroupKind) (time.Duration, error)
	Events events.EventRecorder

	Runner *Runner
	Dial   Dial
	// CallHome takes the connections that hosts open themselves. If nil, none does.
	CallHome  *callhome.Server
	Agent     bool // Dial finds something to log in with, where a Secret says so
	Artifacts Artifacts
	// Slots are what all runs share for limits on how many hosts at once a step is made.
	Slots engine.Slots
	// Plan plans a host: Pipelines, but in tests.
	Plan Planner
	// Reads is notified of everything that happens in runs. May be nil.
	Reads event.Reader
	// Holder names this process to who finds a host locked.
	Holder string
	// DriftCheckInterval is how often a converged host is compared with its plan.
	DriftCheckInterval time.Duration
	// Settle is how long a host must be well after it was disrupted before another one of its pool follows.
	Settle time.Duration
	// Clock is the one that maintenance windows are compared with.
	Clock clock.PassiveClock
	// Logs is where the logs of hosts that failed are kept before these are touched. If empty, they are not.
	Logs hostlogs.Dir

	mu     sync.Mutex
	caches map[types.UID]hostCache
}

// Reconcile brings one KubexmConfig's host closer to what it must be. It never waits for a host.
func (r *KubexmConfigReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	config := &bootstrapv1.KubexmConfig{}
	object, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, config)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if r.Runner.Disown(request.NamespacedName, config.UID, errGone) || err != nil {
		return ctrl.Result{}, nil // we are notified when the job of the one that had this name has ended
	}
	if r.WatchFilter != "" && !labels.HasWatchLabel(config, r.WatchFilter) {
		return ctrl.Result{}, nil
	}
	s, err := r.fetch(ctx, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.machine == nil && !s.hasNoMachine() && config.DeletionTimestamp.IsZero() {
		// Cluster API will own it, and then we are told. Until then it writes to it, and gives up on conflicts.
		return ctrl.Result{}, nil
	}
	isPaused, requeue, err := paused.EnsurePausedCondition(ctx, live.Client(r.Client, r.Reader), s.cluster, config)
	if isPaused {
		// Who pauses, to move objects to another manager for one, counts on it that nobody writes to the host any more.
		r.Runner.Cancel(s.key, errPaused)
		r.beginAnew(config.UID)
	}
	if err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if added, err := finalizers.EnsureFinalizer(ctx, r.Client, config, bootstrapv1.ConfigFinalizer); err != nil || added {
		return ctrl.Result{}, err
	}

	defer func() {
		summarise(config)
		config.Status.ObservedGeneration = config.Generation
		// Not before the result is in the status: a conflict would lose it.
		if written := object.Close(ctx, &result, &reterr); written && s.ended {
			r.Runner.Forget(s.key)
		}
	}()
	if err := s.recordReset(); err != nil {
		return ctrl.Result{}, err
	}
	leaves := !config.DeletionTimestamp.IsZero()
	if s.machine != nil && s.cluster != nil && !s.machine.DeletionTimestamp.IsZero() && (s.held() || !leaves) ||
		s.hasNoMachine() && leaves {
		return r.reconcileDelete(ctx, s)
	}
	switch {
	case leaves:
		return r.reconcileWithoutHost(ctx, s)
	case s.cluster == nil:
		return ctrl.Result{}, nil // when it is there, we are told
	}
	return r.reconcileHost(ctx, s)
}

// phase does one part of the work. It reports whether the next may go on.
type phase struct {
	name string
	do   func(ctx context.Context, s *scope) (goOn bool, result ctrl.Result, err error)
}

// reconcileHost is what becomes of a KubexmConfig whose host stays, in order.
func (r *KubexmConfigReconciler) reconcileHost(ctx context.Context, s *scope) (ctrl.Result, error) {
	return runPhases(ctx, s, []phase{
		{"publish the bootstrap data", r.reconcileBootstrapData}, // at once: the infrastructure waits for it
		{"collect the result", r.collectResult},                  // before anything is decided
		{"stand still while it is held", r.standStill},           // by who does something with several hosts
		{"find the host among the members", r.ensureMember},
		{"resolve the host", r.resolveHost},
		{"wait for the end of its maintenance", r.waitForMaintenance},
		{"leave a host that is closed", r.restClosed},
		{"operate on the host", r.operate(r.operations())},
		{"rest", r.reconcileLater},
	})
}

// reconcileDelete is what becomes of a KubexmConfig whose host leaves, in order. It begins when its Machine, or where there is none the
// KubexmConfig itself, is deleted.
func (r *KubexmConfigReconciler) reconcileDelete(ctx context.Context, s *scope) (ctrl.Result, error) {
	return runPhases(ctx, s, []phase{
		{"stop what goes on", r.cancelRunning}, // but what is for hosts that leave
		{"collect the result", r.collectResult},
		{"stand still while it is held", r.standStill},
		{"wait for the drain", r.waitForDrain}, // until nothing but hooks is waited for
		{"wait for the end of its maintenance", r.waitForMaintenanceToReset},
		{"operate on the host", r.operate(r.departures())},
	})
}

// runPhases does phases in order, as far as each lets the next go on.
func runPhases(ctx context.Context, s *scope, phases []phase) (ctrl.Result, error) {
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

// reconcileBootstrapData is for hosts that become Nodes.
func (r *KubexmConfigReconciler) reconcileBootstrapData(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.hasNoMachine() {
		return true, ctrl.Result{}, nil
	}
	err := r.publish(ctx, s)
	return err == nil, ctrl.Result{}, err
}

// reconcileLater is until something may be due.
func (r *KubexmConfigReconciler) reconcileLater(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	return false, ctrl.Result{RequeueAfter: s.needed.after}, nil
}

// resolveHost asks the infrastructure for the host.
func (r *KubexmConfigReconciler) resolveHost(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.clusterConfig != nil && s.config.Status.MembersDigest != bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members) {
		s.config.Status.MembersDigest = "" // what was seen of another list says nothing of this one, nor of one like that later
	}
	if err := r.locate(ctx, s); err != nil {
		if !conditions.IsTrue(s.config, bootstrapv1.HostReachableCondition) && !s.config.IsClosed() {
			setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.WaitingForHostReason, whyNotLocated(err))
		}
		return false, ctrl.Result{}, err
	}
	if s.host != nil {
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errChanged)
	setFalse(s.config, bootstrapv1.HostReachableCondition, s.waiting.Reason, s.waiting.Message)
	return false, ctrl.Result{RequeueAfter: s.again}, nil
}

// whyNotLocated says why the infrastructure could not be asked, and what to do where that is a right that we lack.
func whyNotLocated(err error) string {
	if apierrors.IsForbidden(err) {
		return err.Error() + ": add a ClusterRole that lets the manager do so, with the label bootstrap.cluster.x-k8s.io/aggregate-to-manager: \"true\""
	}
	return err.Error()
}

// watchInfrastructure has us notified of what the infrastructure says of the host.
func (r *KubexmConfigReconciler) watchInfrastructure(ctx context.Context, s *scope) error {
	s.again = 0
	if r.Watch == nil {
		return nil
	}
	for _, kind := range infra.Watched(s.machine) {
		again, err := r.Watch(ctx, kind)
		if err != nil {
			return err
		}
		s.readAgain(again)
	}
	return nil
}

// notifyJoined notifies the infrastructure that the Node is there, until Cluster API knows.
func (r *KubexmConfigReconciler) notifyJoined(ctx context.Context, s *scope) error {
	if s.machine == nil || s.machine.Status.NodeRef.IsDefined() || !conditions.IsTrue(s.config, bootstrapv1.NodeJoinedCondition) {
		return nil
	}
	if err := s.adapter.Joined(ctx, s.subject()); !isGone(err) {
		return err
	}
	return nil
}

// waitForPrerequisites waits for what plans are made from: what hosts share, the endpoint, and the certificate authorities.
func (r *KubexmConfigReconciler) waitForPrerequisites(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	waiting, err := r.waitsFor(ctx, s)
	if err != nil {
		return false, ctrl.Result{}, err
	}
	if waiting == nil {
		return true, ctrl.Result{}, nil
	}
	setFalse(s.config, bootstrapv1.HostConvergedCondition, waiting.Reason, waiting.Message)
	return false, ctrl.Result{RequeueAfter: s.again}, nil
}

// clusterConfigMissing says that nobody has said yet what hosts share, and who does.
func clusterConfigMissing(cluster *clusterv1.Cluster) *decision.Blocker {
	ref := cluster.Spec.ControlPlaneRef
	if ref.IsDefined() && ref.Kind == "KubexmControlPlane" {
		return decision.Block(bootstrapv1.WaitingForClusterReason,
			"the KubexmClusterConfig %s does not exist yet: the KubexmControlPlane %s writes it", cluster.Name, ref.Name)
	}
	who := "has no control plane object"
	if ref.IsDefined() {
		who = "has a " + ref.Kind + " as its control plane, which does not write it"
	}
	return decision.Block(bootstrapv1.WaitingForClusterReason, "the KubexmClusterConfig %s does not exist yet, and the Cluster %s: "+
		"create it in this namespace, with the version and what all hosts share", cluster.Name, who)
}

// waitsFor is the first of the prerequisites that is missing; nil if none is.
func (r *KubexmConfigReconciler) waitsFor(ctx context.Context, s *scope) (*decision.Blocker, error) {
	s.again = 0 // objects of the cluster are watched
	if s.clusterConfig == nil {
		return clusterConfigMissing(s.cluster), nil
	}
	shared := s.shared()
	if shared.Cluster.ControlPlaneEndpoint.Host() == "" {
		return decision.Block(bootstrapv1.WaitingForClusterReason,
			"it is not known yet where the API server will be reached (the Cluster's spec.controlPlaneEndpoint)"), nil
	}
	if waiting := shared.Missing(s.machine, s.config); waiting != nil {
		return waiting, nil
	}
	if waiting := shared.ControlPlaneBehind(s.machine, s.config); waiting != nil {
		return waiting, nil
	}
	needed := []capisecret.Purpose{capisecret.ClusterCA}
	switch s.role() {
	case spec.RoleControlPlane:
		needed = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA, capisecret.FrontProxyCA, capisecret.ServiceAccount}
		if shared.Cluster.Kubernetes.EncryptionAtRest.IsOn() {
			needed = append(needed, pki.EncryptionName)
		}
	case spec.RoleEtcd:
		needed = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA}
	default: // by the cluster's authority, every host knows whose it is
	}
	// Secrets are watched by Cluster API's label, lest the manager keep what all others of the management cluster are called. A person may
	// have left it out: the Secret is used all the same, and only comes to be known later.
	s.readAgain(unwatchedAgain)
	pairs, err := r.pairs(ctx, client.ObjectKeyFromObject(s.cluster), needed...)
	if err != nil {
		return nil, err
	}
	for i, p := range pairs {
		if p == nil {
			name := capisecret.Name(s.cluster.Name, needed[i])
			return decision.Block(bootstrapv1.WaitingForClusterReason,
				"the Secret %s with a certificate authority, or the encryption key, does not exist", name), nil
		}
		if waiting := untrusted(s, needed[i], p); waiting != nil {
			return waiting, nil
		}
	}
	return recordAuthority(s, pairs[0]), nil
}

// optionsFor are the engine's options for the scope's host. The engine's own contexts are those of the job.
func (r *KubexmConfigReconciler) optionsFor(s *scope) engine.Options {
	cluster, address := s.clusterKey(), s.host.Address
	return engine.Options{
		Dial:      r.dialer(s.config.Namespace, *s.host),
		Ownership: r.ownership(s),
		Secrets:   r.secrets(context.Background(), cluster),
		Cluster:   r.api(cluster),
		Holder:    r.Holder,
		Address:   func(string) string { return address },
		Slots:     r.Slots.In(cluster.String()),
		Also:      certificate.Query(),
		Reader:    r.Reads,
		Policy:    s.failurePolicy(),
	}
}

// reportContact tells the infrastructure what came of dialling the host, if anything.
func (r *KubexmConfigReconciler) reportContact(ctx context.Context, s *scope) error {
	contact := contactOf(&s.job.Result)
	if contact == nil {
		return nil
	}
	err := s.adapter.ReportReachability(ctx, s.subject(), *contact)
	if isGone(err) {
		return nil // there is nobody to tell
	}
	return err
}

// reconcileWithoutHost lets a KubexmConfig go. Its host stays as it is: hosts are reset for Machines. While a Machine waits for its
// host to be reset, nobody else could tell it that it was.
func (r *KubexmConfigReconciler) reconcileWithoutHost(ctx context.Context, s *scope) (ctrl.Result, error) {
	if r.Runner.Cancel(s.key, errDeleting) {
		return ctrl.Result{}, nil // we are told when it has ended
	}
	if s.machine != nil && s.held() {
		return ctrl.Result{}, nil // we are told when the Machine is deleted
	}
	if err := r.unpublish(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	s.ended = true
	r.drop(s.config.UID)
	controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	ctrl.LoggerFrom(ctx).V(4).Info("Removed the finalizer of a KubexmConfig", "KubexmConfig", klog.KObj(s.config))
	return ctrl.Result{}, nil
}

// driftCheckInterval is the time between observes one host, spread over a fifth to keep hosts apart.
func (r *KubexmConfigReconciler) driftCheckInterval(id types.UID) time.Duration {
	return spread(r.DriftCheckInterval, id)
}

// spread is an interval, made longer or shorter by a tenth at most, always the same for one object.
func spread(every time.Duration, id types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return time.Duration(float64(every) * (0.9 + 0.2*float64(h.Sum32())/(1<<32)))
}

func (r *KubexmConfigReconciler) cached(id types.UID) hostCache {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.caches[id]
}

func (r *KubexmConfigReconciler) store(id types.UID, m hostCache) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.caches == nil {
		r.caches = make(map[types.UID]hostCache)
	}
	r.caches[id] = m
}

func (r *KubexmConfigReconciler) drop(id types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.caches, id)
}

// short is a message that fits an Event.
func short(message string) string {
	const most = 1000
	return host.Text(message, most)
}
