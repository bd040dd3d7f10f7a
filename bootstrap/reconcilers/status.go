// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// longest bounds a condition's message: a host can have any number of problems, an API object not.
const longest = 16 << 10

func setTrue(c *bootstrapv1.KubexmConfig, kind, reason, message string) {
	set(c, kind, metav1.ConditionTrue, reason, message)
}

func setFalse(c *bootstrapv1.KubexmConfig, kind, reason, message string) (changed bool) {
	return set(c, kind, metav1.ConditionFalse, reason, message)
}

// set reports whether that is news, so that events need not go by what a condition said before.
func set(c *bootstrapv1.KubexmConfig, kind string, status metav1.ConditionStatus, reason, message string) (changed bool) {
	was, now := conditions.Get(c, kind), metav1.Condition{Type: kind, Status: status, Reason: reason, Message: host.Text(message, longest)}
	changed = was == nil || !conditions.HasSameStateExceptObservedGeneration(was, &now)
	conditions.Set(c, now)
	return changed
}

// summarise sets Ready and HostReady, and every condition that nothing was said of yet.
func summarise(c *bootstrapv1.KubexmConfig) {
	summariseHost(c)
	if c.Spec.HostRef.Name != "" { // there is no bootstrap data: its host is no Node
		mirror(c, bootstrapv1.HostReadyCondition)
		return
	}
	// By Ready, Cluster API judges the Machine, and providers of infrastructure begin: what becomes of a host that was given its
	// bootstrap data is its Node's to say. Only what was never more than a wish is refused for good.
	if c.Status.PlanDigest == "" && conditions.GetReason(c, bootstrapv1.HostConvergedCondition) == bootstrapv1.InvalidReason {
		mirror(c, bootstrapv1.HostConvergedCondition)
		return
	}
	mirror(c, bootstrapv1.DataSecretAvailableCondition)
}

// mirror gives Ready the status of another condition.
func mirror(c *bootstrapv1.KubexmConfig, kind string) {
	from := conditions.Get(c, kind)
	if from.Status == metav1.ConditionTrue {
		setTrue(c, bootstrapv1.ReadyCondition, clusterv1.ReadyReason, "")
		return
	}
	set(c, bootstrapv1.ReadyCondition, from.Status, from.Reason, from.Message)
}

// summariseHost sets HostReady.
func summariseHost(c *bootstrapv1.KubexmConfig) {
	needed := []string{
		bootstrapv1.DataSecretAvailableCondition, bootstrapv1.HostReachableCondition, bootstrapv1.PreflightPassedCondition,
		bootstrapv1.HostConvergedCondition, bootstrapv1.NodeJoinedCondition,
	}
	if c.Spec.HostRef.Name != "" { // its host is given, and is no Node
		needed = []string{bootstrapv1.HostReachableCondition, bootstrapv1.PreflightPassedCondition, bootstrapv1.HostConvergedCondition}
	}
	for _, kind := range needed {
		if !conditions.Has(c, kind) {
			set(c, kind, metav1.ConditionUnknown, bootstrapv1.NotStartedReason, "")
		}
	}
	if conditions.Has(c, bootstrapv1.HostResetCondition) {
		setFalse(c, bootstrapv1.HostReadyCondition, conditions.GetReason(c, bootstrapv1.HostResetCondition),
			conditions.GetMessage(c, bootstrapv1.HostResetCondition))
		return
	}
	var first *metav1.Condition
	for _, kind := range needed {
		if now := conditions.Get(c, kind); first == nil && now.Status != metav1.ConditionTrue &&
			(kind != bootstrapv1.HostReachableCondition || !c.IsClosed()) {
			first = now
		}
	}
	if first == nil {
		setTrue(c, bootstrapv1.HostReadyCondition, clusterv1.ReadyReason, "")
		return
	}
	message := first.Type
	if first.Message != "" {
		message += ": " + first.Message
	}
	setFalse(c, bootstrapv1.HostReadyCondition, first.Reason, message)
}

// showProgress says how far a run is that goes on.
func showProgress(c *bootstrapv1.KubexmConfig, job *hostrun.State[outcome]) {
	p := job.Progress
	showLost(c, p)
	if p.Total > 0 {
		if p.Lost == "" {
			setTrue(c, bootstrapv1.HostReachableCondition, bootstrapv1.HostReachableReason, "")
		}
		if !conditions.IsTrue(c, bootstrapv1.PreflightPassedCondition) {
			// Nothing is planned before; its warnings come with the result.
			setTrue(c, bootstrapv1.PreflightPassedCondition, bootstrapv1.PreflightPassedReason, "")
		}
		c.Status.Progress = bootstrapv1.ProgressStatus{CompletedSteps: ptr.To(p.Done), TotalSteps: ptr.To(p.Total)}
	}
	last := c.Status.OperationFor(bootstrapv1.ConvergeOperation)
	last.StartTime = metav1.NewTime(job.Started)
	last.EndTime, last.Outcome, last.Changed = metav1.Time{}, "", nil
	if !hosthealth.IsFailing(c) {
		last.Message = "" // why the one before has failed is what others of its pool wait for
	}
	message := "starting"
	if p.Total > 0 {
		message = fmt.Sprintf("converged %d/%d steps", p.Done, p.Total)
	}
	if p.Now != "" {
		message += "; " + p.Now
	}
	reason := bootstrapv1.ConvergingReason
	if conditions.GetReason(c, bootstrapv1.HostConvergedCondition) == bootstrapv1.DriftedReason {
		// What differed is what people want to know, until it does not any more.
		return
	}
	if conditions.IsTrue(c, bootstrapv1.HostConvergedCondition) {
		// It works as it was, and follows a change: nothing that waits for it to be ready should take it for broken.
		return
	}
	if p.Total > 0 && p.Done == p.Total && c.Spec.HostRef.Name == "" {
		setFalse(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.WaitingForNodeReason, message)
	}
	setFalse(c, bootstrapv1.HostConvergedCondition, reason, message)
}

// isAsBefore reports whether the conditions say of the host what it is when a run begins: it works as it was, or what differs is known.
func isAsBefore(c *bootstrapv1.KubexmConfig) bool {
	return conditions.IsTrue(c, bootstrapv1.HostConvergedCondition) ||
		conditions.GetReason(c, bootstrapv1.HostConvergedCondition) == bootstrapv1.DriftedReason
}

// showLost says that the last attempt to reach a host has failed, while others follow: who reads it need not wait for the last.
func showLost(c *bootstrapv1.KubexmConfig, p hostrun.Progress) {
	if p.Lost != "" {
		setFalse(c, bootstrapv1.HostReachableCondition, reasonOf(p.Why), p.Lost)
	}
}

// showRun says what a run came to, which m has learnt.
func showRun(c *bootstrapv1.KubexmConfig, job *hostrun.State[outcome], m *hostCache) error {
	out := &job.Result
	setReachability(c, out)
	last := c.Status.OperationFor(bootstrapv1.ConvergeOperation)
	*last = bootstrapv1.OperationStatus{
		Type: bootstrapv1.ConvergeOperation, StartTime: metav1.NewTime(job.Started), EndTime: metav1.NewTime(job.Ended),
		Outcome: bootstrapv1.RunSucceeded, Changed: ptr.To(int32(out.report.Total().Changed)),
		Failures: ptr.To(m.failures), Restored: ptr.To(m.restored), InputDigest: out.input,
	}
	if !out.asked.IsZero() {
		last.RequestTime = metav1.NewTime(out.asked)
	}
	if out.err != nil {
		last.Message = short(textOf(out.err))
	}
	if interrupted(out.err) && m.failures > 0 {
		last.InputDigest = m.input // the one that failures are of
	}
	if counts := out.onHost(); counts.Total > 0 {
		c.Status.Progress = bootstrapv1.ProgressStatus{
			CompletedSteps: ptr.To(int32(counts.Skipped + counts.Changed)), TotalSteps: ptr.To(int32(counts.Total)),
		}
	}
	reason, after := bootstrapv1.StepFailedReason, backoff(max(1, m.failures)).Round(time.Second)
	next := fmt.Sprintf("\nNext attempt in %s.", after)
	switch {
	case m.exhausted():
		reason = bootstrapv1.RetriesExhaustedReason
		next = fmt.Sprintf("\nThe host was rolled back %d times, and is not retried. Revert or change the spec; or repair the cause, "+
			"and ask for it: kubectl annotate kubexmconfig -n %s %s %s=\"$(date)\" --overwrite", m.restored, c.Namespace, c.Name, bootstrapv1.ConvergeAnnotation)
	case !out.restored():
		next = fmt.Sprintf("\nCompleted steps are kept; next attempt in %s.", after)
	}
	switch {
	case interrupted(out.err):
		last.Outcome = bootstrapv1.RunInterrupted
		if !out.begun && isAsBefore(c) {
			return nil
		}
		setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.ConvergingReason, "the run was interrupted: "+causeOf(out.err).Error())
		return nil
	case out.planFailed:
		last.Outcome = bootstrapv1.RunFailed
		setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.PlanFailedReason, out.err.Error())
		return nil
	case foreign(out.err):
		last.Outcome = bootstrapv1.RunFailed
		setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.HostOwnedByOtherReason,
			fmt.Sprintf("%s\n%s\nNext attempt in %s.", textOf(out.err), howToAdopt(c), lastBackoff))
		return nil
	case errors.Is(out.err, errPreflight):
		last.Outcome = bootstrapv1.RunFailed
		setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.PreflightFailedReason,
			out.err.Error()+": see "+bootstrapv1.PreflightPassedCondition)
		return nil
	case out.err != nil:
		last.Outcome = bootstrapv1.RunFailed
	}

	if out.hostConverged() {
		c.Status.Drift = nil
		setTrue(c, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
	} else {
		setFalse(c, bootstrapv1.HostConvergedCondition, reason, textOf(out.err)+next)
	}
	switch {
	case c.Spec.HostRef.Name != "":
		if out.err != nil {
			return nil
		}
		return showPlan(c, out)
	case out.err == nil:
		setTrue(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeJoinedReason, "")
		return showPlan(c, out)
	case out.hostConverged():
		setFalse(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, textOf(out.err)+next)
	case !conditions.IsTrue(c, bootstrapv1.NodeJoinedCondition):
		setFalse(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.WaitingForNodeReason, "")
	}
	return nil
}

// showNetwork says of a Node that has joined what it waits for where users install the network.
func showNetwork(c *bootstrapv1.KubexmConfig, declared *spec.Cluster) {
	if declared.Network.IsUsers() && conditions.IsTrue(c, bootstrapv1.NodeJoinedCondition) {
		setTrue(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeRegisteredReason,
			"The kubelet has registered. network.plugin is None: the Node is Ready once you have installed a network.")
	}
}

// showDriftCheck says what a drift check of a converged host came to, and reports whether the host is as planned, and what differs if that
// was not said before.
func showDriftCheck(
	c *bootstrapv1.KubexmConfig, job *hostrun.State[outcome], drift spec.DriftPolicy,
) (same bool, news string, err error) {
	out := &job.Result
	setReachability(c, out)
	switch {
	case interrupted(out.err):
		return true, "", nil
	case out.err != nil && !engine.Undecided(out.err):
		return false, "", nil // the run that follows says why
	case out.report.Converged():
		c.Status.Drift = nil
		setTrue(c, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
		if c.Spec.HostRef.Name == "" {
			setTrue(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeJoinedReason, "")
		}
		return true, "", showPlan(c, out)
	}
	if counts := out.onHost(); counts.Total > 0 && counts.Skipped == counts.Total {
		return showCluster(c, out), "", nil
	}
	c.Status.Drift = driftOf(out.plan, out.report.Checks)
	message := differences(out.plan, out.report.Checks)
	if drift == spec.DriftReport {
		message += fmt.Sprintf("\nThis is reported, and not repaired (driftPolicy). To have it repaired: "+
			"kubectl annotate kubexmconfig -n %s %s %s=\"$(date)\" --overwrite", c.Namespace, c.Name, bootstrapv1.ConvergeAnnotation)
	}
	if setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.DriftedReason, message) {
		news = message
	}
	return false, news, nil
}

// showCluster says what a look came to that found the host as planned, and the cluster not, and reports whether that is known: an
// API that does not answer says nothing of the host, nor of its Node.
func showCluster(c *bootstrapv1.KubexmConfig, out *outcome) (same bool) {
	c.Status.Drift = nil
	setTrue(c, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
	if !slices.ContainsFunc(out.report.Checks, func(check plan.Check) bool { return check.Unknown == "" }) {
		return true
	}
	if c.Spec.HostRef.Name == "" {
		setFalse(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, differences(out.plan, out.report.Checks))
	}
	return false
}

// setReachability says what is known of the way to the host and of its fitness.
func setReachability(c *bootstrapv1.KubexmConfig, out *outcome) {
	if reason := unreachable(out.err); reason != "" {
		setFalse(c, bootstrapv1.HostReachableCondition, reason, textOf(out.err))
	} else if out.reached || foreign(out.err) {
		setTrue(c, bootstrapv1.HostReachableCondition, bootstrapv1.HostReachableReason, "")
	}
	switch {
	case out.checked && preflight.Failed(out.problems):
		setFalse(c, bootstrapv1.PreflightPassedCondition, bootstrapv1.PreflightFailedReason, listOf(out.problems))
	case out.checked:
		setTrue(c, bootstrapv1.PreflightPassedCondition, bootstrapv1.PreflightPassedReason, listOf(out.problems))
	case out.plan != nil && !conditions.IsTrue(c, bootstrapv1.PreflightPassedCondition):
		setTrue(c, bootstrapv1.PreflightPassedCondition, bootstrapv1.PreflightPassedReason, "")
	}
}

// showPlan says to which plan the host was brought, and what was seen of it then.
func showPlan(c *bootstrapv1.KubexmConfig, out *outcome) error {
	c.Status.KubernetesVersion = out.version
	planned, err := out.plan.Digest()
	if err != nil {
		return err
	}
	facts, err := factsDigest(out.system)
	if err != nil {
		return err
	}
	c.Status.PlanDigest, c.Status.FactsDigest = planned, facts
	return nil
}

// unreachable is the reason of HostReachable that an error means, or "" if the host was reached.
func unreachable(err error) string {
	var none *noCredentials
	switch {
	case err == nil:
		return ""
	case errors.As(err, &none):
		return bootstrapv1.CredentialsNotAvailableReason
	}
	return reasonOf(host.KindOf(err))
}

// reasonOf is the reason of HostReachable that a kind of error means, or "".
func reasonOf(kind host.Kind) string {
	switch kind {
	case host.KindUnreachable:
		return bootstrapv1.UnreachableReason
	case host.KindNoAnswer:
		return bootstrapv1.NotAnsweringReason
	case host.KindProtocol:
		return bootstrapv1.AnswerRefusedReason
	case host.KindHostKey:
		return bootstrapv1.HostKeyMismatchReason
	case host.KindAuth:
		return bootstrapv1.LoginFailedReason
	case host.KindPrivilege:
		return bootstrapv1.SudoFailedReason
	case host.KindLocked:
		return bootstrapv1.HostLockedReason
	}
	return ""
}

// interrupted reports whether a run was stopped from outside: nothing failed.
func interrupted(err error) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.Cause != nil && len(e.Failures) == 0
}

func causeOf(err error) error {
	var e *engine.Error
	if errors.As(err, &e) && e.Cause != nil {
		return e.Cause
	}
	return err
}

// rootOf is the one failure of a run, in its own words, or err.
func rootOf(err error) error {
	var e *engine.Error
	if errors.As(err, &e) && len(e.Failures) > 0 {
		return e.Failures[0]
	}
	return err
}

// textOf are a run's failures: where, why, and what to do.
func textOf(err error) string {
	var e *engine.Error
	if !errors.As(err, &e) || len(e.Failures) == 0 {
		return err.Error()
	}
	var lines []string
	for _, f := range e.Failures {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n")
}

func listOf(problems []preflight.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s: %s", p.Severity, p))
	}
	return strings.Join(lines, "\n")
}

// differences says what a look found, at most so many.
func differences(p *plan.Plan, checks []plan.Check) string {
	const most = 10
	lines := []string{fmt.Sprintf("%d of %d steps differ:", len(checks), p.Graph().Len())}
	for i, c := range checks {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(checks)-most))
			break
		}
		lines = append(lines, c.Node+": "+what(c))
	}
	return strings.Join(lines, "\n")
}

func what(c plan.Check) string {
	if c.Unknown != "" {
		return c.Unknown
	}
	return deltas(c.Diff)
}

func deltas(d step.Diff) string {
	var parts []string
	for _, x := range d {
		parts = append(parts, fmt.Sprintf("%s: found %s, expected %s", x.Subject, x.From, x.To))
	}
	return strings.Join(parts, "; ")
}
