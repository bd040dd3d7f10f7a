// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxytest compares what a proxy writes with golden files.
package proxytest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/rhel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

// Settings are those of a cluster of three API servers.
func Settings() proxy.Settings {
	return proxy.Settings{
		Port: 6443, BackendPort: 6443,
		Backends: []spec.Member{
			{Name: "cp2", Role: spec.RoleControlPlane, Address: "10.0.0.2"},
			{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.0.0.1"},
			{Name: "cp3", Role: spec.RoleControlPlane, Address: "10.0.0.3"},
		},
	}
}

// Local are what a worker has of them.
func Local() proxy.Settings {
	s := Settings()
	s.Bind = "127.0.0.1"
	return s
}

// Manifest is the static pod's.
func Manifest(p proxy.Program, s proxy.Settings) step.File {
	return steptest.Files(p.Pod(s, "example.com/"+p.Name+":1"))[1]
}

// Files fails the test unless the files that p writes equal those in testdata, and its manifest is a Pod's.
func Files(t *testing.T, p proxy.Program) {
	t.Helper()
	for dir, os := range map[string]family.Family{"": debian.Family{}, "rhel": rhel.Of(rhel.Systems[0], "9.5")} {
		steptest.Golden(t, dir, p.Config(os, Settings()))
		steptest.Golden(t, dir, p.Packages(os, nil))
	}
	manifest := Manifest(p, Local())
	steptest.Golden(t, "", step.New(step.Meta{}, manifest))
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest.Content.String()), &pod); err != nil {
		t.Errorf("the manifest is no Pod: %v", err)
	}
}
