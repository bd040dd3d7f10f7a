// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	memoryhost "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// withAuthority reads a management cluster in which the Cluster has its certificate authority.
func withAuthority(t *testing.T, cluster *clusterv1.Cluster) client.Reader {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name + "-ca"},
		Data:       map[string][]byte{"tls.crt": ca.Cert, "tls.key": ca.Key.Reveal()},
	}).Build()
}

// stranger is a cluster that has m, with one change on it.
func stranger(t *testing.T, m *memoryhost.Machine) host.Owner {
	t.Helper()
	o := host.Owner{Cluster: "team-b/other", Authority: "sha256:" + strings.Repeat("b", 64), Role: "Worker", Host: "w1"}
	s, err := m.Connect().Begin(t.Context(), host.Run{ID: "theirs", Holder: "them", Ownership: host.Ownership{Owner: o}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), host.Act{Node: "w1/os/files/theirs", Changes: []host.Change{host.Directory{Path: "/srv/theirs", Mode: 0o755}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return o
}

// adapter records in what state the host was left.
type adapter struct {
	infra.Adapter
	left *infra.ResetResult
}

func (*adapter) Reset() spec.ResetPolicy { return spec.ResetAlways }

func (a *adapter) ReportReachability(context.Context, infra.Subject, infra.Reachability) error {
	return nil
}

func (a *adapter) ReportReset(_ context.Context, _ infra.Subject, c infra.ResetResult) error {
	a.left = &c
	return nil
}

// strangersHost is a scope whose host is another cluster's, and a job on it.
func strangersHost(t *testing.T) (*KubexmConfigReconciler, *scope, *memoryhost.Machine, func() *job) {
	t.Helper()
	m, s := memoryhost.New("w1"), testScope()
	stranger(t, m)
	r := &KubexmConfigReconciler{Holder: "test", Reader: withAuthority(t, s.cluster), Events: events.NewFakeRecorder(10)}
	p := testPlan(t)
	return r, s, m, func() *job {
		j := &job{
			target:  spec.Target{ClusterName: "prod", Host: spec.Host{Name: "w1", Role: spec.RoleWorker, Address: "10.1.0.2"}},
			options: r.optionsFor(s), preflight: true,
			planner: func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) { return p, nil },
			bundle:  func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
		}
		j.options.Dial = func(context.Context, string) (host.Host, error) { return m.Connect(), nil }
		return j
	}
}

var nobody = event.ReaderFunc(func(event.Event) {})

// entries is how much of the other cluster's is left on the machine.
func entries(t *testing.T, m *memoryhost.Machine) int {
	t.Helper()
	f, err := m.Connect().Observe(t.Context(), host.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return f.UndoEntries
}

// TestHostOwnedByOther: a host that is another cluster's is not converged, whatever its journal says, until a person adopts it.
func TestHostOwnedByOther(t *testing.T) {
	r, s, m, newJob := strangersHost(t)
	state := func(out outcome) *hostrun.State[outcome] {
		return &hostrun.State[outcome]{What: converging, Started: time.Now(), Ended: time.Now(), Result: out}
	}
	for _, j := range []*job{newJob(), func() *job { j := newJob(); j.preflight, j.remembered = false, &m.System; return j }()} {
		out := j.converge(t.Context(), nobody)
		if host.KindOf(out.err) != host.KindForeign || out.report.Total().Changed != 0 || entries(t, m) != 1 {
			t.Fatalf("%v, %+v", out.err, out.report.Total())
		}
		hostCache := hostCache{}
		hostCache.recordOutcome(&out, time.Now())
		if !hostCache.foreign {
			t.Error("that the host is another's is not remembered")
		}
		if err := showRun(s.config, state(out), &hostCache); err != nil {
			t.Fatal(err)
		}
		c := conditions.Get(s.config, bootstrapv1.HostConvergedCondition)
		if c.Status != metav1.ConditionFalse || c.Reason != bootstrapv1.HostOwnedByOtherReason {
			t.Errorf("%+v", c)
		}
		for _, text := range []string{"team-b/other", "reset", "kubectl annotate kubexmconfig -n fleet prod-w1 " + bootstrapv1.AdoptHostAnnotation} {
			if !strings.Contains(c.Message, text) {
				t.Errorf("the condition does not say %q:\n%s", text, c.Message)
			}
		}
		if !conditions.IsTrue(s.config, bootstrapv1.HostReachableCondition) {
			t.Error("the host is said to be out of reach")
		}
	}

	s.config.Annotations = map[string]string{bootstrapv1.AdoptHostAnnotation: "team-b/other"}
	out := newJob().converge(t.Context(), nobody)
	if out.err != nil || out.report.Total().Changed != 1 || out.checked {
		t.Fatalf("adopted: %v, %+v, preflight %v", out.err, out.report.Total(), out.checked)
	}
	r.tellAdopted(s, &out.report, converging)
	if _, left := s.config.Annotations[bootstrapv1.AdoptHostAnnotation]; left {
		t.Error("the annotation stays")
	}
	recorder, _ := r.Events.(*events.FakeRecorder)
	if told := <-recorder.Events; !strings.Contains(told, "HostAdopted") || !strings.Contains(told, "team-b/other") {
		t.Errorf("the event is %q", told)
	}
	if out := newJob().converge(t.Context(), nobody); out.err != nil || out.report.Total().Changed != 0 {
		t.Errorf("after the adoption: %v, %+v", out.err, out.report.Total())
	}
}

// TestResetOfForeignHost: who deletes a Machine whose host is another cluster's by now learns so, and the host stays as it is.
func TestResetOfForeignHost(t *testing.T) {
	r, s, m, newJob := strangersHost(t)
	left := &adapter{}
	s.adapter = left
	j := newJob()
	keptLogs := false
	j.keep = func(context.Context, host.Host) kept { keptLogs = true; return kept{} }
	s.job = &hostrun.State[outcome]{What: resetting, Started: time.Now(), Result: j.reset(t.Context(), nobody), Ended: time.Now()}
	result, err := r.settleReset(t.Context(), s)
	if err != nil || result.RequeueAfter != lastBackoff {
		t.Errorf("%+v, %v", result, err)
	}
	if entries(t, m) != 1 || keptLogs {
		t.Errorf("%d entries, logs kept %v", entries(t, m), keptLogs)
	}
	if left.left == nil || host.KindOf(left.left.Err) != host.KindForeign {
		t.Errorf("the infrastructure was told %+v", left.left)
	}
	c := conditions.Get(s.config, bootstrapv1.HostResetCondition)
	if c == nil || c.Reason != bootstrapv1.HostOwnedByOtherReason || !strings.Contains(c.Message, "team-b/other") ||
		!strings.Contains(c.Message, bootstrapv1.SkipHostResetAnnotation) || !strings.Contains(c.Message, bootstrapv1.AdoptHostAnnotation) {
		t.Errorf("%+v", c)
	}
	summarise(s.config)
	if ready := conditions.Get(s.config, bootstrapv1.HostReadyCondition); ready.Reason != bootstrapv1.HostOwnedByOtherReason {
		t.Errorf("the summary is %+v", ready)
	}
	remembered := r.cached(s.config.UID)
	if d := remembered.decideReset("", time.Now()); d.act != rest {
		t.Errorf("it is tried again at once: %+v", d)
	}
	if d := remembered.decideReset("team-b/other", time.Now()); d.act != converges {
		t.Errorf("an adoption waits: %+v", d)
	}
}

// TestNoAuthority: without the cluster's authority, nobody can tell whose a host is, so it is not touched.
func TestNoAuthority(t *testing.T) {
	r, _, m, newJob := strangersHost(t)
	r.Reader = fake.NewClientBuilder().Build()
	exchanges := m.Stats().Exchanges
	for _, out := range []outcome{newJob().converge(t.Context(), nobody), newJob().reset(t.Context(), nobody)} {
		if out.err == nil || !strings.Contains(out.err.Error(), "prod-ca") {
			t.Errorf("%v", out.err)
		}
	}
	if m.Stats().Exchanges != exchanges {
		t.Error("the host was asked")
	}
}
