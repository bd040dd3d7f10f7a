// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestSchemasOfSpec: what pkg/spec validates by is what API servers validate by, for those who use the library alone. It is generated from
// the definitions, as these are from the types' markers.
func TestSchemasOfSpec(t *testing.T) {
	const generated = "../../pkg/spec/zz_generated.schema.json"
	schemas := map[string]apiextensionsv1.JSONSchemaProps{}
	for name, of := range map[string]struct {
		kind string
		path []string
		is   reflect.Type
	}{
		"Cluster": {"KubexmClusterConfig", []string{"spec", "cluster"}, reflect.TypeFor[spec.Cluster]()},
		"Node":    {"KubexmConfig", []string{"spec"}, reflect.TypeFor[spec.Node]()},
	} {
		schema := schemaOf(t, of.kind)
		for _, step := range of.path {
			schema = schema.Properties[step]
		}
		if len(schema.Properties) == 0 {
			t.Fatalf("%s has no %v", of.kind, of.path)
		}
		schema.Required = nil // of whom the type is a part
		own := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, f := range reflect.VisibleFields(of.is) {
			if field, _, _ := strings.Cut(f.Tag.Get("json"), ","); field != "" {
				own[field] = schema.Properties[field]
			}
		}
		schema.Properties = own
		schemas[name] = bounds(schema, false)
	}
	got, err := json.MarshalIndent(schemas, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, generated, string(got)+"\n")
}

func schemaOf(t *testing.T, kind string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range crds {
		if def.Spec.Names.Kind == kind {
			return *def.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("there is no %s", kind)
	return apiextensionsv1.JSONSchemaProps{}
}

// bounds are what a schema refuses by a field alone. Descriptions are kept where they are all that says what a value must be like.
func bounds(schema apiextensionsv1.JSONSchemaProps, required bool) apiextensionsv1.JSONSchemaProps {
	kept := apiextensionsv1.JSONSchemaProps{
		Type: schema.Type, Enum: schema.Enum, Pattern: schema.Pattern, Required: schema.Required, AnyOf: schema.AnyOf,
		Minimum: schema.Minimum, Maximum: schema.Maximum, MinLength: schema.MinLength, MaxLength: schema.MaxLength,
		MinItems: schema.MinItems, MaxItems: schema.MaxItems, MaxProperties: schema.MaxProperties,
	}
	if required || schema.Pattern != "" {
		kept.Description = schema.Description
	}
	for name, property := range schema.Properties {
		if kept.Properties == nil {
			kept.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		is := false
		for _, other := range schema.Required {
			is = is || other == name
		}
		kept.Properties[name] = bounds(property, is)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		items := bounds(*schema.Items.Schema, false)
		kept.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		values := bounds(*schema.AdditionalProperties.Schema, false)
		kept.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
	}
	return kept
}
