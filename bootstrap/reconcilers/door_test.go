// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// foreigner is one Machine of an infrastructure that says nothing of how its hosts are reached.
type foreigner struct {
	*testing.T
	client.Client
	r *KubexmConfigReconciler
}

func newForeigner(t *testing.T) *foreigner {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&bootstrapv1.KubexmConfig{}).Build()
	return &foreigner{T: t, Client: c, r: &KubexmConfigReconciler{Client: c, Reader: c}}
}

// scope is a reconcile that begins.
func (f *foreigner) scope(change ...func(*bootstrapv1.KubexmConfig)) *scope {
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1", UID: "1"}}
	for _, one := range change {
		one(config)
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1"}}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "ForeignMachine", Name: "w1",
	}
	return &scope{
		config: config, key: client.ObjectKeyFromObject(config), machine: machine, adapter: infra.Of(machine, f.Client, f.Client),
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "2"}},
	}
}

func (f *foreigner) secret(name string) *corev1.Secret {
	f.Helper()
	s := &corev1.Secret{}
	if err := f.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, s); err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *foreigner) publish(s *scope) string {
	f.Helper()
	if err := f.r.publish(f.Context(), s); err != nil {
		f.Fatal(err)
	}
	return string(f.secret("w1").Data["value"])
}

// TestDoorIsMadeOnce: what hosts may already have is not made anew, and the host's key replaces the one that was readable on its way.
func TestDoorIsMadeOnce(t *testing.T) {
	f := newForeigner(t)
	s := f.scope()
	data := f.publish(s)
	for _, want := range []string{"#cloud-config\nruncmd:\n", "user='kubexm'", "BEGIN EC PRIVATE KEY", "sudo='yes'"} {
		if !strings.Contains(data, want) {
			t.Errorf("the bootstrap data has no %q:\n%s", want, data)
		}
	}
	if private := f.secret("prod-ssh"); private.Type != corev1.SecretTypeSSHAuth || private.OwnerReferences[0].Name != "prod" ||
		strings.Contains(data, string(private.Data[infra.KeyPrivateKey])) {
		t.Errorf("the Cluster's key: %s %v", private.Type, private.OwnerReferences)
	}
	if again := f.publish(f.scope()); again != data {
		t.Error("the second time, the bootstrap data is another")
	}
	born := f.secret("w1-host-key").Data[birthPublicKey]
	if got := s.door.access.HostKeys.Pinned; !slices.Equal(got, []string{string(born)}) || nonceOf(s) == "" {
		t.Errorf("%v is expected, want %s", got, born)
	}

	if err := f.r.keepHostKey(t.Context(), s, &enrolled{hostKey: "ecdsa-sha2-nistp521 AAAA"}); err != nil {
		t.Fatal(err)
	}
	nonce := nonceOf(s)
	s = f.scope()
	f.publish(s)
	if got := s.door.access.HostKeys.Pinned; !slices.Equal(got, []string{"ecdsa-sha2-nistp521 AAAA"}) {
		t.Errorf("once the host has a key of its own, %v is expected", got)
	}
	if err := f.r.keepHostKey(t.Context(), s, &enrolled{retired: true}); err != nil {
		t.Fatal(err)
	}
	s = f.scope()
	if data := f.publish(s); strings.Contains(data, "PRIVATE KEY") || nonceOf(s) != nonce {
		t.Errorf("the bootstrap data still has the birth key, or is another Machine's:\n%s", data)
	}
}

// TestLostKeysAreNotMadeAnew: a host that knows the ones that are lost would let nobody in, or would not be known.
func TestLostKeysAreNotMadeAnew(t *testing.T) {
	lose := func(f *foreigner, name string) {
		if err := f.Delete(f.Context(), f.secret(name)); err != nil {
			f.Fatal(err)
		}
	}
	t.Run("the host's, before it was enrolled", func(t *testing.T) {
		f := newForeigner(t)
		f.publish(f.scope())
		lose(f, "w1-host-key")
		if err := f.r.publish(t.Context(), f.scope()); err == nil || !strings.Contains(err.Error(), "w1-host-key") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the host's, after it was", func(t *testing.T) {
		f := newForeigner(t)
		s := f.scope()
		f.publish(s)
		lose(f, "w1-host-key")
		f.publish(f.scope(func(c *bootstrapv1.KubexmConfig) { c.Status.Host.HostKey = "ecdsa-sha2-nistp521 AAAA" }))
		if got := f.secret("w1-host-key").Data; string(got[hostPublicKey]) != "ecdsa-sha2-nistp521 AAAA" || len(got) != 1 {
			t.Errorf("the Secret has %d values, and the host's key %q", len(got), got[hostPublicKey])
		}
	})
	t.Run("the Cluster's", func(t *testing.T) {
		f := newForeigner(t)
		s := f.scope()
		f.publish(s)
		s.config.Labels = map[string]string{clusterv1.ClusterNameLabel: "prod"}
		if err := f.Create(t.Context(), s.config); err != nil { // its status is lost as well
			t.Fatal(err)
		}
		lose(f, "prod-ssh")
		for _, name := range []string{"w1", "w2"} {
			s := f.scope(func(c *bootstrapv1.KubexmConfig) { c.Name = name })
			if err := f.r.publish(t.Context(), s); err == nil || !strings.Contains(err.Error(), "prod-ssh") ||
				!strings.Contains(err.Error(), "the KubexmConfig w1") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("the Cluster's, where hosts let others in", func(t *testing.T) {
		f := newForeigner(t)
		own := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "w2", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		}}
		own.Spec.Access.Credentials.SecretRef.Name = "ssh"
		if err := f.Create(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		f.publish(f.scope())
	})
	t.Run("somebody else's Secret", func(t *testing.T) {
		f := newForeigner(t)
		if err := f.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1-host-key"}}); err != nil {
			t.Fatal(err)
		}
		if err := f.r.publish(t.Context(), f.scope()); err == nil || !strings.Contains(err.Error(), "is not this KubexmConfig's") {
			t.Errorf("got %v", err)
		}
	})
}

// TestMustEnroll is when the host is looked for, and when it is known.
func TestMustEnroll(t *testing.T) {
	status := bootstrapv1.HostStatus{Name: "w1", Address: "10.0.0.5", ObservedAddresses: []string{"10.0.0.5"}}
	away := func(c *bootstrapv1.KubexmConfig) {
		setFalse(c, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "")
	}
	one, two := []string{"10.0.0.5"}, []string{"10.0.0.5", "10.0.0.6"}
	pinned, declared := hostKeys{pinned: "p"}, hostKeys{areDeclared: true}
	for name, tc := range map[string]struct {
		keys       hostKeys
		candidates []string
		networks   []string // of hosts
		status     bootstrapv1.HostStatus
		change     func(*bootstrapv1.KubexmConfig)
		want       bool
	}{
		"it was never met":                     {keys: hostKeys{birthPublic: "b"}, candidates: one, want: true},
		"its birth key was not retired":        {keys: hostKeys{birth: secret.New("b"), pinned: "p"}, candidates: one, status: status, want: true},
		"it is known":                          {keys: pinned, candidates: two, status: status},
		"the status was lost":                  {keys: pinned, candidates: one, want: true},
		"its address is none any more":         {keys: pinned, candidates: []string{"10.0.0.7"}, status: status, want: true},
		"it is away, and may be elsewhere":     {keys: pinned, candidates: two, status: status, change: away, want: true},
		"it is away, and can be nowhere else":  {keys: pinned, candidates: one, status: status, change: away},
		"its key is declared, one address":     {keys: declared, candidates: one},
		"its key is declared, another network": {keys: declared, candidates: one, networks: []string{"10.8.0.0/16"}, want: true},
		"its key is declared, in its network":  {keys: declared, candidates: one, networks: []string{"10.0.0.0/16"}},
		"its key is declared, two addresses":   {keys: declared, candidates: two, want: true},
		"its key is declared, another address": {keys: declared, candidates: []string{"10.0.0.7"}, status: status, want: true},
		"its key is declared, and it is known": {keys: declared, candidates: two, status: status},
	} {
		s := newForeigner(t).scope()
		s.door, s.host, s.candidates = &doorway{keys: tc.keys}, &infra.Host{Host: spec.Host{Name: "w1", Address: one[0]}}, tc.candidates
		s.clusterConfig = &bootstrapv1.KubexmClusterConfig{}
		s.clusterConfig.Spec.Cluster.Network.HostCIDRs = tc.networks
		s.config.Status.Host = tc.status
		if tc.change != nil {
			tc.change(s.config)
		}
		if got := s.mustEnroll(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHostThatIsNotFound: one that was enrolled and does not answer is away; one that was not has not run its bootstrap data. What else
// goes wrong is none of both.
func TestHostThatIsNotFound(t *testing.T) {
	never, known := hostKeys{birthPublic: "b"}, hostKeys{birthPublic: "b", pinned: "p"}
	for name, tc := range map[string]struct {
		keys hostKeys
		kind host.Kind
		want string
	}{
		"nothing answers yet":         {never, host.KindUnreachable, bootstrapv1.WaitingForBootstrapDataReason},
		"another machine answers":     {never, host.KindHostKey, bootstrapv1.WaitingForBootstrapDataReason},
		"it lets nobody in yet":       {never, host.KindAuth, bootstrapv1.WaitingForBootstrapDataReason},
		"no key is made there":        {never, host.KindCommand, bootstrapv1.EnrollmentFailedReason},
		"its user may not do much":    {never, host.KindPrivilege, bootstrapv1.SudoFailedReason},
		"it is away":                  {known, host.KindUnreachable, bootstrapv1.UnreachableReason},
		"another one is in its place": {known, host.KindHostKey, bootstrapv1.HostKeyMismatchReason},
	} {
		f := newForeigner(t)
		s := f.scope()
		s.door = &doorway{keys: tc.keys}
		failed := &host.Error{Kind: tc.kind, Host: "w1", Message: "why"}
		s.job = &hostrun.State[outcome]{What: enrolling, Started: time.Now(), Result: outcome{err: failed}, Ended: time.Now()}
		if _, err := f.r.settleEnroll(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got := conditions.Get(s.config, bootstrapv1.HostReachableCondition)
		if got.Status != metav1.ConditionFalse || got.Reason != tc.want || !strings.Contains(got.Message, "why") {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

// TestMachineLeavesBeforeItIsEnrolled: nobody waits for a host that was never entered, and one whose keys are lost is not taken for one.
func TestMachineLeavesBeforeItIsEnrolled(t *testing.T) {
	for name, tc := range map[string]struct {
		keys hostKeys
		goes bool
	}{
		"it was not entered":         {hostKeys{birthPublic: "b", birth: secret.New("b")}, true},
		"it was":                     {hostKeys{birthPublic: "b", pinned: "p"}, false},
		"its keys are lost":          {hostKeys{}, false},
		"somebody declares its keys": {hostKeys{areDeclared: true}, false},
	} {
		s := newForeigner(t).scope()
		now := metav1.Now()
		s.machine.DeletionTimestamp = &now
		s.door, s.host = &doorway{keys: tc.keys}, &infra.Host{Host: spec.Host{Name: "w1"}}
		if why := s.notReset(time.Now()); (why != "") != tc.goes {
			t.Errorf("%s: it is not reset because %q", name, why)
		}
	}
	for _, o := range (&KubexmConfigReconciler{}).departures() {
		if o.name == bootstrapv1.EnrollOperation {
			t.Error("a host that leaves is enrolled")
		}
	}
}

// TestNodeAddresses: what an infrastructure says of a host's addresses counts as far as the host's interfaces have them.
func TestNodeAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		said, observed []string
		reached        string
		want           []string
	}{
		"nothing was observed yet": {said: []string{"10.0.0.5"}, reached: "10.0.0.5", want: []string{"10.0.0.5"}},
		"some are of an inspection before": {
			said: []string{"10.9.0.1", "10.0.0.5", "fd00::5"}, observed: []string{"fd00::5", "10.0.0.5"}, want: []string{"10.0.0.5", "fd00::5"},
		},
		"all are, and one was where it is": {
			said: []string{"10.9.0.1"}, observed: []string{"10.0.0.5", "10.0.1.5"}, reached: "10.0.1.5", want: []string{"10.0.1.5"},
		},
		"it is reached at a translated one": {
			said: []string{"203.0.113.5"}, observed: []string{"10.0.0.5"}, reached: "203.0.113.5", want: []string{"10.0.0.5"},
		},
	} {
		if got := nodeAddresses(tc.said, tc.observed, tc.reached); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// refusing is an infrastructure that we may not read.
type refusing struct{ adapter }

func (*refusing) Host(context.Context, infra.Subject) (*infra.Host, error) {
	return nil, fmt.Errorf("get the BareMetalHost fleet/m1: %w", apierrors.NewForbidden(schema.GroupResource{Group: "metal3.io", Resource: "baremetalhosts"}, "m1", nil))
}

// TestInfrastructureMayNotBeRead: what is missing is on the object, unless the host was reached before.
func TestInfrastructureMayNotBeRead(t *testing.T) {
	f := newForeigner(t)
	for _, tc := range []struct{ before, want metav1.ConditionStatus }{
		{metav1.ConditionUnknown, metav1.ConditionFalse}, {metav1.ConditionTrue, metav1.ConditionTrue},
	} {
		s := f.scope()
		s.adapter = &refusing{}
		set(s.config, bootstrapv1.HostReachableCondition, tc.before, "Before", "")
		if goOn, _, err := f.r.resolveHost(t.Context(), s); goOn || !apierrors.IsForbidden(err) {
			t.Errorf("it goes on is %v, after %v", goOn, err)
		}
		now := conditions.Get(s.config, bootstrapv1.HostReachableCondition)
		if now.Status != tc.want {
			t.Errorf("it is %+v", now)
		}
		if tc.want == metav1.ConditionFalse && (now.Reason != bootstrapv1.WaitingForHostReason ||
			!strings.Contains(now.Message, `baremetalhosts.metal3.io "m1" is forbidden`) ||
			!strings.Contains(now.Message, "add a ClusterRole that lets the manager do so")) {
			t.Errorf("it says %s: %s", now.Reason, now.Message)
		}
	}
}
