// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// SkipResetAnnotation on a Machine (or a KubexmConfig without one) that is being deleted gives its host up without a reset, for a host that is broken or
// gone. A KubexmHost goes into quarantine then. Its value does not matter.
const SkipResetAnnotation = "bootstrap.cluster.x-k8s.io/skip-host-reset"

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

// giveBack resets the host of a Machine that is being deleted. It begins when Cluster API says that nothing but the hook is
// waited for: the Node is drained by then.
func (r *Config) giveBack(ctx context.Context, s *scope) (ctrl.Result, error) {
	if result, stops := r.stops(s); stops {
		return result, nil
	}
	if !s.held() || !awaitsHook(s.machine) || othersHold(s.machine.Annotations) {
		return ctrl.Result{}, nil // we are told when the Machine changes
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
	if _, skip := s.owner().GetAnnotations()[SkipResetAnnotation]; skip || s.host == nil {
		return ctrl.Result{}, r.giveUp(ctx, s)
	}
	if s.job != nil {
		return r.takesReset(ctx, s)
	}
	if conditions.IsTrue(s.config, bootstrapv1.HostResetCondition) {
		return ctrl.Result{}, r.lets(ctx, s)
	}
	return r.resets(ctx, s), nil
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

// resets starts the reset, unless the last one has failed just now.
func (r *Config) resets(ctx context.Context, s *scope) ctrl.Result {
	m := r.recall(s.config.UID)
	d := m.decideReset(time.Now())
	if d.act == rest {
		return ctrl.Result{RequeueAfter: d.after}
	}
	j := &job{options: r.optionsFor(s), target: spec.Target{ClusterName: s.cluster.Name, Host: hostOf(s.host, "", &spec.Network{})}}
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
		if p := s.job.Progress; p.Total > 0 && conditions.GetReason(s.config, bootstrapv1.HostResetCondition) == bootstrapv1.ResettingReason {
			setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, fmt.Sprintf("%d of %d changes put back", p.Done, p.Total))
		}
		return ctrl.Result{RequeueAfter: askAgain}, nil
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
	m := r.recall(s.config.UID)
	if out.err != nil {
		m.resetFailures, m.ended = m.resetFailures+1, s.job.Ended
		r.remember(s.config.UID, m)
		wait := backoff(m.resetFailures)
		setFalse(s.config, bootstrapv1.HostResetCondition, bootstrapv1.ResetFailedReason, fmt.Sprintf(
			"%s\nThe next attempt follows in %s. To give the host up as it is: annotate the %s %s with %s.",
			textOf(out.err), wait.Round(time.Second), s.ownerKind(), s.owner().GetName(), SkipResetAnnotation))
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, bootstrapv1.ResetFailedReason, resetting, "%s", short(textOf(out.err)))
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	setTrue(s.config, bootstrapv1.HostResetCondition, bootstrapv1.HostResetReason, "")
	r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, bootstrapv1.HostResetReason, resetting, "%d changes put back", out.report.Hosts[0].Restored)
	return ctrl.Result{}, r.lets(ctx, s)
}

// giveUp lets the Machine go without a reset: because the user says so, or because there is no host to reset.
func (r *Config) giveUp(ctx context.Context, s *scope) error {
	if r.Runner.Cancel(s.key, errDeleting) {
		return nil // we are told when it has ended
	}
	s.ended = true
	message := "the host was given up without a reset, as the annotation " + SkipResetAnnotation + " says"
	if s.host == nil {
		message = "there is no host to reset: " + s.waiting
	}
	conditions.Set(s.config, metav1.Condition{
		Type: bootstrapv1.HostResetCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.ResetFailedReason, Message: message,
	})
	r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, bootstrapv1.ResetFailedReason, resetting, "%s", short(message))
	return r.lets(ctx, s)
}
