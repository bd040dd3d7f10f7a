// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
)

// TestRulesOfTheOldestVersion: an API server of the version from which on a cluster may become a management cluster, as the guide says,
// takes all rules. One of the version before would not, or the guide asks for too much.
func TestRulesOfTheOldestVersion(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/clusterctl.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`A Kubernetes cluster, (v[0-9.]+) or newer`).FindSubmatch(guide)
	if said == nil {
		t.Fatal("the guide does not say which version a management cluster must have")
	}
	oldest := version.MustParse(string(said[1]))
	for _, problem := range refused(t, oldest) {
		t.Errorf("%s does not take %s", oldest, problem)
	}
	if before := oldest.SubtractMinor(1); len(refused(t, before)) == 0 {
		t.Errorf("%s takes all rules, too, and the guide says %s", before, oldest)
	}
}

// refused are the rules that an API server of a version does not take for new definitions: those that the version before it would not
// understand.
func refused(t *testing.T, of *version.Version) []string {
	t.Helper()
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	known := environment.MustBaseEnvSet(of.SubtractMinor(1))
	var all []string
	for _, def := range crds {
		for _, v := range def.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			convert := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps
			if err := convert(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := schema.NewStructural(&internal)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, refusedOf(t, known, def.Spec.Names.Kind, structural, true)...)
		}
	}
	return all
}

// refusedOf are those of a part of a schema, and of its own parts.
func refusedOf(t *testing.T, known *environment.EnvSet, path string, s *schema.Structural, isRoot bool) []string {
	t.Helper()
	results, err := cel.Compile(s, model.SchemaDeclType(s, isRoot), celconfig.PerCallLimit, known, cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, result := range results {
		if result.Error != nil {
			all = append(all, path+": "+s.XValidations[i].Rule+": "+strings.TrimSpace(result.Error.Error()))
		}
	}
	for name, property := range s.Properties {
		all = append(all, refusedOf(t, known, path+"."+name, &property, false)...)
	}
	if s.Items != nil {
		all = append(all, refusedOf(t, known, path+"[]", s.Items, false)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		all = append(all, refusedOf(t, known, path+"{}", s.AdditionalProperties.Structural, false)...)
	}
	return all
}
