// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/util/contract"
)

// TestUpstream fails when go.mod names another version of Cluster API than the one that the files come from.
func TestUpstream(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-json", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct{ Path, Version, Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	same := func(ours []byte, upstream string) {
		t.Helper()
		theirs, err := os.ReadFile(filepath.Join(module.Dir, upstream))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not that of %s %s: run go generate ./exp/embedded/crds", upstream, module.Path, module.Version)
		}
	}
	files, err := fs.Glob(bases, "cluster-api/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(bases, name)
		if err != nil {
			t.Fatal(err)
		}
		same(data, filepath.Join("core/config/crd/bases", path.Base(name)))
	}
	same(webhooks, "core/config/webhook/manifests.yaml")

	version, err := os.ReadFile("cluster-api/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(version)), module.Path+" "+module.Version; got != want {
		t.Errorf("VERSION says %q, go.mod %q", got, want)
	}
}

func TestCore(t *testing.T) {
	crds, err := Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if len(crd.Spec.Versions) != 1 || !crd.Spec.Versions[0].Served || crd.Spec.Versions[0].Name != "v1beta2" {
			t.Errorf("%s: want v1beta2 alone, served", crd.Name)
		}
		if want := contract.CalculateCRDName(crd.Spec.Group, crd.Spec.Names.Kind); crd.Name != want {
			t.Errorf("%s: Cluster API looks for %s", crd.Name, want)
		}
		if got := crd.Labels["cluster.x-k8s.io/v1beta2"]; got != "v1beta2" {
			t.Errorf("%s: label of the contract is %q", crd.Name, got)
		}
	}
}

func TestWebhooks(t *testing.T) {
	mutating, validating, err := Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	if mutating.Kind != "MutatingWebhookConfiguration" || len(mutating.Webhooks) == 0 {
		t.Errorf("%s with %d webhooks", mutating.Kind, len(mutating.Webhooks))
	}
	if validating.Kind != "ValidatingWebhookConfiguration" || len(validating.Webhooks) == 0 {
		t.Errorf("%s with %d webhooks", validating.Kind, len(validating.Webhooks))
	}
}
