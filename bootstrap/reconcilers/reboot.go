// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/rescue"
)

// rebooting is what the job is called.
const rebooting = "Reboot"

// errRebooting stops what goes on with a host that is to be rebooted.
var errRebooting = errors.New("the host is to be rebooted")

// reboots reboots the host if somebody has asked for it. How long it is tried follows from when it was asked for, so that a host is
// not rebooted by what was asked yesterday.
func (r *Config) reboots(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	value, found := s.config.Annotations[bootstrapv1.RebootAnnotation]
	if !found {
		return true, ctrl.Result{}, nil
	}
	asked, err := time.Parse(time.RFC3339, value)
	if err != nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RebootFailed", rebooting,
			"the annotation %s has %q: want a time, such as %s", bootstrapv1.RebootAnnotation, short(value), time.Now().UTC().Format(time.RFC3339))
		return true, ctrl.Result{}, nil
	}
	timeout, err := r.rebootTimeout(ctx, s)
	if err != nil {
		return false, ctrl.Result{}, err
	}
	until := asked.Add(timeout)
	if s.config.Status.LastReboot.RequestTime.Time.Equal(asked) || time.Now().After(until) {
		return true, ctrl.Result{}, nil
	}
	setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.RebootingReason, "the host reboots, as was asked for at "+value)
	switch {
	case s.job != nil && s.job.What != rebooting:
		r.Runner.Cancel(s.key, errRebooting)
		return false, ctrl.Result{RequeueAfter: askAgain}, nil // we are told when it has ended
	case s.job != nil:
		return false, ctrl.Result{RequeueAfter: askAgain}, nil
	}
	owner, name := r.ownership(s), s.host.Name
	j := &rebootJob{
		host: s.host.Name, dial: r.dialer(s.config.Namespace, *s.host), asked: asked, until: until, keep: r.keeper(s),
		ownership: func(ctx context.Context) (host.Ownership, error) { return owner(ctx, name) },
	}
	r.Runner.Start(s.key, hostrun.Job[outcome]{What: rebooting, Urgent: true, Do: j.do, Lost: func(err error) outcome { return outcome{err: err, asked: asked} }})
	ctrl.LoggerFrom(ctx).Info("Rebooting a host", "host", s.host.Name, "address", s.host.Address)
	return false, ctrl.Result{}, nil
}

// rebootTimeout is how long a reboot is tried: as whoever has Machines of its kind mended declares it, who may have been asked by hand
// where it has no hosts rebooted by itself.
func (r *Config) rebootTimeout(ctx context.Context, s *scope) (time.Duration, error) {
	declared := time.Duration(0)
	switch {
	case s.machine == nil: // a host that is no Machine's
	case !util.IsControlPlaneMachine(s.machine):
		remediation := &bootstrapv1.KubexmRemediation{} // a MachineHealthCheck gives it the Machine's name
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s.machine), remediation); err == nil {
			declared = remediation.Spec.RebootTimeout()
		} else if !apierrors.IsNotFound(err) {
			return 0, err
		}
	case s.clusterConfig != nil:
		declared = time.Duration(ptr.Deref(s.clusterConfig.Spec.ControlPlaneRebootTimeoutSeconds, 0)) * time.Second
	}
	return cmp.Or(declared, bootstrapv1.RebootTimeout), nil
}

// rebootJob is all that a reboot needs.
type rebootJob struct {
	host         string
	dial         func(context.Context, string) (host.Host, error)
	asked, until time.Time
	ownership    func(context.Context) (host.Ownership, error)
	// keep keeps the host's logs, nil if that is off.
	keep func(context.Context, host.Host) kept
}

func (j *rebootJob) do(ctx context.Context, _ event.Reader) outcome {
	out := outcome{asked: j.asked}
	within, cancel := context.WithDeadline(ctx, j.until)
	defer cancel()
	reboot := rescue.Reboot{
		Host: j.host, Asked: j.asked,
		Dial:  func(ctx context.Context) (host.Host, error) { return j.dial(ctx, j.host) },
		Admit: func(ctx context.Context, h host.Host) error { return admits(ctx, h, j.ownership) },
		Before: func(ctx context.Context, h host.Host) {
			if j.keep != nil {
				out.kept = j.keep(ctx, h)
			}
		},
	}
	if out.err = reboot.Do(within); out.err != nil && ctx.Err() != nil {
		out.err = &engine.Error{Cause: context.Cause(ctx)}
	}
	return out
}

// rebooted takes in what a reboot came to. The host is brought to what it must be then, whatever it came to.
func (r *Config) rebooted(s *scope) {
	out := &s.job.Result
	s.ended = true
	r.tellKept(s, &out.kept)
	if interrupted(out.err) {
		return
	}
	s.config.Status.LastReboot = bootstrapv1.RebootStatus{
		RequestTime: metav1.NewTime(out.asked), EndTime: metav1.NewTime(s.job.Ended), Outcome: bootstrapv1.RunSucceeded,
	}
	if out.err == nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "HostRebooted", rebooting,
			"the host has booted, and answers after %s", s.job.Ended.Sub(s.job.Started).Round(time.Second))
	} else {
		s.config.Status.LastReboot.Outcome = bootstrapv1.RunFailed
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RebootFailed", rebooting, "%s", short(out.err.Error()))
	}
	m := r.recall(s.config.UID)
	m.drifted = true
	r.remember(s.config.UID, m)
}

// kept is what became of a host's logs: the file they are in, or why there is none.
type kept struct {
	file string
	err  error
}

// keeper returns what keeps the logs of the scope's host, nil if that is off.
func (r *Config) keeper(s *scope) func(context.Context, host.Host) kept {
	if r.Logs == "" {
		return nil
	}
	namespace, name := s.config.Namespace, s.host.Name
	return func(ctx context.Context, h host.Host) (k kept) {
		content, err := rescue.Logs(ctx, h)
		if err != nil {
			return kept{err: err}
		}
		k.file, k.err = r.Logs.Keep(namespace, name, time.Now(), content)
		return k
	}
}

// tellKept says where a host's logs are.
func (r *Config) tellKept(s *scope, k *kept) {
	switch {
	case k.err != nil:
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "HostLogsNotKept", "KeepLogs", "%s", short(k.err.Error()))
	case k.file != "":
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "HostLogsKept", "KeepLogs", "what the host has logged is in %s", k.file)
	}
}
