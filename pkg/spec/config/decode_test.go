// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestEveryFieldCanBeSet: a field that the decoder has no case for could be declared by objects, and by no config file.
func TestEveryFieldCanBeSet(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(of reflect.Type, path string)
	check = func(of reflect.Type, path string) {
		switch of.Kind() {
		case reflect.String, reflect.Int32, reflect.Int64:
		case reflect.Pointer, reflect.Slice:
			check(of.Elem(), path)
		case reflect.Map:
			if of.Key().Kind() != reflect.String {
				t.Errorf("%s has keys that are no text: %s", path, of)
			}
			check(of.Elem(), path)
		case reflect.Struct:
			if of == secretType || seen[of] {
				return
			}
			seen[of] = true
			for name, index := range fieldsOf(of) {
				check(of.FieldByIndex(index).Type, joinField(path, name))
			}
		default:
			t.Errorf("%s is a %s, which is not decoded", path, of)
		}
	}
	check(reflect.TypeFor[file](), "")
}

// TestPointer: a number that may be left out is decoded as any other.
func TestPointer(t *testing.T) {
	parse := func(reset string) (*Cluster, error) {
		c, _, err := Parse([]byte(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts: [{name: node1, address: 192.0.2.1}]
  roleGroups: {master: [node1]}
  kubernetes: {version: v1.36.3}
  reset: ` + reset + "\n"))
		return c, err
	}
	for reset, want := range map[string]time.Duration{
		"{policy: WhenReachable, timeoutSeconds: 1200}": 20 * time.Minute, "{policy: WhenReachable}": 10 * time.Minute,
		"{policy: WhenReachable, timeoutSeconds: }": 10 * time.Minute,
	} {
		c, err := parse(reset)
		if err != nil {
			t.Errorf("%s: %v", reset, err)
		} else if got := c.Spec.Reset.Timeout(); got != want || c.Spec.Reset.Policy != "WhenReachable" {
			t.Errorf("%s: %s, and the timeout is %s, want %s", reset, c.Spec.Reset.Policy, got, want)
		}
	}
	for value, want := range map[string]string{
		"0": "cannot be 0", `"1200"`: "use a whole number", "[1]": "use a whole number", "86401": "86400", "9999999999": "out of range",
	} {
		_, err := parse("{timeoutSeconds: " + value + "}")
		if err == nil || !strings.Contains(err.Error(), "line 8: spec.reset.timeoutSeconds: ") || !strings.Contains(err.Error(), want) ||
			strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
