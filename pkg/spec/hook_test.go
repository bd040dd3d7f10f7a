// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestTasksAreDocumented: the guide names each task that may have hooks, and each that runs on no host.
func TestTasksAreDocumented(t *testing.T) {
	const guide = "../../docs/guides/hooks-and-limits.md"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	hooks, limits, found := strings.Cut(string(text), "\n## Limits\n")
	if !found {
		t.Fatal(guide + " says nothing of limits")
	}
	within := map[spec.Place]string{spec.OnHosts: hooks, spec.OnController: limits}
	for _, task := range spec.Tasks() {
		if task.Place != spec.OnRequest && !strings.Contains(within[task.Place], "`"+task.Name+"`") {
			t.Errorf("%s does not name the task %s where it belongs", guide, task.Name)
		}
	}
}
