// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cis

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
)

const begin, end = "<!-- controls -->\n", "<!-- end of controls -->\n"

// The document's table has what Check asserts.
func TestDocument(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "reference", "cis.md")
	golden.Part(t, name, begin, end, table())
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| Control | It asks for | `type: kubeadm` | `type: kubexm` | Why not, and how it is turned on |\n|---|---|---|---|---|\n")
	for _, c := range Controls() {
		state := func(s spec.KubernetesType) string {
			switch {
			case slices.Contains(c.Fails, string(s)):
				return "no"
			case slices.Contains(c.Fails, EtcdPod):
				return "pass; no with " + EtcdPod
			}
			return "pass"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Title, state(spec.KubernetesKubeadm), state(spec.KubernetesKubexm), c.Reason)
	}
	return b.String() + "\n"
}

// An audit does not pass of a host of which nothing was seen: one that would could not fail.
func TestAuditsNeedAHost(t *testing.T) {
	for _, c := range Controls() {
		h := &host{}
		if c.ID == "4.2.6" || c.ID == "4.2.10" { // pass where nothing is said
			h.kubelet = map[string]any{"makeIPTablesUtilChains": false, "rotateCertificates": false}
		}
		if c.audit(h, Subject{Type: spec.KubernetesKubeadm, Etcd: EtcdPod}) == nil {
			t.Errorf("%s (%s) passes of nothing", c.ID, c.Title)
		}
	}
}

// What a host prints is understood: modes, owners, arguments, and the kubelet's configuration below its flags.
func TestParse(t *testing.T) {
	h, err := parse("file\t/etc/kubernetes/admin.conf\t640\troot:root\narg\tkubelet\t--rotate-certificates\narg\tetcd\t--cert-file=/a\n" +
		"sum\tabc\t/etc/ca\nkubelet\tauthentication:\nkubelet\t  anonymous: {enabled: false}\nkubelet\trotateCertificates: false\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.private("/etc/kubernetes/admin.conf"); err == nil || !strings.Contains(err.Error(), "0640") {
		t.Errorf("the mode: %v", err)
	}
	if err := h.ownedBy("/etc/kubernetes/admin.conf", "root:root"); err != nil {
		t.Error(err)
	}
	if v, set := h.flag("etcd", "cert-file"); !set || v != "/a" {
		t.Errorf("the flag is %q", v)
	}
	if h.sums["/etc/ca"] != "abc" {
		t.Errorf("the digests are %q", h.sums)
	}
	if got := h.setting("anonymous-auth", "authentication", "anonymous", "enabled"); got != "false" {
		t.Errorf("the setting is %q", got)
	}
	if got := h.setting("rotate-certificates", "rotateCertificates"); got != "true" {
		t.Errorf("the flag counts for %q", got)
	}
}

// An etcd that trusts the cluster's authority does not pass, nor one whose authority is not seen.
func TestOwnAuthority(t *testing.T) {
	const own, clusters = "/etc/kubexm/etcd/ssl/ca.pem", kubernetes + "pki/ca.crt"
	for _, tt := range []struct {
		name, client, peer string
		sums               map[string]string
		passes             bool
	}{
		{"its own", own, own, map[string]string{own: "a", clusters: "b"}, true},
		{"on a host of its own", own, own, map[string]string{own: "a"}, true},
		{"the cluster's", clusters, own, map[string]string{own: "a", clusters: "b"}, false},
		{"the cluster's, of peers", own, clusters, map[string]string{own: "a", clusters: "b"}, false},
		{"a copy of the cluster's", own, own, map[string]string{own: "b", clusters: "b"}, false},
		{"one that is not seen", own, own, nil, false},
	} {
		h := &host{args: map[string][]string{"etcd": {"--trusted-ca-file=" + tt.client, "--peer-trusted-ca-file=" + tt.peer}}, sums: tt.sums}
		if err := ownAuthority(h, Subject{}); (err == nil) != tt.passes {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What the API server encrypts with is read of the file that its step writes, and no key.
func TestLookAtProviders(t *testing.T) {
	for provider, want := range map[spec.EncryptionProvider]string{spec.EncryptionSecretbox: "secretbox", spec.EncryptionAESCBC: "aescbc"} {
		k := spec.Kubernetes{EncryptionAtRest: spec.EncryptionAtRest{Provider: provider, Resources: []string{"secrets", "kms.example.com"}}}
		files := map[string]file{}
		name := filepath.Join(t.TempDir(), "config.yaml")
		for _, part := range apiserver.Encryption(k).(step.Sequence).Parts {
			f, ok := part.(step.File)
			if !ok {
				continue
			}
			files[f.Path] = file{int64(f.Mode), "root:root"}
			if f.Path == encryptionConfig {
				if err := os.WriteFile(name, []byte(f.Content.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-uc", strings.ReplaceAll(lookAtProviders, encryptionConfig, name)).CombinedOutput()
		if err != nil || strings.Contains(string(out), "secret ") {
			t.Fatalf("%v: %s", err, out)
		}
		h, err := parse(string(out))
		if err != nil {
			t.Fatal(err)
		}
		h.files = files
		if !slices.Equal(h.providers, []string{want, "identity"}) {
			t.Errorf("%s: seen %v", provider, h.providers)
		}
		if err := encrypts(h, Subject{}); err != nil {
			t.Error(err)
		}
		slices.Reverse(h.providers)
		if encrypts(h, Subject{}) == nil {
			t.Error("what is written is in clear, and it passes")
		}
	}
}
