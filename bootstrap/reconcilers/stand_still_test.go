// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// TestStandStill: a host that is held has what goes on stopped, says so only when that has ended, begins nothing, and is observed anew when
// it is released, by whatever end of the KubexmOperation.
func TestStandStill(t *testing.T) {
	o := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "restore", Annotations: map[string]string{
		bootstrapv1.OperationRestoreAnnotation: "0123456789abcdef 2026-11-23T12:00:00Z aa 1",
	}}}
	value := holder.Of(o)
	for name, tc := range map[string]struct {
		role string
		held bool
		// release ends it.
		release func(*testing.T, client.Client, *bootstrapv1.KubexmClusterConfig)
	}{
		"it is released": {clusterv1.MachineControlPlaneLabel, true, func(_ *testing.T, _ client.Client, c *bootstrapv1.KubexmClusterConfig) {
			delete(c.Annotations, bootstrapv1.HeldByAnnotation)
		}},
		"its operation has ended": {clusterv1.MachineControlPlaneLabel, true, func(t *testing.T, api client.Client, _ *bootstrapv1.KubexmClusterConfig) {
			ended := o.DeepCopy()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), ended); err != nil {
				t.Fatal(err)
			}
			ended.Annotations[bootstrapv1.OperationCompletedAnnotation] = "2026-11-23T12:00:00Z Succeeded"
			if err := api.Update(t.Context(), ended); err != nil {
				t.Fatal(err)
			}
		}},
		"its operation is gone": {clusterv1.MachineControlPlaneLabel, true, func(t *testing.T, api client.Client, _ *bootstrapv1.KubexmClusterConfig) {
			if err := api.Delete(t.Context(), o.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}},
		"another one of that name": {clusterv1.MachineControlPlaneLabel, true, func(_ *testing.T, _ client.Client, c *bootstrapv1.KubexmClusterConfig) {
			c.Annotations[bootstrapv1.HeldByAnnotation] = "restore fedcba9876543210"
		}},
		"a worker": {"", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(o.DeepCopy()).Build()
			r := &KubexmConfigReconciler{Client: api, Reader: api, Runner: NewRunner(t.Context(), 1, time.Second)}
			shared := &bootstrapv1.KubexmClusterConfig{ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet", Name: "prod", Annotations: map[string]string{bootstrapv1.HeldByAnnotation: value},
			}}
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{tc.role: ""}}}
			s := &scope{
				config: &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, key: client.ObjectKey{Namespace: "fleet", Name: "cp1"},
				machine: machine, clusterConfig: shared,
			}
			r.store("1", hostCache{input: "a", converged: true})
			setTrue(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
			began, stopped := make(chan struct{}), make(chan error, 1)
			goes := func(ctx context.Context, _ event.Reader) outcome {
				close(began)
				<-ctx.Done()
				stopped <- context.Cause(ctx)
				return outcome{}
			}
			r.Runner.Start(s.key, hostrun.Job[outcome]{What: converging, Urgent: true, Do: goes})
			<-began
			goesOn := func() bool {
				s.job = nil
				if job, found := r.Runner.Observe(s.key); found {
					s.job = &job
				}
				goOn, result, err := r.standStill(t.Context(), s)
				if err != nil || !goOn && result.RequeueAfter == 0 {
					t.Fatalf("%v, %v", result, err)
				}
				return goOn
			}
			if goesOn() == tc.held || s.config.Status.HeldBy != "" {
				t.Fatalf("something goes on still, and it says %q", s.config.Status.HeldBy)
			}
			if !tc.held {
				r.Runner.Cancel(s.key, errDeleting)
				<-stopped
				return
			}
			if err := <-stopped; !errors.Is(err, errStandsStill) {
				t.Errorf("it was stopped for %v", err)
			}
			<-ended(t, r.Runner)
			r.Runner.Forget(s.key)
			if goesOn() || s.config.Status.HeldBy != value {
				t.Errorf("it stands still, and says %q", s.config.Status.HeldBy)
			}
			said := conditions.Get(s.config, bootstrapv1.HostConvergedCondition)
			if said.Status != metav1.ConditionUnknown || said.Reason != bootstrapv1.HeldReason || !strings.Contains(said.Message, "KubexmOperation restore") {
				t.Errorf("it says %+v", said)
			}
			tc.release(t, api, shared)
			if !goesOn() || s.config.Status.HeldBy != "" || conditions.Has(s.config, bootstrapv1.HostConvergedCondition) {
				t.Errorf("it was released, and says %q, %v", s.config.Status.HeldBy, s.config.Status.Conditions)
			}
			if r.cached("1") != (hostCache{}) {
				t.Error("what was known of it from before is taken for so still")
			}
			r.store("1", hostCache{input: "b"})
			if !goesOn() || r.cached("1") == (hostCache{}) {
				t.Error("it is released once")
			}
		})
	}
}

// ended is closed when all jobs have ended.
func ended(t *testing.T, r *Runner) <-chan struct{} {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Runnable().Start(ctx) // it never fails
	}()
	return done
}
