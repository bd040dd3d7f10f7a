// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// asking is what the job is called that asks etcd alone: it plans nothing, so that it says what etcd says of a host that waits or fails,
// too.
const asking = "AskEtcd"

// askLimit is how long it may take.
const askLimit = time.Minute

// hasMember reports whether a host is to have a member of etcd.
func hasMember(t *spec.Target) bool {
	if t.Cluster.Etcd.IsStacked() {
		return t.Host.Role == spec.RoleControlPlane
	}
	return t.Host.Role == spec.RoleEtcd && t.Cluster.Etcd.Type != spec.EtcdExternal
}

// withoutStrangers takes from the target of a host without a member which members are gone: that is nothing to run for there.
func withoutStrangers(t *spec.Target) {
	if !hasMember(t) {
		t.Cluster.Etcd.GoneMembers = nil
	}
}

// etcdQuery asks a host that is to have a member of etcd, and others nothing.
func etcdQuery(t *spec.Target) host.Query {
	if !hasMember(t) {
		return host.Query{}
	}
	return quorum.Query(t.Host.Name, t.Host.NodeAddress())
}

// asksEtcd asks the etcd on the host if somebody wants to know it as it is now, and reports whether it does.
func (r *Config) asksEtcd(s *scope, j *job) bool {
	asked, query := s.config.Asked(bootstrapv1.AskEtcdAnnotation), etcdQuery(&j.target)
	m := r.recall(s.config.UID)
	if query.Empty() || !asked.After(s.config.Status.Etcd.ObservedTime.Time) || !asked.After(m.askedEtcd) {
		return false
	}
	m.askedEtcd = asked
	r.remember(s.config.UID, m)
	return r.Runner.Start(s.key, hostrun.Job[outcome]{What: asking, Urgent: true, Lost: lost(j.input), Do: func(ctx context.Context, tell event.Reader) outcome {
		within, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		return j.ask(within, query, tell)
	}})
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

// takesAnswer takes in what etcd has said. That a host could not be asked is for the look to say that follows at once.
func (r *Config) takesAnswer(s *scope) (bool, ctrl.Result, error) {
	if m := r.recall(s.config.UID); s.job.Result.err != nil && m.converged && !interrupted(s.job.Result.err) {
		m.ended = time.Time{}
		r.remember(s.config.UID, m)
	}
	s.ended = true
	return false, ctrl.Result{RequeueAfter: time.Millisecond}, nil
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
