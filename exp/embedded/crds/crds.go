// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds holds what Cluster API's core installs into a management cluster besides its manager: the custom
// resource definitions of the kinds whose reconcilers the embedded plane runs, and the configuration of its webhooks.
//
// They lie in cluster-api/, byte for byte those of the module sigs.k8s.io/cluster-api at the version that go.mod names
// (a module's files cannot be embedded from another module). go generate renews them; a test compares them.
package crds

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

//go:generate ./copy.sh

//go:embed cluster-api/crd/*.yaml
var bases embed.FS

//go:embed cluster-api/webhook.yaml
var webhooks []byte

// Core returns the definitions, each as a new object, with the one version that is stored. The older versions would
// need core's conversion webhooks, and nothing in a plane that is not shared speaks them.
func Core() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(bases, "cluster-api/crd/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded definitions: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, name := range files {
		data, err := fs.ReadFile(bases, name)
		if err != nil {
			return nil, fmt.Errorf("read the embedded definition %s: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("decode the embedded definition %s: %w", name, err)
		}
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return !v.Storage
		})
		// What core's own kustomization adds.
		if crd.Labels == nil {
			crd.Labels = map[string]string{}
		}
		crd.Labels[clusterv1.ProviderNameLabel] = "cluster-api"
		crd.Labels[clusterv1.GroupVersion.String()] = clusterv1.GroupVersion.Version
		crds = append(crds, crd)
	}
	return crds, nil
}

// Webhooks returns the configurations of core's admission webhooks, each as a new object. They call a Service.
func Webhooks() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(webhooks)))
	for _, configuration := range []any{mutating, validating} {
		document, err := documents.Read()
		if err == nil {
			err = yaml.UnmarshalStrict(document, configuration)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("decode the embedded webhook configurations: %w", err)
		}
	}
	return mutating, validating, nil
}
