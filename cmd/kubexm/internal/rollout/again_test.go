// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// TestAgain: a command that is called once more asks for the hosts that are not tried any more, and for no others.
func TestAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := bootstrapv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := at(old)
	ended := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s.Configs[0].Status.OperationFor(bootstrapv1.ConvergeOperation).EndTime = metav1.NewTime(ended)
	s.Configs[0].Status.Conditions = []metav1.Condition{
		condition(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.RetriesExhaustedReason, "exited 1"),
	}
	s.Configs[1].Status.Conditions = []metav1.Condition{
		condition(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.StepFailedReason, "exited 1"),
	}
	if !s.Exhausted(ended.Add(-time.Second)) {
		t.Error("a host that is not tried any more is waited for")
	}
	if s.Exhausted(ended.Add(time.Second)) {
		t.Error("what was said of a host before it was asked for again counts")
	}
	var all []client.Object
	for i := range s.Configs {
		s.Configs[i].Namespace, s.Configs[i].ResourceVersion = "default", ""
		all = append(all, s.Configs[i].DeepCopy())
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
	if err := s.Again(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		found := &bootstrapv1.KubexmConfig{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(all[i]), found); err != nil {
			t.Fatal(err)
		}
		if asked := found.Annotations[bootstrapv1.ConvergeAnnotation] != ""; asked != (i == 0) {
			t.Errorf("%s is asked for: %t", found.Name, asked)
		}
	}
}
