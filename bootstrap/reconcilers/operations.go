// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// immediately is when a reconcile follows that decides what is next, once the result of what has ended is written.
const immediately = time.Millisecond

// run is what an operation starts; it outlives the reconcile.
type run = hostrun.Job[outcome]

// engineRun is a run by a pipeline of the operation's own. What the host is asked besides for its plan is not asked then.
func (s *scope) engineRun(asked time.Time, urgent bool, do func(context.Context, engine.Options, spec.Target) outcome) *run {
	options, target := s.planned.options, s.planned.target
	options.Also = host.Query{} // nothing else is shown of what it sees
	return &run{Urgent: urgent, Lost: lostOf(asked), Do: func(ctx context.Context, tell event.Reader) outcome {
		options.Reader = event.Readers(options.Reader, tell)
		return do(ctx, options, target)
	}}
}

// operation is a verb on a host.
type operation struct {
	name bootstrapv1.OperationType
	// checks are what must be so before it may be due, in order. In one reconcile, each is made once.
	checks []phase
	// interrupts is why whatever else goes on with the host is stopped for it; nil if it waits for that.
	interrupts error
	// due is what to start now, nil if nothing is to be done.
	due func(context.Context, *scope) (*run, error)
	// show says how far it is while it goes on. May be nil.
	show func(*scope)
	// settle takes in what came of it, which is in the scope's job, and forgotten afterwards: unless it returns an error, or the
	// status cannot be written. So it may be called more than once for one end.
	settle func(context.Context, *scope) (ctrl.Result, error)
}

// operations are what is done with a host that stays, in order of precedence. A new verb is a file like theirs, a line here and in the
// types of operations, and a pipeline.
func (r *KubexmConfigReconciler) operations() []operation {
	return []operation{
		r.enroll(),              // where the host is not known yet
		r.recoverCertificates(), // all else waits for the key pairs
		r.reboot(),              // whatever the cluster has or lacks
		r.collectLogs(),
		r.converge(),
		r.keepUp(),
		r.assessDisruption(),
		r.checkDrift(),
		r.restart(), // the host rests from here on
		r.renewCertificates(),
		r.snapshotEtcd(saveEtcd),
		r.snapshotEtcd(backupEtcd),
		r.askEtcd(),
		r.closeAccess(), // after which nothing else is done
	}
}

// askedBy are the annotations that ask for operations, by the times that are their values.
var askedBy = map[bootstrapv1.OperationType]string{
	bootstrapv1.ConvergeOperation:            bootstrapv1.ConvergeAnnotation,
	bootstrapv1.CheckDriftOperation:          bootstrapv1.CheckDriftAnnotation,
	bootstrapv1.RebootOperation:              bootstrapv1.RebootAnnotation,
	bootstrapv1.RestartOperation:             bootstrapv1.RestartAnnotation,
	bootstrapv1.RenewCertificatesOperation:   bootstrapv1.RenewCertificatesAnnotation,
	bootstrapv1.CollectLogsOperation:         bootstrapv1.CollectLogsAnnotation,
	bootstrapv1.RecoverCertificatesOperation: bootstrapv1.RecoverCertificatesAnnotation,
	bootstrapv1.SaveEtcdOperation:            bootstrapv1.SaveEtcdAnnotation,
	bootstrapv1.BackupEtcdOperation:          bootstrapv1.BackupEtcdAnnotation,
	bootstrapv1.AskEtcdOperation:             bootstrapv1.AskEtcdAnnotation,
}

// departures are what is done with a host that leaves, in order.
func (r *KubexmConfigReconciler) departures() []operation {
	return []operation{
		r.stopAPIServer(), // before its etcd member is removed
		r.reset(),         // when nobody needs the host any more
	}
}

// operate starts the first operation of a table that is due. It goes on if none is.
func (r *KubexmConfigReconciler) operate(table []operation) func(context.Context, *scope) (bool, ctrl.Result, error) {
	return func(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
		made := map[string]bool{}
		for _, o := range table {
			for _, c := range o.checks {
				if made[c.name] {
					continue
				}
				if goOn, result, err := c.do(ctx, s); err != nil {
					return false, ctrl.Result{}, fmt.Errorf("%s: %w", c.name, err)
				} else if !goOn {
					return false, result, nil
				}
				made[c.name] = true
			}
			due, err := o.due(ctx, s)
			if err != nil {
				return false, ctrl.Result{}, fmt.Errorf("%s: %w", o.name, err)
			}
			if due != nil {
				return false, r.start(ctx, s, &o, due), nil
			}
		}
		return true, ctrl.Result{}, nil
	}
}

// start starts what is due, or waits for what goes on.
func (r *KubexmConfigReconciler) start(ctx context.Context, s *scope, o *operation, due *run) ctrl.Result {
	if s.job != nil {
		if o.interrupts != nil && s.job.What != string(o.name) {
			r.Runner.Cancel(s.key, o.interrupts)
		}
		// We are notified when it has ended. What has a time of its own meanwhile, as a reboot that is given up, is decided in time.
		return ctrl.Result{RequeueAfter: askAgain}
	}
	due.What, due.Of = string(o.name), s.config.UID
	r.Runner.Start(s.key, *due)
	level := 0
	if o.name == bootstrapv1.CheckDriftOperation || o.name == bootstrapv1.AssessDisruptionOperation {
		level = 4 // they are many, and change nothing
	}
	ctrl.LoggerFrom(ctx).V(level).Info("Started an operation on a host", "operation", o.name, "host", s.host.Name, "address", s.host.Address)
	if job, found := r.Runner.Observe(s.key); found && job.Running() && o.show != nil {
		s.job = &job
		o.show(s)
	}
	return ctrl.Result{}
}

// collectResult shows how far an operation is, or takes in what came of it.
func (r *KubexmConfigReconciler) collectResult(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.job == nil {
		return true, ctrl.Result{}, nil
	}
	for _, o := range append(r.operations(), r.departures()...) {
		switch {
		case string(o.name) != s.job.What:
		case !s.job.Running():
			result, err := o.settle(ctx, s)
			s.ended = err == nil
			return false, result, err
		case o.show != nil:
			o.show(s)
		}
	}
	return true, ctrl.Result{}, nil
}

// decideAnew is the end of what settles an operation: what is next is decided by a reconcile of its own, when the result is written.
func decideAnew() ctrl.Result { return ctrl.Result{RequeueAfter: immediately} }

// asks reports when somebody asks for an operation that was not done for that yet, the zero time if nobody does.
func (s *scope) asks(o bootstrapv1.OperationType) time.Time {
	asked, last := s.config.Asked(askedBy[o]), s.config.Status.Operation(o)
	if last.RequestTime.Time.Equal(asked) {
		return time.Time{}
	}
	return asked
}

// requested is when an annotation, whose value is a time and what is asked for, asks a host that was once what it must be for an operation;
// the zero time if there is nothing to do. Of a value that has no time there is an event with this reason, which says what is wanted: form,
// in which %s is a time.
func (r *KubexmConfigReconciler) requested(s *scope, o bootstrapv1.OperationType, failed, form string) time.Time {
	annotation := askedBy[o]
	value, found := s.config.Annotations[annotation]
	if found && s.config.Asked(annotation).IsZero() {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, failed, string(o), "the annotation %s has %q: %s",
			annotation, short(value), fmt.Sprintf(form, time.Now().UTC().Format(time.RFC3339)))
	}
	if s.config.Status.ConvergedGeneration == 0 {
		return time.Time{} // it has nothing yet that this could be done with, or that is to be found out
	}
	return s.asks(o)
}

// settleRequested takes in what came of what was asked for. The host is observed soon, whatever it came to.
func (r *KubexmConfigReconciler) settleRequested(s *scope, failed, done string) ctrl.Result {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew()
	}
	took := s.job.Ended.Sub(s.job.Started).Round(100 * time.Millisecond)
	last := record(s, fmt.Sprintf("%s, and well after %s", out.note, took))
	kind, reason := corev1.EventTypeNormal, done
	if out.err != nil {
		kind, reason = corev1.EventTypeWarning, failed
	}
	r.Events.Eventf(s.config, nil, kind, reason, s.job.What, "%s", last.Message)
	r.checkSoon(s)
	return decideAnew()
}

// record notes in the status what came of the job: note, or why it failed.
func record(s *scope, note string) *bootstrapv1.OperationStatus {
	out, o := &s.job.Result, bootstrapv1.OperationStatus{
		Type:      bootstrapv1.OperationType(s.job.What),
		StartTime: metav1.NewTime(s.job.Started), EndTime: metav1.NewTime(s.job.Ended),
		Outcome: bootstrapv1.RunSucceeded, Message: short(note),
	}
	if !out.asked.IsZero() {
		o.RequestTime = metav1.NewTime(out.asked)
	}
	if out.err != nil {
		o.Outcome, o.Message = bootstrapv1.RunFailed, short(textOf(out.err))
	}
	s.config.Status.SetOperation(o)
	return s.config.Status.OperationFor(o.Type)
}

// lostOf is the result of an operation that somebody has asked for and that panicked.
func lostOf(asked time.Time) func(error) outcome {
	return func(err error) outcome { return outcome{err: err, asked: asked} }
}
