// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestResetIsRecorded: what the cluster says of resets is on the KubexmConfig while there is a KubexmClusterConfig, as it says it now, and
// is not written again while it says the same; without a KubexmClusterConfig it stays.
func TestResetIsRecorded(t *testing.T) {
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "e1", UID: "1", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		Finalizers: []string{bootstrapv1.ConfigFinalizer},
	}}
	config.Spec.HostRef = bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}
	shared := &bootstrapv1.KubexmClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	written := 0
	api := clientfake.NewClientBuilder().WithScheme(newForeigner(t).Scheme()).WithStatusSubresource(config).
		WithObjects(config, shared, cluster).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			written++
			return c.Patch(ctx, o, p, options...)
		},
	}).Build()
	r := &KubexmConfigReconciler{
		Client: api, Reader: api, Runner: NewRunner(t.Context(), 1, time.Second), Events: events.NewFakeRecorder(20),
		Clock: clock.RealClock{},
	}
	says := func(want string, writes int) {
		t.Helper()
		written = 0
		for range 3 {
			// There is no such host here, which comes after.
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
			t.Fatal(err)
		}
		if got := config.Annotations[bootstrapv1.ClusterResetAnnotation]; got != want || written != writes {
			t.Errorf("recorded is %q after %d writes, want %q after %d", got, written, want, writes)
		}
	}
	declares := func(reset spec.Reset) {
		t.Helper()
		shared.Spec.Cluster.Reset = reset
		if err := api.Update(t.Context(), shared); err != nil {
			t.Fatal(err)
		}
	}
	says("", 0)
	declares(spec.Reset{Policy: spec.ResetWhenReachable})
	says(`{"policy":"WhenReachable"}`, 1)
	declares(spec.Reset{})
	says("", 1)
	declares(spec.Reset{Policy: spec.ResetNever, TimeoutSeconds: ptr.To[int32](900)})
	says(`{"policy":"Never","timeoutSeconds":900}`, 1)
	if err := api.Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	says(`{"policy":"Never","timeoutSeconds":900}`, 0)
}

// TestNeverResetWithoutAClusterConfig: a deletion that takes the KubexmClusterConfig before the hosts resets none that is not to be.
func TestNeverResetWithoutAClusterConfig(t *testing.T) {
	in := &naming{host: &infra.Host{Host: spec.Host{Name: "w1", Address: "10.1.0.2"}}}
	r, s := leaver(t, in)
	s.clusterConfig.Spec.Cluster.Reset.Policy = spec.ResetNever
	if err := s.recordReset(); err != nil {
		t.Fatal(err)
	}
	s.clusterConfig = nil
	if leave(t, r, s) {
		t.Error("it is waited for")
	}
	if job, found := r.Runner.Observe(s.key); found {
		t.Errorf("it is touched: %+v", job)
	}
}
