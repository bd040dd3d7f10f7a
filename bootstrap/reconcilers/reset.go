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
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// isGone reports whether the infrastructure says that there is no such host, now or ever.
func isGone(err error) bool {
	var lost *infra.Lost
	var notYet *infra.NotYet
	return errors.As(err, &lost) || errors.As(err, &notYet)
}

// held reports whether the Machine's deletion waits for us.
func (s *scope) held() bool {
	_, held := s.machine.Annotations[bootstrapv1.HostResetHook]
	return held
}

// holds puts the hook on the Machine that makes its deletion wait for the reset.
func (r *Config) holds(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.held() {
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

// owner is whose deletion gives the host back.
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

// lets lets the host go: it takes the hook off the Machine, or gives up the claim where there is none.
func (r *Config) lets(ctx context.Context, s *scope) error {
	if s.hasNoMachine() {
		return r.releases(ctx, s)
	}
	before := s.machine.DeepCopy()
	delete(s.machine.Annotations, bootstrapv1.HostResetHook)
	if err := r.Client.Patch(ctx, s.machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the Machine %s: %w", s.machine.Name, err)
	}
	return nil
}

// giveBack resets the host of a Machine that is being deleted. It begins when Cluster API says that nothing but hooks is waited for:
// the Node is drained by then. While others hold the Machine, an API server is ended whose etcd is about to go.
func (r *Config) giveBack(ctx context.Context, s *scope) (ctrl.Result, error) {
	drained, last := s.held() && awaitsHook(s.machine), !othersHold(s.machine.Annotations)
	if drained && !last && s.job != nil && s.job.What == withdrawing {
		return r.withdrawn(s), nil
	}
	if result, stops := r.stops(s); stops {
		return result, nil
	}
	switch {
	case !drained:
		return ctrl.Result{}, nil // we are told when the Machine changes
	case !last:
		return r.withdraws(ctx, s)
	}
	return r.cleans(ctx, s)
}

// stops ends what goes on with the host but a reset.
func (r *Config) stops(s *scope) (ctrl.Result, bool) {
	if s.job == nil || s.job.What == resetting {
		return ctrl.Result{}, false
	}
	r.Runner.Cancel(s.key, errDeleting)
	s.ended = !s.job.Running()
	if s.ended {
		return ctrl.Result{RequeueAfter: time.Millisecond}, true
	}
	return ctrl.Result{RequeueAfter: askAgain}, true
}

// cleans resets the host, and lets it go when it is clean.
func (r *Config) cleans(ctx context.Context, s *scope) (ctrl.Result, error) {
	if err := r.locate(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if conditions.IsTrue(s.config, bootstrapv1.HostResetCondition) && s.job == nil {
		return ctrl.Result{}, r.lets(ctx, s)
	}
	if why := s.notReset(time.Now()); why != "" && (s.job == nil || s.job.Running()) {
		return ctrl.Result{}, r.giveUp(ctx, s, why)
	}
	if s.job != nil {
		return r.takesReset(ctx, s)
	}
	return r.resets(ctx, s), nil
}

// notReset is why the host is not reset, or not any more, "" if it is to be.
func (s *scope) notReset(now time.Time) string {
	policy := s.resetPolicy()
	_, skip := s.owner().GetAnnotations()[bootstrapv1.SkipHostResetAnnotation]
	switch {
	case s.host == nil:
		return "there is no host to reset: " + s.waiting
	case skip:
		return "the host was given up without a reset, as the annotation " + bootstrapv1.SkipHostResetAnnotation + " says"
	case policy.Policy == spec.ResetNever:
		return "the host was not reset, as reset.policy says (Never)"
	case policy.Policy == spec.ResetWhenReachable &&
		conditions.GetReason(s.config, bootstrapv1.HostResetCondition) == bootstrapv1.ResetFailedReason &&
		conditions.GetReason(s.config, bootstrapv1.HostReachableCondition) == bootstrapv1.UnreachableReason:
		return "the host does not answer, and was given up without a reset, as reset.policy says (WhenReachable): " +
			conditions.GetMessage(s.config, bootstrapv1.HostReachableCondition)
	case !s.resetUntil().IsZero() && !now.Before(s.resetUntil()):
		return fmt.Sprintf("the host was given up, which was not reset in %s (reset.timeoutSeconds): %s", policy.Timeout(),
			conditions.GetMessage(s.config, bootstrapv1.HostResetCondition))
	}
	return ""
}

// resetUntil is until when it is tried to reset the host, the zero time while that has not begun. When it began is in the condition: it
// has been False since.
func (s *scope) resetUntil() time.Time {
	since := conditions.GetLastTransitionTime(s.config, bootstrapv1.HostResetCondition)
	if since == nil || since.IsZero() {
		return time.Time{}
	}
	policy := s.resetPolicy()
	return since.Add(policy.Timeout())
}

// untilGivenUp is when to reconcile again: after a while, or when the time to reset the host has passed.
func (s *scope) untilGivenUp(after time.Duration, now time.Time) time.Duration {
	until := s.resetUntil()
	if until.IsZero() {
		return after
	}
	return max(time.Millisecond, min(after, until.Sub(now)))
}

// awaitsHook reports whether a Machine's deletion waits for hooks like ours and nothing before them.
func awaitsHook(machine *clusterv1.Machine) bool {
	return conditions.GetReason(machine, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
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

// failed reports whether the host is given back because a MachineHealthCheck has found its Machine unhealthy.
func (s *scope) failed() bool {
	return s.machine != nil && conditions.IsFalse(s.machine, clusterv1.MachineHealthCheckSucceededCondition)
}

// resets starts the reset, unless the last one has failed just now.
func (r *Config) resets(ctx context.Context, s *scope) ctrl.Result {
	m := r.recall(s.config.UID)
	d := m.decideReset(s.adopts(), time.Now())
	if d.act == rest {
		return ctrl.Result{RequeueAfter: s.untilGivenUp(d.after, time.Now())}
	}
	m.adopts = s.adopts()
	r.remember(s.config.UID, m)
	j := &job{options: r.optionsFor(s), target: spec.Target{ClusterName: s.cluster.Name, Host: hostOf(s.host, "", &spec.Network{})}}
	j.forget = r.forgetter(s)
	if s.failed() && !m.keptLogs {
		j.keep = r.keeper(s)
	}
	r.Runner.Start(s.key, hostrun.Job[outcome]{What: resetting, Urgent: true, Do: j.reset, Lost: lost("")})
	if !conditions.Has(s.config, bootstrapv1.HostResetCondition) {
		setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, "")
	}
	ctrl.LoggerFrom(ctx).Info("Resetting a host", "host", s.host.Name, "address", s.host.Address)
	return ctrl.Result{}
}

// takesReset shows how far the reset is, or what it came to. The infrastructure hears that the host is clean before it
// gets it back.
func (r *Config) takesReset(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.job.Running() {
		showLost(s.config, s.job.Progress)
		if p := s.job.Progress; p.Total > 0 && conditions.GetReason(s.config, bootstrapv1.HostResetCondition) == bootstrapv1.ResettingReason {
			setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, fmt.Sprintf("%d of %d changes put back", p.Done, p.Total))
		}
		return ctrl.Result{RequeueAfter: s.untilGivenUp(askAgain, time.Now())}, nil
	}
	out := &s.job.Result
	s.ended = true
	if interrupted(out.err) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	if contact := contactOf(out); contact != nil {
		if err := r.met(ctx, s, contact); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := s.adapter.Left(ctx, s.subject(), infra.Cleanness{Err: out.err}); err != nil && !isGone(err) {
		return ctrl.Result{}, err
	}
	r.tellKept(s, &out.kept)
	r.tellAdopted(s, &out.report, resetting)
	m := r.recall(s.config.UID)
	m.keptLogs = m.keptLogs || out.kept.file != ""
	if out.err != nil {
		if !m.ended.Equal(s.job.Ended) { // or it was counted, and the status could not be written
			m.resetFailures, m.ended = m.resetFailures+1, s.job.Ended
		}
		m.foreign = foreign(out.err)
		r.remember(s.config.UID, m)
		pause, reason, adopt := m.pauseOfReset(), bootstrapv1.ResetFailedReason, ""
		if m.foreign {
			reason, adopt = bootstrapv1.HostOwnedByOtherReason, howToAdopt(s.config)+"\n"
		}
		setFalse(s.config, bootstrapv1.HostResetCondition, reason, fmt.Sprintf(
			"%s\n%sThe next attempt follows in %s, until %s (reset.timeoutSeconds). To give the host up as it is: annotate the %s %s with %s.",
			textOf(out.err), adopt, pause.Round(time.Second), s.resetUntil().UTC().Format(time.RFC3339), s.ownerKind(), s.owner().GetName(),
			bootstrapv1.SkipHostResetAnnotation))
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, reason, resetting, "%s", short(textOf(out.err)))
		return ctrl.Result{RequeueAfter: s.untilGivenUp(pause, time.Now())}, nil
	}
	setTrue(s.config, bootstrapv1.HostResetCondition, bootstrapv1.HostResetReason, "")
	r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, bootstrapv1.HostResetReason, resetting, "%d changes put back", out.report.Hosts[0].Restored)
	if out.notForgotten != nil {
		r.Events.Eventf(s.config, s.machine, corev1.EventTypeWarning, "NodeNotDeleted", resetting, "the Node %s is left to Cluster API: %s",
			s.machine.Status.NodeRef.Name, short(out.notForgotten.Error()))
	}
	return ctrl.Result{}, r.lets(ctx, s)
}

const (
	// nodePatience is for how long after a reset the deletion of the Node is tried, and nodeTimeout how long one attempt takes.
	nodePatience, nodeTimeout = 20 * time.Second, 5 * time.Second
)

// forgetter deletes the Node of a Machine whose host is clean, nil if there is none, or if its cluster goes with it. Cluster API deletes
// Nodes, too, but for ten seconds, and on the connection that it had: where that was to this very host, which is so where each Node
// has a load balancer of its own, the Node would stay, cordoned as it is, and the next Machine on the host would have it. The
// kubeconfig leads to another host since the deletion began.
func (r *Config) forgetter(s *scope) func(context.Context) error {
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

func (r *Config) deleteNode(ctx context.Context, cluster client.ObjectKey, name string) error {
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

// giveUp lets the Machine go without a reset: because the user says so, or because there is no host to reset. What is left behind is
// recorded: the host's changes stay, and a KubexmHost goes into quarantine.
func (r *Config) giveUp(ctx context.Context, s *scope, message string) error {
	if r.Runner.Cancel(s.key, errGivenUp) {
		return nil // we are told when it has ended
	}
	s.ended = true
	if s.host != nil {
		message += fmt.Sprintf("\nWhat was changed on the host %s (%s) is left there.", s.host.Name, s.host.Address)
	}
	conditions.Set(s.config, metav1.Condition{
		Type: bootstrapv1.HostResetCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.HostGivenUpReason, Message: message,
	})
	r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeWarning, bootstrapv1.HostGivenUpReason, resetting, "%s", short(message))
	return r.lets(ctx, s)
}
