// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenRelease: all that is missing of a provider's release is said, before anything is started.
func TestOpenRelease(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(parts ...string) {
		t.Helper()
		_, err := OpenRelease(dir, "manager", "agent")
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("no %q in: %v", part, err)
			}
		}
	}
	refused("manager: no such file", "agent: no such file", "metadata.yaml: no such file", "infrastructure-components.yaml: file does not exist")
	write("manager", "#!/bin/sh\n", 0o755)
	write("agent", "#!/bin/sh\n", 0o644)
	write("metadata.yaml", "kind: Other\n", 0o644)
	write("infrastructure-components.yaml", "kind: Deployment\nspec: [what, ever]\n", 0o644)
	refused("agent is no program", "no releaseSeries", "infrastructure-components.yaml: it has no CustomResourceDefinition")

	write("agent", "#!/bin/sh\n", 0o755)
	if err := os.Chmod(filepath.Join(dir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("metadata.yaml", "kind: Metadata\nreleaseSeries: [{major: 0, minor: 5, contract: v1beta1}]\n", 0o644)
	write("infrastructure-components.yaml", `kind: Namespace
metadata: {name: system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: byohosts.infrastructure.cluster.x-k8s.io}
spec:
  conversion: {strategy: Webhook}
---
kind: Deployment
spec: [what, ever]
`, 0o644)
	write("ipam-components.yaml", "kind: CustomResourceDefinition\nmetadata: {name: ipclaims.ipam.metal3.io}\n", 0o644)
	r, err := OpenRelease(dir, "manager", "agent")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Definitions) != 2 || r.Definitions[0].Name != "byohosts.infrastructure.cluster.x-k8s.io" || r.Definitions[0].Spec.Conversion != nil {
		t.Errorf("it has %+v", r.Definitions)
	}
}
