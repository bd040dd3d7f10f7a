// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// TestTakeIn: wherever it is cut and done again, each control plane host has one Machine, which says that its host was touched, and one of
// them begins; all the while the Cluster is paused. A Cluster that goes on is left alone.
func TestTakeIn(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := config.Parse([]byte(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: cp1, address: 172.16.0.1}
  - {name: cp2, address: 172.16.0.2}
  - {name: cp3, address: 172.16.0.3}
  - {name: w1, address: 172.16.0.4}
  roleGroups: {master: [cp1, cp2, cp3], worker: [w1]}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
  kubernetes: {version: v1.36.3}
`))
	if err != nil {
		t.Fatal(err)
	}
	all := objects.Of(c, objects.Inputs{Namespace: "default", Endpoint: "172.16.0.1"})
	key := client.ObjectKey{Namespace: "default", Name: "prod"}
	cut := errors.New("cut")
	for _, calls := range []int{0, 1, 2, 3, 7, 99} { // KubexmConfig, KubexmMachine, Machine, of one host after the other
		left := calls
		count := func() error {
			if left--; left < 0 {
				return cut
			}
			return nil
		}
		plane := fake.NewClientBuilder().WithScheme(scheme).Build()
		cutting := interceptor.NewClient(plane, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := count(); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
		})
		if err := rollout.TakeIn(t.Context(), cutting, all); calls < 9 && !errors.Is(err, cut) || calls > 9 && err != nil {
			t.Fatalf("a cut at %d: %v", calls, err)
		}
		if err := rollout.TakeIn(t.Context(), plane, all); err != nil {
			t.Fatalf("after a cut at %d: %v", calls, err)
		}
		s, err := rollout.Read(t.Context(), plane, key)
		if err != nil {
			t.Fatal(err)
		}
		if !ptr.Deref(s.Cluster.Spec.Paused, false) || len(s.Machines) != 3 || len(s.Configs) != 3 || len(s.InfraMachines) != 3 {
			t.Fatalf("after a cut at %d: paused %v, %d Machines, %d KubexmConfigs, %d KubexmMachines", calls, s.Cluster.Spec.Paused,
				len(s.Machines), len(s.Configs), len(s.InfraMachines))
		}
		begin := 0
		for i := range s.Configs {
			if s.Configs[i].Spec.BootstrapMode == spec.BootstrapInit {
				begin++
			}
		}
		if begin != 1 {
			t.Errorf("after a cut at %d: %d begin", calls, begin)
		}
		for i := range s.Machines {
			if _, touched := s.Machines[i].Annotations[bootstrapv1.HostResetHook]; !touched {
				t.Errorf("the Machine %s does not say that its host was touched", s.Machines[i].Name)
			}
		}
		if _, err := rollout.Apply(t.Context(), plane, all); err != nil {
			t.Fatal(err)
		}
		if err := rollout.TakeIn(t.Context(), plane, all); err != nil {
			t.Fatal(err)
		}
		if s, err = rollout.Read(t.Context(), plane, key); err != nil || ptr.Deref(s.Cluster.Spec.Paused, false) {
			t.Errorf("a Cluster that goes on is paused (%v)", err)
		}
	}
}
