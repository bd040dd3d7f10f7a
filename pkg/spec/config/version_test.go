// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

func TestSetKubernetesVersion(t *testing.T) {
	const header = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster # of v1.35.4\nmetadata: {name: prod}\nspec:\n" +
		"  hosts: [{name: node1, address: 192.0.2.1, password: v1.35.4}]\n  roleGroups: {master: [node1]}\n"
	for _, version := range []string{
		"  kubernetes: {type: kubexm,   version: v1.35.4, featureGates: []} # keep\n",
		"  kubernetes:\n    # when 1.36 is out: v1.36\n    version: v1.35.4   # now\n    type: kubeadm\n",
		"  kubernetes: {\"version\": \"v1.35.4\"}\n",
		"  kubernetes: {version: 'v1.35.4'}",
		"  kubernetes: {type: kubexm, version: v1.35.4} # größer\r\n",
	} {
		before := header + version
		got, err := config.SetKubernetesVersion([]byte(before), "v1.36.3")
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		at := strings.LastIndex(before, "v1.35.4")
		if diff := cmp.Diff(before[:at]+"v1.36.3"+before[at+len("v1.35.4"):], string(got)); diff != "" {
			t.Error(diff)
		}
	}
	for _, bad := range []string{"", "[", "spec: {kubernetes: {}}", "spec: {kubernetes: {version: |\n  v1.35.4\n}}", header} {
		if got, err := config.SetKubernetesVersion([]byte(bad), "v1.36.3"); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
