// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Settle is how long a host must be well after it was disrupted before another one follows, unless told otherwise: longer than
// Kubernetes takes to say of a Node whose kubelet has died that it is not Ready, which is 50 seconds.
const Settle = time.Minute

// pool is hosts of which only so many may be unavailable at once, as one of them sees it.
type pool struct {
	name string
	// workers is whether it is one of workers, and most how many of them may be unavailable at once.
	workers bool
	most    int
	// own is the host that asks, and others are the rest.
	own    peer
	others []peer
}

// peer is a host of a pool.
type peer struct {
	name string
	// turn is since when the host is disrupted, or was and has not settled; the zero time if it is not.
	turn time.Time
	// failed is why its last run has failed, "" if it has not.
	failed string
	// unwell is why the host, which is in use, does not do its work, "" if it does; unknown, whether it is only not known.
	unwell  string
	unknown bool
	// well is since when it does, the zero time if that is not known.
	well time.Time
}

// waits says what a host waits for before it may be disrupted, nil if it may be now. One that does not do its work anyway makes nothing
// worse: it waits for nobody.
func (p *pool) waits() *hold {
	if p.isFree() || !p.own.turn.IsZero() {
		return nil
	}
	var away, broken []string
	for _, o := range p.others {
		switch {
		case !o.turn.IsZero() && o.failed != "":
			broken = append(broken, fmt.Sprintf("%s: %s", o.name, o.failed))
		case o.unwell != "":
			away = append(away, fmt.Sprintf("%s, %s", o.name, o.unwell))
		case !o.turn.IsZero():
			away = append(away, fmt.Sprintf("%s, being updated since %s", o.name, o.turn.UTC().Format(time.RFC3339)))
		}
	}
	if len(broken) > 0 {
		return &hold{
			reason: bootstrapv1.PoolStoppedReason, message: "waits, because the change failed on " + strings.Join(broken, "; "),
			remedy: "No other host is updated until that one has converged: repair it, change the spec, or delete its Machine.",
		}
	}
	if len(away) < p.most {
		return nil
	}
	const shown = 3
	if more := len(away) - shown; more > 0 {
		away = append(away[:shown:shown], fmt.Sprintf("and %d more", more))
	}
	h := &hold{
		reason:  bootstrapv1.WaitingForPoolReason,
		message: fmt.Sprintf("waits for %s; %d of %s may be unavailable at once", strings.Join(away, "; "), p.most, p.name),
	}
	h.remedy = "Repair unhealthy hosts, or replace them."
	if p.workers {
		h.remedy = "Repair unhealthy hosts, or delete their Machines. To have more changed at once, raise disruption.maxUnavailable."
	}
	return h
}

// isFree reports whether the host does not do its work anyway.
func (p *pool) isFree() bool {
	return p.own.unwell != "" && (!p.own.unknown || p.name == string(spec.RoleControlPlane))
}

// settles is how long it takes until a host that was disrupted, and has ended that at a time, has shown that it is well; 0 if it has.
// known is false while it is not well, and nobody knows how long that lasts.
func (p *pool) settles(ended, now time.Time, settle time.Duration) (left time.Duration, known bool) {
	if p.own.unwell != "" {
		return 0, false
	}
	since := ended
	if p.own.well.After(since) {
		since = p.own.well
	}
	return max(0, since.Add(settle).Sub(now)), true
}

// poolOf is the name of the pool of a host with a Machine, or without one.
func poolOf(role spec.Role, m *clusterv1.Machine) string {
	if role != spec.RoleWorker || m == nil {
		return string(role)
	}
	for _, by := range []struct{ kind, label string }{
		{"MachineDeployment", clusterv1.MachineDeploymentNameLabel}, {"MachineSet", clusterv1.MachineSetNameLabel},
		{"MachinePool", clusterv1.MachinePoolNameLabel},
	} {
		if name := m.Labels[by.label]; name != "" {
			return by.kind + "/" + name
		}
	}
	return string(role) // those that nobody owns
}

// newPeer is what objects say of a host. The Machine is nil if it has none, and the KubexmConfig if nobody of ours makes its host.
func newPeer(m *clusterv1.Machine, c *bootstrapv1.KubexmConfig, shared *bootstrapv1.KubexmClusterConfig) peer {
	p := peer{}
	leaves := m != nil && !m.DeletionTimestamp.IsZero()
	if c != nil {
		p.name = cmp.Or(c.Status.Host.Name, c.Name)
		if turn := shared.Status.TurnOf(c.Name); turn != nil && !leaves && c.DeletionTimestamp.IsZero() {
			p.turn = turn.Since.Time // it is not disrupted for the change any more when it leaves
		}
		if hosthealth.IsFailing(c) {
			problem := hosthealth.WithReason(hosthealth.Problem(c, bootstrapv1.HostReachableCondition,
				bootstrapv1.PreflightPassedCondition, bootstrapv1.HostConvergedCondition, bootstrapv1.NodeJoinedCondition))
			const most = 500
			problem = cmp.Or(problem, c.Status.Operation(bootstrapv1.ConvergeOperation).Message, "its last run failed")
			p.failed = strings.Join(strings.Fields(host.Text(problem, most)), " ")
		}
	}
	switch {
	case m != nil && m.Status.NodeRef.IsDefined():
		p.name = m.Status.NodeRef.Name
		p.ofNode(m)
	case c != nil && c.Status.PlanDigest == "" && !mayBeUsed(m, c, &shared.Spec): // nobody uses it yet
	case m != nil && c != nil:
		p.ofCondition(c, bootstrapv1.NodeJoinedCondition)
	case c != nil: // its host is no Node: of what runs there, only the host can tell
		p.ofCondition(c, bootstrapv1.HostReachableCondition)
	}
	return p
}

// mayBeUsed reports whether a host whose KubexmConfig says nothing of a plan may have been brought to one: a move or a backup takes
// statuses away, and leaves what its Machine and the list of members say.
func mayBeUsed(m *clusterv1.Machine, c *bootstrapv1.KubexmConfig, shared *bootstrapv1.KubexmClusterConfigSpec) bool {
	if !c.Status.Operation(bootstrapv1.ConvergeOperation).StartTime.IsZero() {
		return false // the status is there, and would say so
	}
	if member := shared.MemberOf(c); member != nil {
		return member.Phase != bootstrapv1.MemberJoining
	}
	if m == nil {
		return false
	}
	_, held := m.Annotations[bootstrapv1.HostResetHook]
	return held
}

// ofNode takes in what the Machine says of its Node.
func (p *peer) ofNode(m *clusterv1.Machine) {
	ready := conditions.Get(m, clusterv1.MachineNodeReadyCondition)
	switch {
	case ready == nil:
		p.unwell, p.unknown = "of whose Node nobody has said yet whether it is Ready", true
	case ready.Status == metav1.ConditionTrue:
		p.well = ready.LastTransitionTime.Time
	case ready.Status == metav1.ConditionFalse || ready.Reason == clusterv1.MachineNodeReadyUnknownReason:
		p.unwell = notSince("whose Node is not Ready", ready)
	default:
		p.unwell, p.unknown = notSince("of whose Node it is not known whether it is Ready", ready), true
	}
}

// ofCondition takes in what a condition of the KubexmConfig says of the host.
func (p *peer) ofCondition(c *bootstrapv1.KubexmConfig, kind string) {
	said := conditions.Get(c, kind)
	switch {
	case said == nil || said.Status == metav1.ConditionUnknown:
		p.unwell, p.unknown = "whose health is unknown", true
	case said.Status == metav1.ConditionFalse:
		p.unwell = notSince("which is unhealthy", said)
	default:
		p.well = said.LastTransitionTime.Time
	}
}

// notSince is what a condition says that is not True, in one line.
func notSince(what string, c *metav1.Condition) string {
	what += " since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	if message := firstLine(cmp.Or(c.Message, c.Reason)); message != "" {
		what += " (" + message + ")"
	}
	return what
}

func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	const most = 200
	return host.Text(line, most)
}

// pool reads who takes turns with the scope's host. With a cache for a reader it may be a little late, which is enough to wait by, and
// not enough to begin by.
func (r *KubexmConfigReconciler) pool(
	ctx context.Context, reader client.Reader, s *scope, shared *bootstrapv1.KubexmClusterConfig,
) (*pool, error) {
	role := s.role()
	p := &pool{name: poolOf(role, s.machine), workers: role == spec.RoleWorker, most: 1, own: newPeer(s.machine, s.config, shared)}
	configs, machines := &bootstrapv1.KubexmConfigList{}, &clusterv1.MachineList{}
	of := []client.ListOption{
		client.InNamespace(s.config.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}, client.UnsafeDisableDeepCopy,
	}
	if err := reader.List(ctx, configs, of...); err != nil {
		return nil, fmt.Errorf("list the Cluster's KubexmConfigs: %w", err)
	}
	if s.machine == nil {
		for i := range configs.Items {
			if c := &configs.Items[i]; c.Spec.HostRef.Role == role && c.Name != s.config.Name {
				p.others = append(p.others, newPeer(nil, c, shared))
			}
		}
		return p, nil
	}
	if err := reader.List(ctx, machines, of...); err != nil {
		return nil, fmt.Errorf("list the Cluster's Machines: %w", err)
	}
	byName := make(map[string]*bootstrapv1.KubexmConfig, len(configs.Items))
	for i := range configs.Items {
		byName[configs.Items[i].Name] = &configs.Items[i]
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		other := &scope{config: &bootstrapv1.KubexmConfig{}, machine: m}
		if m.Name == s.machine.Name {
			p.own = newPeer(m, s.config, shared)
			continue
		}
		if poolOf(other.role(), m) != p.name {
			continue
		}
		var c *bootstrapv1.KubexmConfig
		if ref := m.Spec.Bootstrap.ConfigRef; ref.GroupKind() == bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind() {
			c = byName[ref.Name]
		}
		p.others = append(p.others, newPeer(m, c, shared))
	}
	slices.SortFunc(p.others, func(a, b peer) int { return cmp.Compare(a.name, b.name) })
	var err error
	if p.workers {
		p.most, err = r.unavailable(ctx, reader, s)
	}
	return p, err
}

// unavailable is how many of a worker's pool may be unavailable at once.
func (r *KubexmConfigReconciler) unavailable(ctx context.Context, reader client.Reader, s *scope) (int, error) {
	if most := spec.MaxUnavailableOf(s.declared(), &s.config.Spec.Node); most != 0 {
		return int(most), nil
	}
	name := s.machine.Labels[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return 1, nil
	}
	md := &clusterv1.MachineDeployment{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, md); apierrors.IsNotFound(err) {
		return 1, nil
	} else if err != nil {
		return 0, fmt.Errorf("get the MachineDeployment %s: %w", name, err)
	}
	most := md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable
	if most == nil || md.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		return 1, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(most, int(ptr.Deref(md.Spec.Replicas, 1)), false)
	if err != nil {
		return 0, fmt.Errorf("spec.rollout.strategy.rollingUpdate.maxUnavailable of the MachineDeployment %s: %w", name, err)
	}
	return max(1, n), nil
}

// takesTurn has the scope's host disrupted, or says what it waits for. All of a cluster's turns are in one object, which is read from the
// API server and written only if nobody else has written it since: so two that ask at once do not both get the last one.
func (r *KubexmConfigReconciler) takesTurn(ctx context.Context, s *scope, waits bool) (*hold, error) {
	shared := &bootstrapv1.KubexmClusterConfig{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.cluster), shared); err != nil {
		return nil, fmt.Errorf("get the KubexmClusterConfig %s: %w", s.cluster.Name, err)
	}
	p, err := r.pool(ctx, r.Reader, s, shared)
	if err != nil || !p.own.turn.IsZero() {
		return nil, err
	}
	if waiting := p.waits(); waiting != nil && waits {
		return waiting, nil
	}
	if p.isFree() {
		return nil, nil
	}
	before := shared.DeepCopy()
	if shared.Status.Turns, err = r.alive(ctx, s, shared.Status.Turns); err != nil {
		return nil, err
	}
	shared.Status.Turns = append(shared.Status.Turns, bootstrapv1.Turn{
		ConfigName: s.config.Name, Pool: p.name, Since: metav1.Now().Rfc3339Copy(),
	})
	return nil, r.writeTurns(ctx, before, shared)
}

// alive are turns of KubexmConfigs that there still are.
func (r *KubexmConfigReconciler) alive(ctx context.Context, s *scope, turns []bootstrapv1.Turn) ([]bootstrapv1.Turn, error) {
	var kept []bootstrapv1.Turn
	for _, t := range turns {
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: t.ConfigName}, &bootstrapv1.KubexmConfig{})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the KubexmConfig %s, whose turn it is: %w", t.ConfigName, err)
		}
		if err == nil && t.ConfigName != s.config.Name {
			kept = append(kept, t)
		}
	}
	return kept, nil
}

// givesTurn lets the next host begin when the scope's has done so and has settled. It returns when to ask again, 0 if the turn is given.
func (r *KubexmConfigReconciler) givesTurn(ctx context.Context, s *scope) (time.Duration, error) {
	shared := &bootstrapv1.KubexmClusterConfig{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.cluster), shared); err != nil {
		return 0, fmt.Errorf("get the KubexmClusterConfig %s: %w", s.cluster.Name, err)
	}
	if shared.Status.TurnOf(s.config.Name) == nil {
		return 0, nil
	}
	machine := s.machine
	if machine != nil {
		machine = &clusterv1.Machine{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.machine), machine); err != nil {
			return 0, fmt.Errorf("get the Machine %s: %w", s.machine.Name, err)
		}
	}
	p := &pool{name: poolOf(s.role(), machine), own: newPeer(machine, s.config, shared)}
	left, known := p.settles(s.config.Status.Operation(bootstrapv1.ConvergeOperation).EndTime.Time, time.Now(), r.Settle)
	if !known {
		return askAgain, nil
	}
	if left > 0 {
		return left, nil
	}
	return 0, r.dropTurn(ctx, s, shared)
}

func (r *KubexmConfigReconciler) dropTurn(ctx context.Context, s *scope, shared *bootstrapv1.KubexmClusterConfig) error {
	before := shared.DeepCopy()
	shared.Status.Turns = slices.DeleteFunc(shared.Status.Turns, func(t bootstrapv1.Turn) bool { return t.ConfigName == s.config.Name })
	if len(shared.Status.Turns) == 0 {
		shared.Status.Turns = nil
	}
	return r.writeTurns(ctx, before, shared)
}

// declines releases a turn that the scope's host has not made use of, because something else is waited for now. That a run which was cut
// has changed nothing is known to the process alone that has both taken the turn and seen the run.
func (r *KubexmConfigReconciler) declines(ctx context.Context, s *scope, m *hostCache) error {
	turn, last := s.clusterConfig.Status.TurnOf(s.config.Name), s.config.Status.Operation(bootstrapv1.ConvergeOperation)
	if turn == nil || ptr.Deref(last.Failures, 0) > 0 {
		return nil
	}
	idle := m.turn && m.begun == "" && last.Outcome == bootstrapv1.RunInterrupted && ptr.Deref(last.Changed, 0) == 0
	if !last.StartTime.Before(&turn.Since) && !idle {
		return nil
	}
	return r.dropTurn(ctx, s, s.clusterConfig)
}

// takesTurns is who the scope's host takes turns with for what is to become of it: nobody, while remediation repairs it.
func (s *scope) takesTurns() bool { return s.machine == nil || !isRemediated(s.machine) }

// repairs reports whether the host was what it must be, and somebody or something has changed it since. Hosts of the control plane, of
// etcd and of load balancers do not wait for others with that, as what they serve may be down while their Nodes are Ready; what restarts
// there takes turns of its own.
func (s *scope) repairs(m *hostCache, input string) bool {
	last := s.config.Status.Operation(bootstrapv1.ConvergeOperation)
	was := last.Outcome == bootstrapv1.RunSucceeded && last.InputDigest == input ||
		m.converged && m.drifted && m.input == input // though a run was cut since
	return s.role() != spec.RoleWorker && was
}

// errTurns says that somebody else has taken or given a turn meanwhile.
var errTurns = errors.New("the turns have changed")

func (r *KubexmConfigReconciler) writeTurns(ctx context.Context, before, after *bootstrapv1.KubexmClusterConfig) error {
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return errTurns
	}
	if err != nil {
		return fmt.Errorf("write the turns of the KubexmClusterConfig %s: %w", before.Name, err)
	}
	return nil
}

// turnsAgain is when who was too late to write the turns tries again.
const turnsAgain = 100 * time.Millisecond

// admits decides what becomes of a run that is due, and has the host take its turn where it needs one.
func (r *KubexmConfigReconciler) admits(ctx context.Context, s *scope, m *hostCache, input string) (need, *hold, error) {
	limits, waits := s.restriction(), !s.repairs(m, input)
	if limits.turns && waits {
		p, err := r.pool(ctx, r.Client, s, s.clusterConfig)
		if err != nil {
			return need{}, nil, err
		}
		limits.queued = p.waits()
	}
	decide := func() (need, *hold) {
		return m.admit(limits, input, r.Clock.Now(), r.driftCheckInterval(s.config.UID))
	}
	d, held := decide()
	if held != nil && held.Wait != nil {
		return d, held, r.declines(ctx, s, m)
	}
	if !d.turn {
		return d, held, nil
	}
	queued, err := r.takesTurn(ctx, s, waits && !m.weight.open)
	if err != nil {
		return d, nil, err
	}
	if queued != nil {
		limits.queued = queued
		d, held = decide()
		return d, held, nil
	}
	m.turn = true
	r.store(s.config.UID, *m)
	return d, nil, nil
}

// afterTurns is what follows when turns could not be read or written: if others were faster, soon another try.
func (r *KubexmConfigReconciler) afterTurns(err error) (bool, ctrl.Result, error) {
	if errors.Is(err, errTurns) {
		return false, ctrl.Result{RequeueAfter: wait.Jitter(turnsAgain, 1)}, nil
	}
	return false, ctrl.Result{}, err
}
