// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"slices"
	"testing"
)

// TestDefinitions finds the providers' kinds in Cluster API's module.
func TestDefinitions(t *testing.T) {
	for name, want := range map[Name][]string{
		Bootstrap:    {"KubeadmConfig", "KubeadmConfigTemplate"},
		ControlPlane: {"KubeadmControlPlane", "KubeadmControlPlaneTemplate"},
	} {
		all, err := Definitions(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, d := range all {
			kinds = append(kinds, d.Spec.Names.Kind)
			if len(d.Spec.Versions) != 1 || d.Spec.Versions[0].Name != "v1beta2" {
				t.Errorf("%s has the versions %v", d.Name, d.Spec.Versions)
			}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%s has the kinds %q, want %q", name, kinds, want)
		}
	}
}
