// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// isGone reports whether the infrastructure says that there is no such host, now or ever.
func isGone(err error) bool { return isLost(err) || errors.As(err, new(*infra.HostPending)) }

// isLost reports whether it says so for good.
func isLost(err error) bool { return errors.As(err, new(*infra.HostGone)) }

// held reports whether the Machine's deletion waits for us.
func (s *scope) held() bool {
	_, held := s.machine.Annotations[bootstrapv1.HostResetHook]
	return held
}

// ensureResetHook puts the hook on the Machine that makes its deletion wait for the reset.
func (r *KubexmConfigReconciler) ensureResetHook(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.hasNoMachine() || s.held() {
		return true, ctrl.Result{}, nil
	}
	before := s.machine.DeepCopy()
	if s.machine.Annotations == nil {
		s.machine.Annotations = map[string]string{}
	}
	s.machine.Annotations[bootstrapv1.HostResetHook] = ""
	if err := r.Client.Patch(ctx, s.machine, client.MergeFrom(before)); err != nil {
		return false, ctrl.Result{}, fmt.Errorf("annotate the Machine %s: %w", s.machine.Name, err)
	}
	return true, ctrl.Result{}, nil
}

// owner is whose deletion resets the host.
func (s *scope) owner() client.Object {
	if s.hasNoMachine() {
		return s.config
	}
	return s.machine
}

// relatedMachine is the Machine for an Event, nil if there is none.
func (s *scope) relatedMachine() runtime.Object {
	if s.machine == nil {
		return nil // and not a nil Machine
	}
	return s.machine
}

func (s *scope) ownerKind() string {
	if s.hasNoMachine() {
		return "KubexmConfig"
	}
	return "Machine"
}

// releaseHost lets the host go: it takes the hook off the Machine, or gives up the claim where there is none.
func (r *KubexmConfigReconciler) releaseHost(ctx context.Context, s *scope) error {
	if s.hasNoMachine() {
		return r.releaseClaim(ctx, s)
	}
	return r.removeResetHook(ctx, s)
}

func (r *KubexmConfigReconciler) removeResetHook(ctx context.Context, s *scope) error {
	before := s.machine.DeepCopy()
	delete(s.machine.Annotations, bootstrapv1.HostResetHook)
	if err := r.Client.Patch(ctx, s.machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the Machine %s: %w", s.machine.Name, err)
	}
	return nil
}

// waitForDrain waits until Cluster API says that nothing but hooks is waited for: the Node is drained by then.
func (r *KubexmConfigReconciler) waitForDrain(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	return s.hasNoMachine() || s.drained(), ctrl.Result{}, nil // we are told when the Machine changes
}

// drained reports whether the Machine's deletion waits for us, and for hooks alone.
func (s *scope) drained() bool {
	return s.machine != nil && s.held() && hosthealth.AwaitsHooks(s.machine)
}

// waitForOtherHooks is for anyone who needs the host as it is. Their release of it is watched.
func (r *KubexmConfigReconciler) waitForOtherHooks(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	return !othersHold(s.owner().GetAnnotations()), ctrl.Result{RequeueAfter: s.needed.after}, nil
}

// cancelRunning stops what goes on with the host but what is for hosts that leave.
func (r *KubexmConfigReconciler) cancelRunning(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	stopping := s.job != nil && s.job.What == stopping && s.drained() && othersHold(s.owner().GetAnnotations())
	closes := s.job != nil && s.job.What == closingAccess
	if closes && s.job.Running() {
		return false, ctrl.Result{}, nil // which lasts a moment, and would leave a host that is neither; we are notified when it has ended
	}
	if s.job == nil || s.job.What == resetting || stopping || closes {
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errDeleting)
	if s.ended = !s.job.Running(); s.ended {
		return false, decideAnew(), nil
	}
	return false, ctrl.Result{}, nil // we are notified when it has ended
}

// skipsReset reports whether somebody says that the host is not to be reset, nor waited for.
func (s *scope) skipsReset() bool {
	_, skips := s.owner().GetAnnotations()[bootstrapv1.SkipHostResetAnnotation]
	return skips
}

// resetting is what the job is called.
const resetting = string(bootstrapv1.ResetOperation)

// reset makes the host what it was before, and lets it go.
func (r *KubexmConfigReconciler) reset() operation {
	return operation{
		name: bootstrapv1.ResetOperation,
		checks: []phase{
			{"wait for others that hold it", r.waitForOtherHooks},
			{"resolve the host", r.locateToReset},
			{"release a clean host", r.releaseClean},
			{"wait for the host", r.waitForHost},
			{"release without a reset", r.skipReset},
			{"wait after a failure", r.waitForBackoff},
		},
		due: r.resetIsDue, show: showReset, settle: r.settleReset,
	}
}

func (r *KubexmConfigReconciler) releaseClean(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if !conditions.IsTrue(s.config, bootstrapv1.HostResetCondition) || s.job != nil {
		return true, ctrl.Result{}, nil
	}
	return false, ctrl.Result{}, r.releaseHost(ctx, s)
}

// locateToReset asks the infrastructure for the host. Where it does not name one, whether there is anything to be reset may be known still.
func (r *KubexmConfigReconciler) locateToReset(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	err := r.locate(ctx, s)
	if err == nil && s.host == nil && !s.lost {
		err = r.findDoor(ctx, s)
	}
	return err == nil, ctrl.Result{}, err
}

// waitForHost waits for a host that the infrastructure does not name now, and named before: the Machine was held then, or the KubexmHost
// claimed. A move has lost its status, or its kind is not installed for a while. Only infrastructure that is gone has nothing to be reset.
func (r *KubexmConfigReconciler) waitForHost(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	m, now := r.cached(s.config.UID), time.Now()
	m.tries = tries{sought: m.seek(now)} // while nobody can try, no time passes
	if s.host != nil || s.job != nil || s.notReset(&m, now) != nil {
		return true, ctrl.Result{}, nil
	}
	r.store(s.config.UID, m)
	setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.WaitingForHostReason, fmt.Sprintf(
		"%s: it is waited for, as what was changed on it is to be undone. To release the host as it is: annotate the %s %s with %s.",
		s.waiting, s.ownerKind(), s.owner().GetName(), bootstrapv1.SkipHostResetAnnotation))
	if policy := s.resetPolicy(); policy.Policy == spec.ResetWhenReachable {
		s.readAgain(max(time.Millisecond, m.sought.Add(policy.Timeout()).Sub(now)))
	}
	return false, ctrl.Result{RequeueAfter: s.again}, nil // changes of what it says are watched
}

// notReset is why the host is not reset, or not any more; nil if it is to be, as soon as it is known.
func (s *scope) notReset(m *hostCache, now time.Time) *decision.Blocker {
	skipped := func(format string, args ...any) *decision.Blocker {
		return decision.Block(bootstrapv1.HostResetSkippedReason, format, args...)
	}
	policy := s.resetPolicy()
	last := s.config.Status.Operation(bootstrapv1.ResetOperation)
	switch {
	case s.host == nil && s.lost:
		return skipped("there is no host to reset: %s", s.waiting)
	case s.door != nil && s.door.keys.pinned == "" && s.door.keys.birthPublic != "":
		return skipped("the host was never enrolled, so that nothing was changed there but by the bootstrap data")
	case s.skipsReset():
		return skipped("the host was released without a reset, as the annotation %s says", bootstrapv1.SkipHostResetAnnotation)
	case s.isClosing() && s.door.closed.state == accessClosed:
		return skipped("the host was not reset, as its access is closed (spec.accessPolicy)")
	case s.isClosing():
		return skipped("the host was not reset, as its access was being closed (spec.accessPolicy); it may be open still")
	case policy.Policy == spec.ResetNever:
		return skipped("the host was not reset, as reset.policy says (Never)")
	case policy.Policy == spec.ResetWhenReachable && m.away:
		return skipped("the host does not answer, and was released without a reset, as reset.policy says (WhenReachable): %s", last.Message)
	case policy.Policy == spec.ResetWhenReachable && s.host == nil && !m.sought.IsZero() && now.Sub(m.sought) >= policy.Timeout():
		return skipped("the host was not named for %s (reset.timeoutSeconds), and was released without a reset, as reset.policy says "+
			"(WhenReachable): %s", policy.Timeout(), s.waiting)
	case !m.began.IsZero() && now.Sub(m.began) >= policy.Timeout():
		return skipped("the host was released without a reset after %s (reset.timeoutSeconds): %s", policy.Timeout(),
			cmp.Or(last.Message, "it has not ended yet"))
	}
	return nil
}

// tries are what this process has tried with a host that leaves, since nothing kept it from that: neither a pause nor a maintenance. What
// came before gives nobody up.
type tries struct {
	// began is since when it is tried to reset the host, and sought since when it is waited for as the infrastructure does not name it; the
	// zero time if it is not.
	began, sought time.Time
	// resetFailures is how many resets have failed, and away whether the host did not answer at the last.
	resetFailures int32
	away          bool
}

// seek is since when the host is waited for, from now on if it was not.
func (t *tries) seek(now time.Time) time.Time {
	if t.sought.IsZero() {
		return now
	}
	return t.sought
}

// beginAnew has the time for a host that leaves begin anew, as something has kept it from being reset.
func (r *KubexmConfigReconciler) beginAnew(id types.UID) {
	if m := r.cached(id); m.tries != (tries{}) {
		m.tries = tries{}
		r.store(id, m)
	}
}

// untilGivenUp is when to reconcile again: after a while, or when the time to reset the host has passed.
func (s *scope) untilGivenUp(m *hostCache, after time.Duration, now time.Time) time.Duration {
	if m.began.IsZero() {
		return after
	}
	policy := s.resetPolicy()
	return max(time.Millisecond, min(after, m.began.Add(policy.Timeout()).Sub(now)))
}

// othersHold reports whether anybody else's hook keeps what is being deleted: they may need the host as it is, to take its etcd member
// out of the cluster for one, so the reset comes last.
func othersHold(annotations map[string]string) bool {
	for name := range annotations {
		if strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && name != bootstrapv1.HostResetHook {
			return true
		}
	}
	return false
}

// failed reports whether the host is reset because a MachineHealthCheck has found its Machine unhealthy.
func (s *scope) failed() bool {
	return s.machine != nil && conditions.IsFalse(s.machine, clusterv1.MachineHealthCheckSucceededCondition)
}

// waitForBackoff waits if the last reset has failed just now.
func (r *KubexmConfigReconciler) waitForBackoff(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	m := r.cached(s.config.UID)
	d := m.decideReset(s.adopts(), time.Now())
	return d.act != rest, ctrl.Result{RequeueAfter: s.untilGivenUp(&m, d.after, time.Now())}, nil
}

// resetIsDue is where nothing of what is checked before keeps the host from it.
func (r *KubexmConfigReconciler) resetIsDue(_ context.Context, s *scope) (*run, error) {
	m := r.cached(s.config.UID)
	m.adopts, m.sought = s.adopts(), time.Time{}
	if m.began.IsZero() {
		m.began = time.Now()
	}
	r.store(s.config.UID, m)
	j := &job{options: r.optionsFor(s), target: target.Reset(s.clusterKey().Name, s.host.Host)}
	j.forget, j.opened = r.forgetter(s), s.door != nil && !s.door.keys.areDeclared
	if s.failed() && !m.keptLogs {
		j.keep = r.keeper(s)
	}
	if m.resetFailures == 0 { // else why the last has failed is what people want to know
		setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, "")
	}
	return &run{Urgent: true, Do: j.reset, Lost: lostOf(time.Time{})}, nil
}

// showReset says how far the reset is.
func showReset(s *scope) {
	showLost(s.config, s.job.Progress)
	if p := s.job.Progress; p.Total > 0 && conditions.GetReason(s.config, bootstrapv1.HostResetCondition) == bootstrapv1.ResettingReason {
		setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, fmt.Sprintf("%d of %d changes restored", p.Done, p.Total))
	}
}

// settleReset takes in what the reset came to. The infrastructure hears that the host is clean before it gets it back.
func (r *KubexmConfigReconciler) settleReset(ctx context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	if err := r.reportContact(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	switch err := s.adapter.ReportReset(ctx, s.subject(), infra.ResetResult{Err: out.err}); {
	case err == nil || isLost(err) || isGone(err) && s.skipsReset():
	default: // a host that is not named now is named later, and the result is kept
		return ctrl.Result{}, fmt.Errorf("report what came of the reset of the host: %w", err)
	}
	r.tellKept(s, &out.kept)
	r.tellAdopted(s, &out.report, resetting)
	record(s, "")
	setReachability(s.config, out)
	m, policy := r.cached(s.config.UID), s.resetPolicy()
	m.keptLogs = m.keptLogs || out.kept.file != ""
	if out.err != nil {
		if m.began.IsZero() { // a pause came before this was taken in
			m.began = s.job.Ended
		}
		if !m.ended.Equal(s.job.Ended) { // or it was counted, and the status could not be written
			m.resetFailures, m.ended = m.resetFailures+1, s.job.Ended
		}
		m.foreign, m.away = foreign(out.err), !out.reached && unreachable(out.err) == bootstrapv1.UnreachableReason
		r.store(s.config.UID, m)
		until := m.began.Add(policy.Timeout()).UTC().Format(time.RFC3339)
		pause, reason, adopt := m.pauseOfReset(), bootstrapv1.ResetFailedReason, ""
		if m.foreign {
			reason, adopt = bootstrapv1.HostOwnedByOtherReason, howToAdopt(s.config)+"\n"
		}
		setFalse(s.config, bootstrapv1.HostResetCondition, reason, fmt.Sprintf(
			"%s\n%sNext attempt in %s, until %s (reset.timeoutSeconds). To skip the reset and release the host as it is: annotate the %s %s with %s.",
			textOf(out.err), adopt, pause.Round(time.Second), until, s.ownerKind(), s.owner().GetName(),
			bootstrapv1.SkipHostResetAnnotation))
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, reason, resetting, "%s", short(textOf(out.err)))
		return ctrl.Result{RequeueAfter: s.untilGivenUp(&m, pause, time.Now())}, nil
	}
	setTrue(s.config, bootstrapv1.HostResetCondition, bootstrapv1.HostResetReason, "")
	r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, bootstrapv1.HostResetReason, resetting, "%d changes restored", out.report.Hosts[0].Restored)
	if out.notForgotten != nil {
		r.Events.Eventf(s.config, s.machine, corev1.EventTypeWarning, "NodeNotDeleted", resetting, "the Node %s is left to Cluster API: %s",
			s.machine.Status.NodeRef.Name, short(out.notForgotten.Error()))
	}
	return ctrl.Result{}, r.releaseHost(ctx, s)
}

const (
	// nodePatience is for how long after a reset the deletion of the Node is tried, and nodeTimeout how long one attempt takes.
	nodePatience, nodeTimeout = 20 * time.Second, 5 * time.Second
)

// forgetter deletes the Node of a Machine whose host is clean, nil if there is none, or if its cluster goes with it. Cluster API deletes
// Nodes, too, but for ten seconds, and on the connection that it had: where that was to this very host, which is so where each Node
// has a load balancer of its own, the Node would stay, cordoned as it is, and the next Machine on the host would have it. The
// kubeconfig leads to another host since the deletion began.
func (r *KubexmConfigReconciler) forgetter(s *scope) func(context.Context) error {
	if s.machine == nil || s.machine.Status.NodeRef.Name == "" || !s.cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	key, node := client.ObjectKeyFromObject(s.cluster), s.machine.Status.NodeRef.Name
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, nodePatience)
		defer cancel()
		var failed error
		if err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			failed = r.deleteNode(ctx, key, node)
			return failed == nil, nil
		}); err != nil {
			return cmp.Or(failed, err)
		}
		return nil
	}
}

func (r *KubexmConfigReconciler) deleteNode(ctx context.Context, cluster client.ObjectKey, name string) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	c, err := r.connect(ctx, cluster)
	if apierrors.IsNotFound(err) {
		return nil // there is no kubeconfig, so nobody has seen a Node
	}
	if err != nil {
		return err
	}
	return c.DeleteNode(ctx, name)
}

// skipReset lets the Machine go without a reset: because the user says so, or because there is no host to reset. What is left behind
// is recorded: the host's changes stay, and a KubexmHost goes into quarantine.
func (r *KubexmConfigReconciler) skipReset(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	m, policy := r.cached(s.config.UID), s.resetPolicy()
	why := s.notReset(&m, time.Now())
	switch {
	case why == nil && s.job != nil:
		return false, ctrl.Result{RequeueAfter: s.untilGivenUp(&m, policy.Timeout(), time.Now())}, nil
	case why == nil:
		return true, ctrl.Result{}, nil
	}
	if r.Runner.Cancel(s.key, errGivenUp) {
		return false, ctrl.Result{}, nil // we are notified when it has ended
	}
	s.ended = true
	message := why.Message
	if s.host != nil {
		message += fmt.Sprintf("\nWhat was changed on the host %s (%s) is left there.", s.host.Name, s.host.Address)
	}
	conditions.Set(s.config, metav1.Condition{
		Type: bootstrapv1.HostResetCondition, Status: metav1.ConditionFalse, Reason: why.Reason, Message: message,
	})
	r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeWarning, why.Reason, resetting, "%s", short(message))
	return false, ctrl.Result{}, r.releaseHost(ctx, s)
}
