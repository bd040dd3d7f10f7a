// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package pipeline_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// program is a program of the bundle that hosts get.
func program(t *testing.T, component, name string) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle"))
	b, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Binary(component, "", "amd64", name)
	if err != nil {
		t.Fatal(err)
	}
	return f.Path
}

var output = regexp.MustCompile(`<output [^>]*>`)

// What is written for kubeadm and containerd is what they take.
func TestRenderedIsUnderstood(t *testing.T) {
	kubeadm, containerd := program(t, "kubernetes", "kubeadm"), program(t, "containerd", "containerd")
	const patch = "etc/kubernetes/patches/kubeletconfiguration.yaml"
	for _, tt := range scenarios(bundle(t)) {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.make()
			if err != nil {
				t.Fatal(err)
			}
			all := rendered(p)
			// On its own, what is laid over the kubelet's configuration is such a configuration.
			if text, ok := all[patch]; ok {
				all[patch] = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + text
			}
			discovery := filepath.Join(t.TempDir(), "discovery.conf")
			if err := os.WriteFile(discovery, []byte(all["etc/kubernetes/discovery.conf"]), 0o600); err != nil {
				t.Fatal(err)
			}
			understood := 0
			for _, try := range []struct {
				file    string
				program string
				args    []string
			}{
				{"etc/kubernetes/kubeadm-init.yaml", kubeadm, []string{"config", "validate", "--config"}},
				{"etc/kubernetes/kubeadm-join.yaml", kubeadm, []string{"config", "validate", "--config"}},
				{patch, kubeadm, []string{"config", "validate", "--config"}},
				{"var/lib/kubelet/config.yaml", kubeadm, []string{"config", "validate", "--config"}},
				{"etc/kubernetes/kube-proxy.yaml", kubeadm, []string{"config", "validate", "--config"}},
				{"etc/containerd/config.toml", containerd, []string{"config", "dump", "--config"}},
			} {
				text, ok := all[try.file]
				if !ok {
					continue
				}
				file := filepath.Join(t.TempDir(), "config")
				text = output.ReplaceAllString(text, "abcdef.0123456789abcdef")
				text = strings.ReplaceAll(text, "/etc/kubernetes/discovery.conf", discovery)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				args := append(try.args, file)
				if try.program == containerd { // a flag of the program, not of its command
					args = []string{"--config", file, "config", "dump"}
				}
				out, err := exec.CommandContext(t.Context(), try.program, args...).CombinedOutput()
				// kubeadm and containerd only warn of keys that they do not know.
				if err != nil || strings.Contains(strings.ToLower(string(out)), "unknown") {
					t.Errorf("%s: %v\n%s", try.file, err, out)
				}
				understood++
			}
			want := 3
			_, binary := all["var/lib/kubelet/config.yaml"]
			if _, proxy := all["etc/systemd/system/kube-proxy.service"]; binary && !proxy {
				want = 2 // users bring their own
			}
			if _, ok := all["etc/crio/crio.conf.d/10-kubexm.conf"]; ok {
				want = 2 // the bundle has no CRI-O to show it to
			}
			if _, ok := all["etc/keepalived/keepalived.conf"]; ok {
				want = 0 // a load balancer has neither a kubelet nor pods
			}
			if understood < want {
				t.Errorf("%d files were shown to their readers, not %d", understood, want)
			}
		})
	}
}
