// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubevip"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestPod(t *testing.T) {
	s := kubevip.Pod(kubevip.Settings{
		VIP: "10.0.0.7", Interface: "eth0", Port: 6443, Kubeconfig: "/etc/kubernetes/super-admin.conf",
		Image: "ghcr.io/kube-vip/kube-vip:v1.0.1",
	})
	golden(t, s)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(files(s)[0].Content.String()), &pod); err != nil {
		t.Errorf("the manifest is no Pod: %v", err)
	}
}

// golden compares the files that s writes with those of the same names in testdata.
func golden(t *testing.T, s step.Step) {
	t.Helper()
	for _, f := range files(s) {
		name := filepath.Join("testdata", filepath.Base(f.Path))
		got := f.Content.String()
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got), go test -update writes it anew:\n%s", name, diff)
		}
	}
}

// files are those that s writes.
func files(s step.Step) []step.File {
	var all []step.File
	for _, p := range s.(step.Sequence).Parts {
		if f, ok := p.(step.File); ok {
			all = append(all, f)
		}
	}
	return all
}
