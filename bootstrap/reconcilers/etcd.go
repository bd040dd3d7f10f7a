// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// askLimit is how long it may take.
	askLimit = time.Minute
	// unansweredAgain is after how long etcd is asked again that has not answered. A run may end while it is being started; until it has
	// answered, no other host of the control plane is changed.
	unansweredAgain = 15 * time.Second
)

// etcdQuery asks a host that is to have a member of etcd, and others nothing.
func etcdQuery(t *spec.Target) host.Query {
	if !t.HasEtcdMember() {
		return host.Query{}
	}
	return quorum.Query(t.Host.Name, t.Host.NodeAddress())
}

// askEtcd asks the etcd on a host that rests if somebody wants to know it as it is now, and again where it has not answered.
func (r *KubexmConfigReconciler) askEtcd() operation {
	return operation{name: bootstrapv1.AskEtcdOperation, checks: r.planned(), due: r.askIsDue, settle: r.settleAnswer}
}

func (r *KubexmConfigReconciler) askIsDue(_ context.Context, s *scope) (*run, error) {
	j, asked := s.planned, s.asks(bootstrapv1.AskEtcdOperation)
	query := etcdQuery(&j.target)
	if query.Empty() {
		return nil, nil
	}
	wanted := asked.After(s.config.Status.Etcd.ObservedTime.Time)
	if !wanted {
		wait, is := unanswered(s.config, r.Clock.Now())
		switch {
		case !is:
			return nil, nil
		case wait > 0:
			s.needed.after = min(cmp.Or(s.needed.after, wait), wait)
			return nil, nil
		}
		asked = s.config.Status.Operation(bootstrapv1.AskEtcdOperation).RequestTime.Time // nobody has asked for more
	}
	return &run{Urgent: wanted, Lost: lostOf(asked), Do: func(ctx context.Context, tell event.Reader) outcome {
		within, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		out := j.ask(within, query, tell)
		out.asked = asked
		return out
	}}, nil
}

// unanswered reports whether etcd has not answered on a host that was what it must be, and can be reached, and after how long it is asked
// again. What cannot be reached is observed anyway.
func unanswered(c *bootstrapv1.KubexmConfig, now time.Time) (wait time.Duration, is bool) {
	last := c.Status.Etcd.ObservedTime.Time
	if c.Status.Etcd.Message == "" || c.Status.ConvergedGeneration == 0 || !conditions.IsTrue(c, bootstrapv1.HostReachableCondition) {
		return 0, false
	}
	if ended := c.Status.Operation(bootstrapv1.AskEtcdOperation).EndTime.Time; ended.After(last) {
		last = ended
	}
	return max(unansweredAgain-now.Sub(last), 0), true
}

// ask observes nothing else of the host.
func (j *job) ask(ctx context.Context, query host.Query, tell event.Reader) outcome {
	name := j.target.Host.Name
	j.options.Reader = event.Readers(j.options.Reader, tell)
	facts, err := engine.New(j.options).Look(ctx, []string{name}, func(string) host.Query { return query })
	out := outcome{input: j.input, err: err}
	if err == nil {
		out.report.Hosts = []engine.HostReport{{Host: name, Facts: facts[name]}}
	}
	return out
}

// settleAnswer takes in what etcd has said. That a host could not be asked is for the check to say that follows at once.
func (r *KubexmConfigReconciler) settleAnswer(ctx context.Context, s *scope) (ctrl.Result, error) {
	showFacts(ctx, s)
	if interrupted(s.job.Result.err) {
		return decideAnew(), nil
	}
	if record(s, ""); s.job.Result.err != nil {
		r.checkSoon(s)
	}
	return decideAnew(), nil
}

// showEtcd says what etcd on the host has said, whatever else the job came to. What was said before holds where it was not asked.
func showEtcd(c *bootstrapv1.KubexmConfig, job *hostrun.State[outcome]) {
	out := &job.Result
	if len(out.report.Hosts) == 0 || out.report.Hosts[0].Facts == nil || !quorum.Asked(out.report.Hosts[0].Facts) {
		return
	}
	seen, err := quorum.In(out.report.Hosts[0].Facts)
	// Its clock is the host's. Without one that can be true, what it says is as old as the job.
	at := seen.At
	if at.Before(job.Started) || at.After(job.Ended) {
		at = job.Started
	}
	status := bootstrapv1.EtcdStatus{ObservedTime: metav1.NewMicroTime(at.UTC().Truncate(time.Microsecond))}
	if err != nil {
		status.Message = short(err.Error())
		c.Status.Etcd = status
		return
	}
	status.ClusterID, status.MemberID = seen.Cluster, seen.Own
	for _, m := range seen.Members {
		one := bootstrapv1.EtcdMemberStatus{ID: m.ID, Name: m.Name, PeerURL: m.PeerURL, Type: bootstrapv1.EtcdVoter}
		if m.Learner {
			one.Type = bootstrapv1.EtcdLearner
		}
		status.Members = append(status.Members, one)
	}
	have := map[bootstrapv1.EtcdAlarmStatus]bool{}
	for _, a := range seen.Alarms {
		if one := (bootstrapv1.EtcdAlarmStatus{MemberID: a.Member, Type: a.Type}); !have[one] && a.Type != "" {
			have[one] = true
			status.Alarms = append(status.Alarms, one)
		}
	}
	c.Status.Etcd = status
}
