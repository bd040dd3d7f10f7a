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

	corev1 "k8s.io/api/core/v1"
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
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// askAgain is when to ask again who does not tell us of changes: the infrastructure, for one.
const askAgain = 10 * time.Second

// Causes for which a run is stopped.
var (
	errPaused   = errors.New("the Cluster or the KubexmConfig is paused")
	errDeleting = errors.New("the host is to be given back")
	errChanged  = errors.New("the host is to become something else")
	errGivenUp  = errors.New("the host is given up")
)

// Artifacts opens the bundle for a version of Kubernetes.
type Artifacts func(ctx context.Context, from spec.Artifacts, version string) (*artifact.Bundle, error)

// Runner runs jobs on hosts.
type Runner = hostrun.Runner[outcome]

// NewRunner returns a Runner for so many hosts at once, which shows progress at most once per throttle.
func NewRunner(ctx context.Context, hostsAtOnce int, throttle time.Duration) *Runner {
	return hostrun.New[outcome](ctx, hostsAtOnce, throttle)
}

// Config makes each KubexmConfig's host what it must be. All fields but WatchFilter, Reads and Logs are required.
type Config struct {
	// Client reads from a cache, but Secrets; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	Events      events.EventRecorder

	Runner    *Runner
	Dial      Dial
	Artifacts Artifacts
	// Slots are what all runs share for limits on how many hosts at once a step is made.
	Slots engine.Slots
	// Plan plans a host: Pipelines, but in tests.
	Plan Planner
	// Reads is told everything that happens in runs. May be nil.
	Reads event.Reader
	// Holder names this process to who finds a host locked.
	Holder string
	// LookEvery is how often a converged host is looked at.
	LookEvery time.Duration
	// Settle is how long a host must be well after it was disrupted before another one of its pool follows.
	Settle time.Duration
	// Clock is the one that maintenance windows are compared with.
	Clock clock.PassiveClock
	// Logs is where the logs of hosts that failed are kept before these are touched. If empty, they are not.
	Logs hostlogs.Dir

	mu       sync.Mutex
	memories map[types.UID]memory
}

// Reconcile brings one KubexmConfig's host closer to what it must be. It never waits for a host.
func (r *Config) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	config := &bootstrapv1.KubexmConfig{}
	object, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, config)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
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
	switch {
	case s.hasNoMachine():
		return r.ofInventory(ctx, s)
	case s.machine != nil && s.cluster != nil && !s.machine.DeletionTimestamp.IsZero() && (s.held() || config.DeletionTimestamp.IsZero()):
		return r.giveBack(ctx, s)
	case !config.DeletionTimestamp.IsZero():
		return r.finish(ctx, s)
	case s.cluster == nil:
		return ctrl.Result{}, nil // when it is there, we are told
	}
	return r.flow(ctx, s)
}

// phase does one part of the work. It reports whether the next may go on.
type phase struct {
	name string
	do   func(ctx context.Context, s *scope) (goOn bool, result ctrl.Result, err error)
}

// flow is what becomes of a KubexmConfig, in order.
func (r *Config) flow(ctx context.Context, s *scope) (ctrl.Result, error) {
	return follows(ctx, s, []phase{
		{"publish the bootstrap data", r.publishes}, // at once: the infrastructure waits for it
		{"take in what a job came to", r.takesIn},   // before anything is decided
		{"find the host", r.finds},
		{"read key pairs back", r.recovers}, // which all else waits for
		{"reboot the host", r.reboots},      // whatever the cluster has or lacks
		{"wait for the cluster", r.awaits},  // for what a plan cannot do without; all else is for its gates
		{"hold the Machine", r.holds},       // before the host is touched: it must be reset once it was
		{"converge the host", r.converges},
	})
}

// follows does phases in order, as far as each lets the next go on.
func follows(ctx context.Context, s *scope, phases []phase) (ctrl.Result, error) {
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

func (r *Config) publishes(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	err := r.publish(ctx, s)
	return err == nil, ctrl.Result{}, err
}

// takesIn shows how far the job is, or what it came to.
func (r *Config) takesIn(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.job == nil {
		return true, ctrl.Result{}, nil
	}
	if s.job.Running() {
		if s.job.What == converging {
			showProgress(s.config, s.job)
		}
		return true, ctrl.Result{}, nil
	}
	switch s.job.What {
	case saving:
		return r.takesSnapshot(s)
	case recovering:
		return r.takesRecovery(ctx, s)
	}
	m, out := r.recall(s.config.UID), &s.job.Result
	showCertificates(ctx, s.config, out)
	showEtcd(s.config, s.job)
	switch {
	case s.job.What == asking:
		return r.takesAnswer(s)
	case inDoubt(s.job):
		return r.takesDoubt(ctx, s)
	case s.job.What == weighing && out.err == nil:
		return r.takesWeight(ctx, s)
	case s.job.What == following:
		return r.takesFollow(ctx, s)
	}
	before, learnt := m, *out
	if s.job.What == looking && engine.Undecided(out.err) {
		learnt.err = nil // it has found drift, whatever else cannot be told
	}
	isNew := m.learn(&learnt, s.job.Ended)
	var err error
	switch s.job.What {
	case converging, weighing: // a look that has failed says what a run would
		err = showRun(s.config, s.job, &m)
		if isNew {
			r.announce(s, out, before)
			r.tellAdopted(s, &out.report, converging)
		}
		if m.converged {
			delete(s.config.Annotations, bootstrapv1.ApprovedDisruptionAnnotation) // what it was for is done
		}
	case rebooting:
		r.rebooted(s)
		return false, ctrl.Result{RequeueAfter: time.Millisecond}, nil
	case looking:
		var same bool
		said := conditions.GetMessage(s.config, bootstrapv1.HostConvergedCondition)
		if same, err = showLook(s.config, s.job, s.driftPolicy()); !same && err == nil {
			m.drifted = true
			if out.err == nil {
				m.weight = weigh(out, r.Clock.Now()) // it is known what a run would disrupt
			}
			// Or it is not known, and the run that follows says why.
			if now := conditions.GetMessage(s.config, bootstrapv1.HostConvergedCondition); learnt.err == nil && now != said {
				r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, bootstrapv1.DriftedReason, looking, "%s", short(now))
			}
		}
	}
	if err != nil {
		return false, ctrl.Result{}, err
	}
	r.remember(s.config.UID, m)
	if contact := contactOf(out); contact != nil && !interrupted(out.err) {
		if err := r.met(ctx, s, contact); err != nil {
			return false, ctrl.Result{}, err
		}
	}
	s.ended = true
	// The next is decided by a reconcile of its own, when the result is written.
	return false, ctrl.Result{RequeueAfter: time.Millisecond}, nil
}

// takesWeight takes in what a run would disrupt.
func (r *Config) takesWeight(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	m, out := r.recall(s.config.UID), &s.job.Result
	if out.system != nil {
		m.system = out.system
	}
	m.weight, m.unsure = weigh(out, r.Clock.Now()), 0
	if !m.weight.follows {
		m.follows = 0
	}
	showWay(s.config, out)
	r.remember(s.config.UID, m)
	s.ended = true
	result := ctrl.Result{RequeueAfter: time.Millisecond}
	if contact := contactOf(out); contact != nil {
		return false, result, r.met(ctx, s, contact)
	}
	return false, result, nil
}

func (r *Config) announce(s *scope, out *outcome, before memory) {
	switch {
	case interrupted(out.err):
	case out.err != nil:
		message := textOf(out.err)
		if errors.Is(out.err, errPreflight) {
			message = listOf(out.problems)
		}
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RunFailed", converging, "%s", short(message))
	case !before.converged || before.drifted || out.report.Total().Changed > 0:
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, bootstrapv1.HostConvergedReason, converging,
			"%d steps changed, %d were so already", out.report.Total().Changed, out.report.Total().Skipped)
	}
}

// finds asks the infrastructure for the host.
func (r *Config) finds(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.clusterConfig != nil && s.config.Status.MembersDigest != bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members) {
		s.config.Status.MembersDigest = "" // what was seen of another list says nothing of this one, nor of one like that later
	}
	if err := r.locate(ctx, s); err != nil {
		return false, ctrl.Result{}, err
	}
	if s.host != nil {
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errChanged)
	setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.WaitingForHostReason, s.waiting)
	return false, ctrl.Result{RequeueAfter: askAgain}, nil
}

// awaits waits for what plans are made from: what hosts share, the endpoint, and the certificate authorities.
func (r *Config) awaits(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	waiting, err := r.waitsFor(ctx, s)
	if err != nil {
		return false, ctrl.Result{}, err
	}
	if waiting == "" {
		return true, ctrl.Result{}, nil
	}
	setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.WaitingForClusterReason, waiting)
	return false, ctrl.Result{RequeueAfter: askAgain}, nil
}

// clusterConfigMissing says that nobody has said yet what hosts share, and who does.
func clusterConfigMissing(cluster *clusterv1.Cluster) string {
	ref := cluster.Spec.ControlPlaneRef
	if ref.IsDefined() && ref.Kind == "KubexmControlPlane" {
		return fmt.Sprintf("the KubexmClusterConfig %s does not exist yet: the KubexmControlPlane %s writes it", cluster.Name, ref.Name)
	}
	who := "has no control plane object"
	if ref.IsDefined() {
		who = "has a " + ref.Kind + " as its control plane, which does not write it"
	}
	return fmt.Sprintf("the KubexmClusterConfig %s does not exist yet, and the Cluster %s: create it in this namespace, with the version and what "+
		"all hosts share", cluster.Name, who)
}

func (r *Config) waitsFor(ctx context.Context, s *scope) (string, error) {
	if s.clusterConfig == nil {
		return clusterConfigMissing(s.cluster), nil
	}
	shared := s.shared()
	if shared.ControlPlaneEndpoint.Host() == "" {
		return "it is not known yet where the API server will be reached (the Cluster's spec.controlPlaneEndpoint)", nil
	}
	if waiting := membersMissing(s, &shared); waiting != "" {
		return waiting, nil
	}
	if waiting := controlPlaneBehind(s); waiting != "" {
		return waiting, nil
	}
	needed := []capisecret.Purpose{capisecret.ClusterCA}
	switch s.role() {
	case spec.RoleControlPlane:
		needed = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA, capisecret.FrontProxyCA, capisecret.ServiceAccount}
		if shared.Kubernetes.EncryptionAtRest.IsOn() {
			needed = append(needed, pki.EncryptionName)
		}
	case spec.RoleEtcd:
		needed = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA}
	default: // by the cluster's authority, every host knows whose it is
	}
	pairs, err := r.pairs(ctx, client.ObjectKeyFromObject(s.cluster), needed...)
	if err != nil {
		return "", err
	}
	for i, p := range pairs {
		if p == nil {
			name := capisecret.Name(s.cluster.Name, needed[i])
			return fmt.Sprintf("the Secret %s with a certificate authority, or the encryption key, does not exist", name), nil
		}
		if waiting := untrusted(s, needed[i], p); waiting != "" {
			return waiting, nil
		}
	}
	return recordAuthority(s, pairs[0]), nil
}

// converges decides what is done with the host, and starts it.
func (r *Config) converges(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	j, err := r.jobFor(ctx, s)
	if err != nil {
		reason := bootstrapv1.PlanFailedReason
		if errors.As(err, new(*invalid)) {
			reason = bootstrapv1.InvalidReason
		}
		setFalse(s.config, bootstrapv1.HostConvergedCondition, reason, err.Error())
		return false, ctrl.Result{RequeueAfter: lastBackoff}, nil
	}
	m := r.recall(s.config.UID)
	if s.job != nil {
		if (s.job.What == converging || s.job.What == following) && m.wants != j.input {
			r.Runner.Cancel(s.key, errChanged)
		}
		return false, ctrl.Result{RequeueAfter: askAgain}, nil // we are told when it has ended; the rest is caution
	}
	if m == (memory{}) {
		m = recall(&s.config.Status, j.input, s.driftPolicy())
	}
	d := m.decide(j.input, s.adopts(), time.Now(), r.lookEvery(s.config.UID), s.driftPolicy())
	if d.act == rest && m.converged && m.input == j.input && waited(s.config) {
		d.act = look // what was waited for is there, and what the conditions say of the host is to be found out again
	}
	if m.is(j.input) {
		s.config.Status.ConvergedGeneration = s.config.Generation
		s.config.Status.MembersDigest = bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members)
	}
	if m.is(j.input) && (m.turn || s.clusterConfig.Status.TurnOf(s.config.Name) != nil) {
		after, err := r.givesTurn(ctx, s)
		if err != nil {
			return r.afterTurns(err)
		}
		if m.turn = after > 0; after > 0 {
			d.after = min(d.after, after)
		}
		r.remember(s.config.UID, m)
	}
	var held *hold
	if d.act == run {
		d, held, err = r.admits(ctx, s, &m, j.input)
		if err != nil {
			return r.afterTurns(err)
		}
	}
	if d.act != weighs && (d.act != rest || !m.unweighed()) {
		r.showHold(s, m.weight, held)
	}
	// Of a host that was never examined, a look must not say that it is fit either.
	j.remembered, j.preflight = m.system, !conditions.IsTrue(s.config, bootstrapv1.PreflightPassedCondition)
	switch d.act {
	case rest:
		if r.savesEtcd(s, j) || r.asksEtcd(s, j) {
			return false, ctrl.Result{}, nil
		}
		return false, ctrl.Result{RequeueAfter: d.after}, nil
	case weighs:
		r.Runner.Start(s.key, hostrun.Job[outcome]{What: weighing, Do: j.look, Lost: lost(j.input)})
		return false, ctrl.Result{}, nil
	case catchUp:
		m.wants = j.input
		r.remember(s.config.UID, m)
		r.Runner.Start(s.key, hostrun.Job[outcome]{What: following, Urgent: s.role() != spec.RoleWorker, Do: j.follow, Lost: lost(j.input)})
		return false, ctrl.Result{}, nil
	case look:
		r.Runner.Start(s.key, hostrun.Job[outcome]{What: looking, Do: j.look, Lost: lost(j.input)})
		return false, ctrl.Result{}, nil
	}
	m.wants, m.begun, m.adopts = j.input, j.input, s.adopts()
	r.remember(s.config.UID, m)
	r.Runner.Start(s.key, hostrun.Job[outcome]{What: converging, Urgent: s.role() != spec.RoleWorker, Do: j.converge, Lost: lost(j.input)})
	if job, found := r.Runner.Observe(s.key); found && job.Running() {
		showProgress(s.config, &job)
	}
	ctrl.LoggerFrom(ctx).Info("Converging a host", "host", s.host.Name, "address", s.host.Address)
	return false, ctrl.Result{}, nil
}

// waited reports whether the conditions say still that something is waited for.
func waited(config *bootstrapv1.KubexmConfig) bool {
	return conditions.GetReason(config, bootstrapv1.HostConvergedCondition) == bootstrapv1.WaitingForClusterReason ||
		conditions.GetReason(config, bootstrapv1.HostReachableCondition) == bootstrapv1.WaitingForHostReason
}

// invalid is why no host can become what is declared.
type invalid struct{ error }

func (e *invalid) Unwrap() error { return e.error }

// jobFor is all that a run on the host needs.
func (r *Config) jobFor(ctx context.Context, s *scope) (*job, error) {
	target, err := targetOf(s)
	if err != nil {
		return nil, &invalid{err}
	}
	versions, err := r.versions(ctx, s.config.Namespace, secretsOf(s.config))
	if err != nil {
		return nil, err
	}
	if asked := s.config.Annotations[bootstrapv1.ConvergeAnnotation]; asked != "" {
		versions = append(versions, bootstrapv1.ConvergeAnnotation+"@"+asked) // another value is another run
	}
	input, err := inputOf(target, s.host, versions)
	if err != nil {
		return nil, err
	}
	options := r.optionsFor(s)
	options.Also.Merge(etcdQuery(&target))
	return &job{
		input: input, target: target, options: options, planner: r.Plan,
		was: s.config.Status.KubernetesVersion, apiServers: s.clusterConfig.Spec.APIServerVersion,
		members: bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members),
		bundle: func(ctx context.Context) (*artifact.Bundle, error) {
			return r.Artifacts(ctx, target.Cluster.Artifacts, target.KubernetesVersion)
		},
	}, nil
}

// optionsFor are the engine's options for the scope's host. The engine's own contexts are those of the job.
func (r *Config) optionsFor(s *scope) engine.Options {
	cluster, address := client.ObjectKeyFromObject(s.cluster), s.host.Address
	o := engine.Options{
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
	if o.Reader == nil {
		o.Reader = event.ReaderFunc(func(event.Event) {})
	}
	return o
}

// met tells the infrastructure what came of dialling the host.
func (r *Config) met(ctx context.Context, s *scope, c *infra.Contact) error {
	err := s.adapter.Met(ctx, s.subject(), *c)
	if isGone(err) {
		return nil // there is nobody to tell
	}
	return err
}

// finish lets a KubexmConfig go. Its host stays as it is: giving hosts back is for Machines. While a Machine waits for its
// host to be reset, nobody else could tell it that it was.
func (r *Config) finish(ctx context.Context, s *scope) (ctrl.Result, error) {
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
	r.forget(s.config.UID)
	controllerutil.RemoveFinalizer(s.config, bootstrapv1.ConfigFinalizer)
	ctrl.LoggerFrom(ctx).V(4).Info("Let a KubexmConfig go", "KubexmConfig", klog.KObj(s.config))
	return ctrl.Result{}, nil
}

// lookEvery is the time between looks at one host, spread over a fifth to keep hosts apart.
func (r *Config) lookEvery(id types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return time.Duration(float64(r.LookEvery) * (0.9 + 0.2*float64(h.Sum32())/(1<<32)))
}

func (r *Config) recall(id types.UID) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memories[id]
}

func (r *Config) remember(id types.UID, m memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memories == nil {
		r.memories = make(map[types.UID]memory)
	}
	r.memories[id] = m
}

func (r *Config) forget(id types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, id)
}

// lost is the result of a job that panicked.
func lost(input string) func(error) outcome {
	return func(err error) outcome { return outcome{input: input, err: err} }
}

// short is a message that fits an Event.
func short(message string) string {
	const most = 1000
	return host.Text(message, most)
}
