// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// beats are heartbeats of hosts that are made as they are dialled.
type beats struct {
	*Heartbeats
	client client.WithWatch

	mu sync.Mutex
	// dialed are the hosts that were, and fails is how some refuse. during happens meanwhile.
	dialed []string
	fails  map[string]error
	during func()
}

func beatsOf(t *testing.T, hosts ...*infrav1.KubexmHost) *beats {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), infrav1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	all := []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "ssh"}, Type: corev1.SecretTypeSSHAuth,
		Data: map[string][]byte{infra.KeyPrivateKey: []byte("key")},
	}}
	for _, h := range hosts {
		all = append(all, h)
	}
	b := &beats{fails: map[string]error{}}
	b.client = fakeclient.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&infrav1.KubexmHost{}).WithObjects(all...).Build()
	b.Heartbeats = &Heartbeats{
		Client: b.client, Reader: b.client, Every: 10 * time.Minute, Holder: "test", Dial: b.dial,
		places: make(chan struct{}, heartbeatsAtOnce), dialled: map[types.UID]bool{},
	}
	return b
}

func (b *beats) dial(_ context.Context, c ssh.Config) (host.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dialed = append(b.dialed, c.Name)
	if b.during != nil {
		b.during()
	}
	if err := b.fails[c.Name]; err != nil {
		return nil, err
	}
	m := fake.New(c.Name)
	m.System.CPUs, m.System.MemoryBytes = 8, 32<<30
	return m.Connect(), nil
}

// look is one look whose time has come, with the end of all that it began. It returns who was dialled.
func (b *beats) look(t *testing.T) []string {
	t.Helper()
	b.dialed = nil
	if err := b.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.going.Wait()
	slices.Sort(b.dialed)
	return b.dialed
}

func (b *beats) read(t *testing.T, name string) *infrav1.KubexmHost {
	t.Helper()
	h := &infrav1.KubexmHost{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, h); err != nil {
		t.Fatal(err)
	}
	return h
}

func poolHost(name string, change ...func(*infrav1.KubexmHost)) *infrav1.KubexmHost {
	h := &infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name), Generation: 1}}
	h.Spec = infrav1.KubexmHostSpec{Address: "10.0.0.1", Access: spec.Access{
		User: "root", Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
	}}
	for _, c := range change {
		c(h)
	}
	return h
}

// dialledAt is a host that was dialled some time ago, and has answered or has not.
func dialledAt(ago time.Duration, answered metav1.ConditionStatus) func(*infrav1.KubexmHost) {
	return func(h *infrav1.KubexmHost) {
		h.Status.LastHeartbeatTime = metav1.NewTime(time.Now().Add(-ago))
		conditions.Set(h, metav1.Condition{
			Type: infrav1.ReachableCondition, Status: answered, Reason: "Said", ObservedGeneration: h.Generation,
		})
	}
}

// TestHeartbeatsAreDue: nobody is dialled whom somebody has or works on, nor twice in an interval.
func TestHeartbeatsAreDue(t *testing.T) {
	claimed := func(h *infrav1.KubexmHost) { h.Spec.ClaimRef.Name = "m" }
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	b := beatsOf(t,
		poolHost("new"),
		poolHost("claimed", claimed),
		poolHost("maintained", func(h *infrav1.KubexmHost) { h.Spec.Maintenance.Message = "new disks" }),
		poolHost("paused", func(h *infrav1.KubexmHost) { h.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }),
		poolHost("quarantined", func(h *infrav1.KubexmHost) { h.Spec.Quarantine.Reason = "NotReset" }),
		poolHost("lately", dialledAt(8*time.Minute, yes)),
		poolHost("long-ago", dialledAt(12*time.Minute, yes)),
		poolHost("silent-lately", dialledAt(4*time.Minute, no)),
		poolHost("silent", dialledAt(6*time.Minute, no)),
		poolHost("declared-anew", dialledAt(time.Minute, yes), func(h *infrav1.KubexmHost) { h.Generation = 2 }),
		poolHost("released", func(h *infrav1.KubexmHost) { // with what was seen while somebody had it
			dialledAt(time.Minute, yes)(h)
			h.Status.LastHeartbeatTime = metav1.Time{}
		}),
	)
	if got, want := b.look(t), []string{"declared-anew", "long-ago", "new", "quarantined", "released", "silent"}; !slices.Equal(got, want) {
		t.Errorf("dialled %v, want %v", got, want)
	}
	if got := b.look(t); len(got) > 0 {
		t.Errorf("dialled again: %v", got)
	}
	b.WatchFilter = "blue"
	b.Every = time.Nanosecond
	if got := b.look(t); len(got) > 0 {
		t.Errorf("dialled another manager's: %v", got)
	}
}

// TestHeartbeat: what comes of it is in the status, and the host's size with it.
func TestHeartbeat(t *testing.T) {
	nobody := func(h *infrav1.KubexmHost) { h.Spec.Access.Credentials.SecretRef.Name = "gone" }
	b := beatsOf(t, poolHost("good"), poolHost("down"), poolHost("other"), poolHost("closed", nobody), poolHost("slow"))
	b.fails["down"] = &host.Error{Kind: host.KindUnreachable, Host: "down", Message: "connection refused"}
	b.fails["other"] = &host.Error{Kind: host.KindHostKey, Host: "other", Message: "the host key is another"}
	b.fails["slow"] = context.DeadlineExceeded
	b.look(t)
	for name, want := range map[string]string{
		"good": infrav1.ReachedReason, "down": bootstrapv1.UnreachableReason, "other": bootstrapv1.HostKeyMismatchReason,
		"closed": bootstrapv1.CredentialsNotAvailableReason, "slow": bootstrapv1.NotAnsweringReason,
	} {
		h := b.read(t, name)
		reachable := conditions.Get(h, infrav1.ReachableCondition)
		if reachable == nil || reachable.Reason != want || (reachable.Status == metav1.ConditionTrue) != (name == "good") {
			t.Errorf("%s: %+v, want %s", name, reachable, want)
		}
		if h.Status.LastHeartbeatTime.IsZero() {
			t.Errorf("%s: it is not known when it was dialled", name)
		}
	}
	if c := b.read(t, "good").CapacityOf(); c.CPUs != 8 || c.Memory.String() != "32Gi" {
		t.Errorf("the host is of %+v", c)
	}
	if message := conditions.GetMessage(b.read(t, "down"), infrav1.ReachableCondition); !strings.Contains(message, "connection refused") {
		t.Errorf("it says %q", message)
	}
}

// TestHeartbeatOfAnother: what was dialled is not what the host is any more, and nothing is said of that.
func TestHeartbeatOfAnother(t *testing.T) {
	for name, change := range map[string]func(*infrav1.KubexmHost){
		"claimed meanwhile":       func(h *infrav1.KubexmHost) { h.Spec.ClaimRef.Name = "m" },
		"declared anew meanwhile": func(h *infrav1.KubexmHost) { h.Spec.Address, h.Generation = "10.0.0.2", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			b := beatsOf(t, poolHost("a"))
			b.fails["a"] = &host.Error{Kind: host.KindUnreachable, Host: "a", Message: "connection refused"}
			b.during = func() {
				h := b.read(t, "a")
				change(h)
				if err := b.client.Update(t.Context(), h); err != nil {
					t.Error(err)
				}
			}
			if got := b.look(t); len(got) != 1 {
				t.Fatalf("dialled %v", got)
			}
			if h := b.read(t, "a"); len(h.Status.Conditions) > 0 || !h.Status.LastHeartbeatTime.IsZero() {
				t.Errorf("the status says %+v", h.Status)
			}
		})
	}
}

// TestHeartbeatWithoutCluster: a management cluster that does not say how a host is dialled says nothing of the host.
func TestHeartbeatWithoutCluster(t *testing.T) {
	b := beatsOf(t, poolHost("a"))
	b.Reader = interceptor.NewClient(b.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				return apierrors.NewInternalError(errors.New("etcd is away"))
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	b.look(t)
	if h := b.read(t, "a"); len(h.Status.Conditions) > 0 {
		t.Errorf("the status says %+v", h.Status)
	}
}

// TestHeartbeatsAreBounded: of many hosts, some are dialled at once, and the others next.
func TestHeartbeatsAreBounded(t *testing.T) {
	var hosts []*infrav1.KubexmHost
	for i := range heartbeatsAtOnce + 5 {
		hosts = append(hosts, poolHost(fmt.Sprintf("h%02d", i)))
	}
	b := beatsOf(t, hosts...)
	b.mu.Lock() // none gets through
	if err := b.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if begun := len(b.places); begun != heartbeatsAtOnce {
		t.Errorf("%d at once", begun)
	}
	if err := b.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mu.Unlock()
	b.going.Wait()
	if len(b.dialed) != heartbeatsAtOnce {
		t.Errorf("dialled %v", b.dialed)
	}
	if got := b.look(t); len(got) != 5 {
		t.Errorf("dialled %v next", got)
	}
}
