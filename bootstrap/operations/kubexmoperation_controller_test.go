// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// plane is an API with a Cluster of two hosts, and an operation on it.
type plane struct {
	*testing.T
	api client.Client
	r   *KubexmOperationReconciler
}

func newPlane(t *testing.T, spec bootstrapv1.KubexmOperationSpec) *plane {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := bootstrapv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(name string) *bootstrapv1.KubexmConfig {
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		}}
		c.Status.Host.Name = "host-" + name
		return c
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "1"}}
	o := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "op", UID: "2"}, Spec: spec}
	p := &plane{T: t, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, o, of("a"), of("b")).
		WithStatusSubresource(o, of("a")).Build()}
	p.restart()
	return p
}

// restart has another process go on.
func (p *plane) restart() {
	p.r = &KubexmOperationReconciler{Client: p.api, Reader: p.api, Events: events.NewFakeRecorder(99), Jobs: NewJobs(p.Context(), 0)}
}

// reconcile does so often what is to be done at once.
func (p *plane) reconcile() *bootstrapv1.KubexmOperation {
	p.Helper()
	key := client.ObjectKey{Namespace: "fleet", Name: "op"}
	for range 9 {
		result, err := p.r.Reconcile(p.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			p.Fatal(err)
		}
		if result.RequeueAfter >= time.Second {
			break
		}
	}
	o := &bootstrapv1.KubexmOperation{}
	if err := p.api.Get(p.Context(), key, o); err != nil && !apierrors.IsNotFound(err) {
		p.Fatal(err)
	}
	return o
}

func (p *plane) config(name string) *bootstrapv1.KubexmConfig {
	p.Helper()
	c := &bootstrapv1.KubexmConfig{}
	if err := p.api.Get(p.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, c); err != nil {
		p.Fatal(err)
	}
	return c
}

// answers has a host end what it was asked for.
func (p *plane) answers(name, annotation string, kind bootstrapv1.OperationType, outcome bootstrapv1.RunOutcome) {
	p.Helper()
	c := p.config(name)
	asked := c.Asked(annotation)
	if asked.IsZero() {
		p.Fatalf("%s was not asked: %v", name, c.Annotations)
	}
	c.Status.SetOperation(bootstrapv1.OperationStatus{
		Type: kind, RequestTime: metav1.NewTime(asked), EndTime: metav1.Now(), Outcome: outcome, Message: "said",
	})
	if err := p.api.Status().Update(p.Context(), c); err != nil {
		p.Fatal(err)
	}
}

func cluster(kind bootstrapv1.KubexmOperationType) bootstrapv1.KubexmOperationSpec {
	return bootstrapv1.KubexmOperationSpec{Type: kind, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"}}
}

func phases(o *bootstrapv1.KubexmOperation) string {
	var all []string
	for _, h := range o.Status.Hosts {
		all = append(all, h.Name+" "+string(h.Phase))
	}
	return strings.Join(all, ", ")
}

// TestReconcile: hosts are asked and their results kept, by whichever process, and nothing is done again when a status is lost.
func TestReconcile(t *testing.T) {
	p := newPlane(t, cluster(bootstrapv1.CheckDriftType))
	o := p.reconcile()
	if got := phases(o); got != "host-a Running, host-b Running" || o.Status.Summary != "0/2" || o.Labels[clusterv1.ClusterNameLabel] != "prod" ||
		len(o.OwnerReferences) != 1 || o.OwnerReferences[0].UID != "1" {
		t.Fatalf("%s %+v", got, o)
	}
	before := p.config("a").ResourceVersion
	p.answers("b", bootstrapv1.CheckDriftAnnotation, bootstrapv1.CheckDriftOperation, bootstrapv1.RunSucceeded)

	// A move takes the status away.
	o.Status = bootstrapv1.KubexmOperationStatus{}
	if err := p.api.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	p.restart()
	if o = p.reconcile(); phases(o) != "host-a Running, host-b Succeeded" || o.Status.Summary != "1/2" {
		t.Errorf("%s %+v", phases(o), o.Status)
	}
	if p.config("a").ResourceVersion != before {
		t.Error("a host was asked again")
	}
	p.answers("a", bootstrapv1.CheckDriftAnnotation, bootstrapv1.CheckDriftOperation, bootstrapv1.RunFailed)
	o = p.reconcile()
	said := conditions.Get(o, bootstrapv1.SucceededCondition)
	if phases(o) != "host-a Failed, host-b Succeeded" || said.Status != metav1.ConditionFalse || !strings.Contains(said.Message, "host-a failed") ||
		o.Status.CompletionTime.IsZero() || !strings.HasSuffix(o.Annotations[bootstrapv1.OperationCompletedAnnotation], " Failed") {
		t.Errorf("%s %+v", phases(o), o)
	}

	o.Status = bootstrapv1.KubexmOperationStatus{}
	if err := p.api.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o = p.reconcile()
	if said := conditions.Get(o, bootstrapv1.SucceededCondition); said == nil ||
		said.Status != metav1.ConditionFalse || len(o.Status.Hosts) > 0 {
		t.Errorf("it has ended, and says %+v", o.Status)
	}
}

// TestReconcileBeginsOnce: who is killed between what is written of the beginning leaves nothing that is in the way of the next.
func TestReconcileBeginsOnce(t *testing.T) {
	p := newPlane(t, cluster(bootstrapv1.CheckDriftType))
	o := p.reconcile()
	delete(o.Annotations, bootstrapv1.OperationStartedAnnotation)
	if err := p.api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o = p.reconcile(); len(o.Status.Hosts) != 2 || o.Annotations[bootstrapv1.OperationStartedAnnotation] == "" {
		t.Errorf("%s", phases(o))
	}
}

// TestReconcileOneAtATime: the next is asked when the one before has ended, and none after a failure.
func TestReconcileOneAtATime(t *testing.T) {
	p := newPlane(t, cluster(bootstrapv1.RebootType))
	if o := p.reconcile(); phases(o) != "host-a Running, host-b Pending" {
		t.Fatal(phases(o))
	}
	p.answers("a", bootstrapv1.RebootAnnotation, bootstrapv1.RebootOperation, bootstrapv1.RunFailed)
	if o := p.reconcile(); phases(o) != "host-a Failed, host-b Skipped" {
		t.Error(phases(o))
	}
	if !p.config("b").Asked(bootstrapv1.RebootAnnotation).IsZero() {
		t.Error("the other was asked all the same")
	}
}

// TestReconcileEnds: an operation without hosts waits for them, one that is paused does nothing, and one that has ended goes in its time.
func TestReconcileEnds(t *testing.T) {
	none := cluster(bootstrapv1.RepairType)
	none.Target.Name = "dev"
	o := newPlane(t, none).reconcile()
	if got := conditions.GetReason(o, bootstrapv1.SucceededCondition); got != bootstrapv1.TargetNotFoundReason {
		t.Errorf("it says %s", got)
	}

	p := newPlane(t, cluster(bootstrapv1.RepairType))
	paused := &clusterv1.Cluster{}
	if err := p.api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "prod"}, paused); err != nil {
		t.Fatal(err)
	}
	paused.Spec.Paused = ptr.To(true)
	if err := p.api.Update(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	if o = p.reconcile(); len(o.Status.Hosts) > 0 || !conditions.IsTrue(o, clusterv1.PausedCondition) {
		t.Errorf("it is paused, and says %+v", o.Status)
	}

	brief := cluster(bootstrapv1.CollectLogsType)
	brief.TTLSecondsAfterFinished = ptr.To[int32](0)
	p = newPlane(t, brief)
	p.reconcile()
	for _, name := range []string{"a", "b"} {
		p.answers(name, bootstrapv1.CollectLogsAnnotation, bootstrapv1.CollectLogsOperation, bootstrapv1.RunSucceeded)
	}
	if o = p.reconcile(); o.Name != "" {
		t.Errorf("it is there still: %+v", o)
	}
}

// TestReconcileHostOfSeveralClusters: hosts of several Clusters may have one name. Nothing is done with any before it is said which is
// meant, whichever of the Clusters is paused.
func TestReconcileHostOfSeveralClusters(t *testing.T) {
	p := newPlane(t, bootstrapv1.KubexmOperationSpec{
		Type: bootstrapv1.RebootType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.HostTarget, Name: "host-a"},
	})
	theirs := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "0", Labels: map[string]string{clusterv1.ClusterNameLabel: "dev"},
	}}
	theirs.Spec.HostRef.Name = "host-a"
	dev := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "dev", UID: "3"}}
	dev.Spec.Paused = ptr.To(true)
	for _, object := range []client.Object{theirs, dev} {
		if err := p.api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	o := p.reconcile()
	said := conditions.Get(o, bootstrapv1.SucceededCondition)
	if said == nil || said.Reason != bootstrapv1.OperationWaitingReason ||
		!strings.Contains(said.Message, "dev, prod; set the label cluster.x-k8s.io/cluster-name") ||
		len(o.Status.Hosts) > 0 || len(o.OwnerReferences) > 0 {
		t.Fatalf("it says %+v, %s", said, phases(o))
	}
	o.Labels = map[string]string{clusterv1.ClusterNameLabel: "prod"}
	if err := p.api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o = p.reconcile(); phases(o) != "host-a Running" || o.OwnerReferences[0].UID != "1" ||
		p.config("a").Asked(bootstrapv1.RebootAnnotation).IsZero() {
		t.Errorf("%s %+v", phases(o), o)
	}
	if !p.config("0").Asked(bootstrapv1.RebootAnnotation).IsZero() {
		t.Error("the host of the other Cluster was asked, too")
	}
}
