// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package config_test

import (
	"os"
	"regexp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
)

// variable is one that clusterctl puts a value in for.
var variable = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// A real API server takes the components with no unknown field, and admits their Pods at the level of their Namespaces.
func TestAPIServerTakesComponents(t *testing.T) {
	environment, err := testapi.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = environment.Stop() }()
	api, err := client.New(environment.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"bootstrap", "controlplane", "infrastructure"} {
		t.Run(directory, func(t *testing.T) {
			for _, resource := range build(t, directory).Resources() {
				content, err := resource.AsYAML()
				if err != nil {
					t.Fatal(err)
				}
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal(variable.ReplaceAll(content, []byte("$1")), &object.Object); err != nil {
					t.Fatal(err)
				}
				switch object.GetKind() {
				case "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
					continue // the server has them already, and the tests of config/crd and config/webhook look at them
				case "Certificate", "Issuer":
					continue // cert-manager's own, which is not here
				}
				if err := api.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}

			deployments := &appsv1.DeploymentList{}
			if err := api.List(t.Context(), deployments,
				client.InNamespace(each[metav1.PartialObjectMetadata](t, build(t, directory), "Namespace")[0].Name)); err != nil {
				t.Fatal(err)
			}
			if len(deployments.Items) != 1 {
				t.Fatalf("there are %d Deployments", len(deployments.Items))
			}
			deployment := &deployments.Items[0]
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: "one"}, Spec: deployment.Spec.Template.Spec}
			if err := api.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("the Pod of the manager: %v", err)
			}
			pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
			if err := api.Create(t.Context(), pod, client.DryRunAll); err == nil {
				t.Error("the Namespace admits Pods with more than they may have")
			}
		})
	}
	t.Run("runtimeextension", func(t *testing.T) {
		content, err := os.ReadFile("runtimeextension/extensionconfig.yaml")
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(content, &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			t.Error(err)
		}
	})
}
