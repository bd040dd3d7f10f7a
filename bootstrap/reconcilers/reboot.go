// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/bmc"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
)

// rebooting is what the job is called.
const rebooting = string(bootstrapv1.RebootOperation)

// errRebooting stops what goes on with a host that is to be rebooted.
var errRebooting = errors.New("the host is to be rebooted")

// reboot reboots a host if somebody has asked for it. How long it is tried follows from when it was asked for, so that a host is not
// rebooted by what was asked yesterday.
func (r *KubexmConfigReconciler) reboot() operation {
	return operation{name: bootstrapv1.RebootOperation, interrupts: errRebooting, due: r.rebootIsDue, settle: r.settleReboot}
}

func (r *KubexmConfigReconciler) rebootIsDue(ctx context.Context, s *scope) (*run, error) {
	value, found := s.config.Annotations[bootstrapv1.RebootAnnotation]
	if !found {
		return nil, nil
	}
	asked := s.config.Asked(bootstrapv1.RebootAnnotation)
	if asked.IsZero() {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RebootFailed", rebooting,
			"the annotation %s has %q: want a time, such as %s", bootstrapv1.RebootAnnotation, short(value), time.Now().UTC().Format(time.RFC3339))
		return nil, nil
	}
	timeout, err := r.rebootTimeout(ctx, s)
	if err != nil {
		return nil, err
	}
	until := rebootUntil(asked, hosthealth.MaintainedUntil(s.config), timeout)
	if s.asks(bootstrapv1.RebootOperation).IsZero() || time.Now().After(until) {
		return nil, nil
	}
	setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.RebootingReason,
		"the host reboots, as was asked for at "+asked.UTC().Format(time.RFC3339))
	j := &rebootJob{withoutPlan: r.withoutPlan(s, rebooting, asked), until: until, keep: r.keeper(s)}
	r.byController(s, &j.reboot, &j.reset)
	return &run{Urgent: true, Do: j.do, Lost: lostOf(asked)}, nil
}

// rebootUntil is how long a reboot is tried that was asked for then. Its time begins anew after a maintenance, unless it had passed when
// that ended: who wants the host rebooted still, and knows whether it may be now, asks again.
func rebootUntil(asked, maintained time.Time, timeout time.Duration) time.Time {
	until := asked.Add(timeout)
	if maintained.After(asked) && maintained.Before(until) {
		return maintained.Add(timeout)
	}
	return until
}

// owesConverge reports whether the host has rebooted, as was asked for, and was not brought to what it must be since. Who asks for the one
// asks for the other, whatever becomes of drift.
func (s *scope) owesConverge() bool {
	rebooted, last := s.config.Status.Operation(bootstrapv1.RebootOperation), s.config.Status.Operation(bootstrapv1.ConvergeOperation)
	return last.EndTime.Before(&rebooted.EndTime) || !rebooted.EndTime.IsZero() && last.Outcome == bootstrapv1.RunInterrupted
}

// rebootTimeout is how long a reboot is tried: as who has Machines of its kind remediated declares it, who may have been asked by hand
// where it has no hosts rebooted by itself.
func (r *KubexmConfigReconciler) rebootTimeout(ctx context.Context, s *scope) (time.Duration, error) {
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
	withoutPlan
	until time.Time
	// reboot has how the machine is reset, if that is possible, and reset is how it was.
	reboot recovery.Reboot
	reset  bmc.ResetType
	// keep keeps the host's logs, nil if that is off.
	keep func(context.Context, host.Host) kept
}

func (j *rebootJob) do(ctx context.Context, tell event.Reader) outcome {
	out := outcome{asked: j.asked}
	out.err = j.tell(ctx, tell, func(ctx context.Context) error {
		within, cancel := context.WithDeadline(ctx, j.until)
		defer cancel()
		reboot := j.reboot
		reboot.Host, reboot.Asked, reboot.Admit = j.host, j.asked, j.admits
		reboot.Dial = func(ctx context.Context) (host.Host, error) { return j.dial(ctx, j.host) }
		reboot.Before = func(ctx context.Context, h host.Host) {
			if j.keep != nil {
				out.kept = j.keep(ctx, h)
			}
		}
		return reboot.Do(within)
	})
	out.reset = j.reset
	return out
}

// settleReboot takes in what a reboot came to. The host is brought to what it must be then, whatever it came to.
func (r *KubexmConfigReconciler) settleReboot(_ context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	r.tellKept(s, &out.kept)
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	took := s.job.Ended.Sub(s.job.Started).Round(time.Second)
	booted := fmt.Sprintf("the host has booted, and answers after %s", took)
	if out.reset != "" {
		booted += fmt.Sprintf("; its management controller has reset the machine (%s)", out.reset)
	}
	record(s, booted)
	if out.err == nil {
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "HostRebooted", rebooting, "%s", booted)
	} else {
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "RebootFailed", rebooting, "%s", short(out.err.Error()))
	}
	m := r.cached(s.config.UID)
	m.drifted = true
	r.store(s.config.UID, m)
	return decideAnew(), nil
}
