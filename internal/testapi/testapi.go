// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testapi starts a real API server for tests, with Cluster API's kinds and ours. The directory of its binaries
// is in KUBEBUILDER_ASSETS.
package testapi

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
)

// Start returns a running API server and etcd. Its WebhookInstallOptions say where webhooks must be served; until they
// are, requests that our webhooks are asked about fail. Stop it in the end.
func Start(ctx context.Context) (*envtest.Environment, error) {
	core, err := coreDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	ours, err := crd.CRDs()
	if err != nil {
		return nil, err
	}
	hooks, err := webhook.All()
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{core}, CRDs: ours, ErrorIfPathMissing: true},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			MutatingWebhooks: hooks.Mutating, ValidatingWebhooks: hooks.Validating,
		},
	}
	if _, err := environment.Start(); err != nil {
		return nil, fmt.Errorf("start an API server (is KUBEBUILDER_ASSETS the directory of etcd and kube-apiserver?): %w", err)
	}
	return environment, nil
}

// coreDefinitions is the directory of Cluster API's definitions, in the module that we build with.
func coreDefinitions(ctx context.Context) (string, error) {
	const module = "sigs.k8s.io/cluster-api"
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "core", "config", "crd", "bases"), nil
}
