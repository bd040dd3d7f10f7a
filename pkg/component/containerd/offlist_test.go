// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestRegistriesOffTheList: a registry that is not declared any more is asked as it was before, and files of others stay.
func TestRegistriesOffTheList(t *testing.T) {
	dir := t.TempDir()
	run := func(r spec.Registries, verb string) (string, error) {
		argv := offList(r).(step.Command).Argv
		if verb == "check" {
			argv = offList(r).(step.Command).Done.Check
		}
		for i := range argv {
			if argv[i] == hosts {
				argv[i] = dir
			}
		}
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	declared := spec.Registries{
		Mirrors: []spec.Mirror{
			{Registry: "docker.io", Endpoints: []string{"https://a.example"}}, {Registry: "ghcr.io", Endpoints: []string{"https://a.example"}},
		},
		Insecure: []string{"r.example:5000"},
	}
	if out, err := run(declared, "check"); err != nil || out != "" {
		t.Errorf("nothing is there yet: %q, %v", out, err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "hosts.toml"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range registries(declared) {
		write(r.name, r.toml)
	}
	write("theirs.example", "server = \"https://theirs.example\"\n")
	write("empty.example", "")
	if out, err := run(declared, "check"); err != nil || out != "" {
		t.Errorf("all are declared: %q, %v", out, err)
	}
	fewer := spec.Registries{Mirrors: declared.Mirrors[:1]}
	if out, err := run(fewer, "check"); err == nil || out != "ghcr.io is not declared any more" {
		t.Errorf("two are not declared any more: %q, %v", out, err)
	}
	if out, err := run(fewer, "remove"); err != nil {
		t.Errorf("%s: %v", out, err)
	}
	if out, err := run(fewer, "check"); err != nil {
		t.Errorf("after that: %q, %v", out, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if got, want := strings.Join(left, " "), "docker.io empty.example theirs.example"; got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
}
