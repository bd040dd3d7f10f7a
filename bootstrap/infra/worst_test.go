// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// TestWorstStatus: nothing that a host says of itself makes a status that the API refuses, which would be written again for ever.
func TestWorstStatus(t *testing.T) {
	words := "\x1b[2J\x00\xff" + strings.Repeat("é\n", 1<<17)
	h := &infrav1.KubexmHost{}
	meeting(Reachability{Reason: "Locked", Err: errors.New(words), System: &host.System{
		OSName: words, Kernel: words, Arch: words, CPUs: -5, MemoryBytes: -1,
	}})(h)
	leaving(ResetResult{Err: errors.New(words)})(h)
	for _, kind := range []string{infrav1.ReachableCondition, infrav1.CleanCondition} {
		message := conditions.GetMessage(h, kind)
		if n := utf8.RuneCountInString(message); n == 0 || n > 32768 || !utf8.ValidString(message) || strings.ContainsAny(message, "\x00\x1b") {
			t.Errorf("the message of %s has %d characters: %.40q", kind, n, message)
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h.Status.Facts)
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, "infrastructure.cluster.x-k8s.io_kubexmhosts.yaml", "status", "facts")
	for name, value := range object {
		field, known := schema.Properties[name]
		if !known {
			t.Errorf("%s is not in the schema", name)
		}
		switch v := value.(type) {
		case string:
			if field.MaxLength > 0 && utf8.RuneCountInString(v) > field.MaxLength || len(field.Enum) > 0 {
				t.Errorf("%s: %d characters, the API takes %d of %v", name, utf8.RuneCountInString(v), field.MaxLength, field.Enum)
			}
		case int64:
			if v < field.Minimum {
				t.Errorf("%s: %d is less than %d", name, v, field.Minimum)
			}
		}
	}
}

// property is the part of a CRD's schema that bounds a field.
type property struct {
	Properties map[string]property
	MaxLength  int
	Minimum    int64
	Enum       []string
}

// schemaOf reads the schema of a field of an object from its generated CRD.
func schemaOf(t *testing.T, file string, fields ...string) property {
	t.Helper()
	raw, err := os.ReadFile("../../config/crd/infrastructure/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema property }
			}
		}
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	at := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, f := range fields {
		at = at.Properties[f]
	}
	if len(at.Properties) == 0 {
		t.Fatalf("%s has no %v", file, fields)
	}
	return at
}
