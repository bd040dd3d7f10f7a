// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// read returns an API with one Node, and the Node as a reconcile has read it.
func read(t *testing.T) (client.Client, *live.Object, *corev1.Node) {
	t.Helper()
	api := fake.NewClientBuilder().WithStatusSubresource(&corev1.Node{}).WithObjects(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"test/ours", "test/theirs"}},
	}).Build()
	node := &corev1.Node{}
	object, err := live.Get(t.Context(), api, api, client.ObjectKey{Name: "a"}, node)
	if err != nil {
		t.Fatal(err)
	}
	return api, object, node
}

func change(t *testing.T, api client.Client, status bool, how func(*corev1.Node)) {
	t.Helper()
	node := &corev1.Node{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
		t.Fatal(err)
	}
	how(node)
	var err error
	if status {
		err = api.Status().Update(t.Context(), node)
	} else {
		err = api.Update(t.Context(), node)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func now(t *testing.T, api client.Client) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "a"}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

func TestStatusAndRestAreWritten(t *testing.T) {
	api, object, node := read(t)
	node.Status.Phase, node.Finalizers = corev1.NodeRunning, []string{"test/theirs"}
	if err := object.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := now(t, api); is.Status.Phase != corev1.NodeRunning || len(is.Finalizers) != 1 {
		t.Errorf("the object is %+v", is)
	}
}

func TestNothingIsWrittenWhereNothingChanged(t *testing.T) {
	api, object, node := read(t)
	if err := object.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := now(t, api); is.ResourceVersion != node.ResourceVersion {
		t.Errorf("the object was written: %s, was %s", is.ResourceVersion, node.ResourceVersion)
	}
}

func TestOthersMayChangeTheRestBesideAStatus(t *testing.T) {
	api, object, node := read(t)
	change(t, api, false, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	node.Status.Phase = corev1.NodeRunning
	if err := object.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := now(t, api); is.Status.Phase != corev1.NodeRunning || !is.Spec.Unschedulable {
		t.Errorf("the object is %+v", is)
	}
}

func TestTheRestIsNotWrittenOverWhatOthersWrote(t *testing.T) {
	api, object, node := read(t)
	change(t, api, false, func(n *corev1.Node) { n.Finalizers = append(n.Finalizers, "test/new") })
	node.Status.Phase, node.Finalizers = corev1.NodeRunning, []string{"test/theirs"}
	if err := object.Write(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v, not a conflict", err)
	}
	if is := now(t, api); len(is.Finalizers) != 3 {
		t.Errorf("the finalizers are %v", is.Finalizers)
	}
}

func TestAStatusIsNotWrittenOverAnother(t *testing.T) {
	api, object, node := read(t)
	change(t, api, true, func(n *corev1.Node) { n.Status.Phase = corev1.NodeTerminated })
	node.Status.Phase = corev1.NodeRunning
	var result ctrl.Result
	var err error
	if object.Close(t.Context(), &result, &err) || err != nil || result.RequeueAfter <= 0 {
		t.Errorf("the conflict came to %+v, %v: it is no failure, and the reconcile begins again", result, err)
	}
	if is := now(t, api); is.Status.Phase != corev1.NodeTerminated {
		t.Errorf("the phase is %s", is.Status.Phase)
	}
}

// TestTwoWritesWithinTheLag: of two reconciles that follow each other faster than the cache, the second takes back what the first has
// said, which is what the cache shows still.
func TestTwoWritesWithinTheLag(t *testing.T) {
	api, _, old := read(t)
	cache := interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			old.DeepCopyInto(object.(*corev1.Node))
			return nil
		},
	})
	for _, phase := range []corev1.NodePhase{corev1.NodeRunning, old.Status.Phase} {
		node := &corev1.Node{}
		object, err := live.Get(t.Context(), cache, api, client.ObjectKey{Name: "a"}, node)
		if err != nil {
			t.Fatal(err)
		}
		node.Status.Phase = phase
		if err := object.Write(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := now(t, api); is.Status.Phase != phase {
			t.Errorf("the phase is %q, and was written as %q", is.Status.Phase, phase)
		}
	}
}

func TestAnObjectThatIsGoneIsNotWritten(t *testing.T) {
	api, object, node := read(t)
	change(t, api, false, func(n *corev1.Node) { n.Finalizers = nil })
	if err := api.Delete(t.Context(), now(t, api)); err != nil {
		t.Fatal(err)
	}
	node.Status.Phase, node.Finalizers = corev1.NodeRunning, nil
	if err := object.Write(t.Context()); err != nil {
		t.Error(err)
	}
}
