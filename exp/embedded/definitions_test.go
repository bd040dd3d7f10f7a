// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDefinitions(t *testing.T) {
	crd := func(description string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "things.example.org", Annotations: map[string]string{"about": description}},
		}
	}
	digest := func(description string) string {
		t.Helper()
		caller := crd(description)
		all, err := definitions([]*apiextensionsv1.CustomResourceDefinition{caller})
		if err != nil {
			t.Fatal(err)
		}
		if len(caller.Annotations) != 1 {
			t.Error("the caller's object was changed")
		}
		return all[len(all)-1].Annotations[digestAnnotation]
	}
	if a := digest("a"); a == "" || a != digest("a") || a == digest("b") {
		t.Error("the digest does not tell definitions apart")
	}
	_, err := definitions([]*apiextensionsv1.CustomResourceDefinition{crd("a"), crd("b")})
	if err == nil || !strings.Contains(err.Error(), "things.example.org") {
		t.Errorf("twice the same name: %v", err)
	}
}
