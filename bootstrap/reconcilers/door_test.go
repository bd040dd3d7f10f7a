// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
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
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
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

// TestFormatOfBootstrapData: the Secret says it in the words of Cluster API, and an infrastructure that would not run it gets none.
func TestFormatOfBootstrapData(t *testing.T) {
	for _, tc := range []struct {
		kind, format, says, begins, refused string
	}{
		{kind: "ForeignMachine", says: "cloud-config", begins: "#cloud-config\n"},
		{kind: "ForeignMachine", format: "CloudConfig", says: "cloud-config", begins: "#cloud-config\n"},
		{kind: "ForeignMachine", format: "Ignition", says: "ignition", begins: `{"ignition":{"version":"3.0.0"}`},
		{kind: "ByoMachine", format: "CloudConfig", says: "cloud-config", begins: "#cloud-config\n"},
		{kind: "ByoMachine", format: "Ignition", refused: "spec.format: the agents of ByoHosts run cloud-config alone"},
		{kind: "KubexmMachine", says: "cloud-config", begins: "#cloud-config\n"},
		{kind: "KubexmMachine", format: "Ignition", refused: "spec.format: hosts of KubexmMachines run no bootstrap data"},
	} {
		f := newForeigner(t)
		s := f.scope(func(c *bootstrapv1.KubexmConfig) { c.Spec.Format = bootstrapv1.BootstrapFormat(tc.format) })
		s.machine.Spec.InfrastructureRef.Kind = tc.kind
		s.adapter = infra.Of(s.machine, f.Client, f.Client)
		err := f.r.publish(t.Context(), s)
		if tc.refused != "" {
			secrets := &corev1.SecretList{}
			if err := f.List(t.Context(), secrets); err != nil || len(secrets.Items) > 0 {
				t.Errorf("%+v: it makes %d Secrets (%v)", tc, len(secrets.Items), err)
			}
			message := conditions.GetMessage(s.config, bootstrapv1.DataSecretAvailableCondition)
			if err == nil || !strings.HasPrefix(err.Error(), tc.refused) || message != err.Error() {
				t.Errorf("%+v: got %v, and the condition says %q", tc, err, message)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", tc, err)
			continue
		}
		made := f.secret("w1").Data
		if string(made["format"]) != tc.says || !strings.HasPrefix(string(made["value"]), tc.begins) {
			t.Errorf("%+v: it is %s, and begins with %.40q", tc, made["format"], made["value"])
		}
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
	t.Run("the Cluster's authority", func(t *testing.T) {
		f := newForeigner(t)
		by := func(name string) func(*bootstrapv1.KubexmConfig) {
			return func(c *bootstrapv1.KubexmConfig) {
				c.Name, c.Spec.Access.Credentials.UserCA.ValiditySeconds = name, 120
			}
		}
		s := f.scope(by("w1"))
		f.publish(s)
		s.config.Labels = map[string]string{clusterv1.ClusterNameLabel: "prod"}
		if err := f.Create(t.Context(), s.config); err != nil {
			t.Fatal(err)
		}
		lose(f, "prod-ssh-authority")
		if err := f.r.publish(t.Context(), f.scope(by("w2"))); err == nil || !strings.Contains(err.Error(), "prod-ssh-authority with the key of the authority") ||
			!strings.Contains(err.Error(), "the KubexmConfig w1") {
			t.Errorf("got %v", err)
		}
		// A host that lets the Cluster's key in knows nothing of the authority.
		if err := f.r.publish(t.Context(), f.scope(func(c *bootstrapv1.KubexmConfig) { c.Name = "w3" })); err != nil {
			t.Error(err)
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

// certificateOf is what a host with this door is logged in to with.
func (f *foreigner) certificateOf(s *scope) *cryptossh.Certificate {
	f.Helper()
	c, err := f.r.access(f.Context(), "fleet", "w1", infra.Host{Host: spec.Host{Name: "w1", Address: "10.0.0.5"}, Access: s.door.access})
	if err != nil {
		f.Fatal(err)
	}
	if len(c.Auth.Signers) != 1 || len(c.Auth.PrivateKeys) > 0 {
		f.Fatalf("it logs in with %+v", c.Auth)
	}
	return c.Auth.Signers[0].PublicKey().(*cryptossh.Certificate)
}

// TestDoorForCertificates: what the bootstrap data authorizes is the authority whose certificates we log in with, for the user alone.
func TestDoorForCertificates(t *testing.T) {
	by := func(name string, ca spec.UserCA) func(*bootstrapv1.KubexmConfig) {
		ca.SecretRef.Name = name
		return func(c *bootstrapv1.KubexmConfig) { c.Spec.Access.Credentials.UserCA = ca }
	}
	for name, tc := range map[string]struct {
		secret    string
		ca        spec.UserCA
		principal string
	}{
		"of somebody's authority":     {secret: "users", principal: "kubexm"},
		"for another name":            {secret: "users", ca: spec.UserCA{Principal: "kubexm@prod"}, principal: "kubexm@prod"},
		"of one that the Cluster has": {ca: spec.UserCA{ValiditySeconds: 120}, principal: "kubexm"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			if tc.secret != "" {
				private, err := ssh.NewUserKey("")
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Create(t.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: tc.secret}, Type: corev1.SecretTypeSSHAuth,
					Data: map[string][]byte{infra.KeyPrivateKey: private.Reveal()},
				}); err != nil {
					t.Fatal(err)
				}
			}
			s := f.scope(by(tc.secret, tc.ca))
			data := f.publish(s)
			if again := f.publish(f.scope(by(tc.secret, tc.ca))); again != data {
				t.Error("the second time, the bootstrap data is another")
			}
			_, line, _ := strings.Cut(data, "line='")
			line, _, _ = strings.Cut(line, "'")
			authority, _, options, _, err := cryptossh.ParseAuthorizedKey([]byte(line))
			want := []string{"cert-authority"}
			if tc.principal != "kubexm" {
				want = append(want, `principals="`+tc.principal+`"`)
			}
			if err != nil || !slices.Equal(options, want) {
				t.Fatalf("the user lets %q in (%v)", line, err)
			}
			certificate := f.certificateOf(s)
			if !bytes.Equal(certificate.SignatureKey.Marshal(), authority.Marshal()) {
				t.Error("we log in by another authority")
			}
			if !slices.Equal(certificate.ValidPrincipals, []string{tc.principal}) {
				t.Errorf("we log in for %v", certificate.ValidPrincipals)
			}
			for key, made := range map[string]bool{"prod-ssh": false, "prod-ssh-authority": tc.secret == ""} {
				if exists, err := f.r.secretExists(t.Context(), client.ObjectKey{Namespace: "fleet", Name: key}); err != nil || exists != made {
					t.Errorf("the Secret %s exists: %t (%v)", key, exists, err)
				}
			}
			if tc.secret == "" {
				if made := f.secret("prod-ssh-authority"); made.Type != corev1.SecretTypeSSHAuth || made.OwnerReferences[0].Name != "prod" ||
					strings.Contains(data, string(made.Data[infra.KeyPrivateKey])) {
					t.Errorf("the Cluster's authority: %s %v", made.Type, made.OwnerReferences)
				}
			}
		})
	}
	t.Run("of what is no authority", func(t *testing.T) {
		f := newForeigner(t)
		if err := f.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "users"}, Type: corev1.SecretTypeSSHAuth,
			Data: map[string][]byte{infra.KeyPrivateKey: []byte("secret nonsense")},
		}); err != nil {
			t.Fatal(err)
		}
		err := f.r.publish(t.Context(), f.scope(by("users", spec.UserCA{})))
		if err == nil || !strings.HasPrefix(err.Error(), "spec.access.credentials.userCA.secretRef: the Secret users: ssh-privatekey: ") ||
			strings.Contains(err.Error(), "nonsense") {
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
		if why := s.notReset(&hostCache{}, time.Now()); (why != nil) != tc.goes {
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
