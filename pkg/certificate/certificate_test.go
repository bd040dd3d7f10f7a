// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// pairs are an authority and a leaf of it.
func pairs(t *testing.T) (ca, leaf pki.KeyPair) {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err = ca.Sign(pki.LeafRequest{CommonName: "kube-apiserver", Usages: []pki.Usage{pki.Client}, Validity: 30 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return ca, leaf
}

// TestScript: the script, run here, prints every certificate and no key, from files that hold both.
func TestScript(t *testing.T) {
	ca, leaf := pairs(t)
	dir := t.TempDir()
	write := func(name string, content ...[]byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(texts(content), "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	encode := func(content []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(content)) }
	key := leaf.Key.Reveal()
	write("pki/ca.crt", ca.Cert)
	write("pki/ca.key", ca.Key.Reveal())
	write("pki/empty.crt")
	write("pki/of-one/client.crt", leaf.Cert) // a component's own, beside its key
	write("pki/of-one/client.key", key)
	write("pki/of-one/deeper/client.crt", leaf.Cert)
	write("kubelet/kubelet-client-2026-01-01-00-00-00.pem", leaf.Cert, key)
	write("kubelet/kubelet-client-current.pem", key, leaf.Cert, ca.Cert)
	write("ssl/broken.pem", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n"))
	write("ssl/cut-in-a-line.pem", leaf.Cert[:100], key, leaf.Cert[:100]) // of which nothing but what is before the key may be printed
	write("ssl/member-key.pem", key)
	write("ssl/member.pem", leaf.Cert)
	write("admin.conf", []byte("users:\n- name: admin\n  user:\n    client-certificate-data: "), encode(leaf.Cert),
		[]byte("\n    client-key-data: "), encode(key), []byte("\n"))
	write("super-admin.conf", []byte("users:\n- user:\n    client-certificate-data: "), encode(key), []byte("\n")) // somebody's mistake
	write("scheduler.conf", []byte("users:\n- user:\n    client-certificate: /etc/kubernetes/pki/scheduler.crt\n"))
	write("controller-manager.conf", []byte("users:\n- user:\n    client-certificate-data: no=base64\n"))

	var args []string
	for _, name := range []string{
		"pki", "kubelet", "ssl", "none", "admin.conf", "super-admin.conf", "scheduler.conf", "controller-manager.conf", "none.conf",
	} {
		args = append(args, filepath.Join(dir, name))
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", look, "sh"}, args...)...).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := string(out); strings.Contains(text, "KEY-----") || strings.Contains(text, strings.Split(string(key), "\n")[1]) ||
		strings.Contains(text, string(encode(key)[:40])) {
		t.Fatal("a key was printed")
	}
	got := map[string]string{}
	for _, f := range parse(string(out)) {
		got[strings.TrimPrefix(f.Path, dir+"/")] = f.Subject + f.Message
		if f.Authority != (f.Subject == "kubernetes") {
			t.Errorf("%s is an authority: %v", f.Path, f.Authority)
		}
	}
	want := map[string]string{
		"pki/ca.crt": "kubernetes", "pki/of-one/client.crt": "kube-apiserver", "kubelet/kubelet-client-current.pem": "kube-apiserver",
		"ssl/member.pem": "kube-apiserver",
		"admin.conf":     "kube-apiserver", "ssl/broken.pem": "not PEM, or cut off", "ssl/cut-in-a-line.pem": "not PEM, or cut off",
		"super-admin.conf": "not PEM, or cut off", "controller-manager.conf": "not PEM, or cut off",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func texts(content [][]byte) []string {
	var all []string
	for _, c := range content {
		all = append(all, string(c))
	}
	return all
}

// TestIn: what a host answers is sorted, and what is not all is said not to be all.
func TestIn(t *testing.T) {
	ca, leaf := pairs(t)
	is, err := leaf.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if q := Query(); len(q.Commands) != 1 || q.Commands[0].ID != answer {
		t.Fatalf("the query is %+v", q)
	}
	file := File{Path: "/etc/kubernetes/pki/x.crt", Subject: "kube-apiserver", NotAfter: is.NotAfter.UTC()}
	good := "# " + file.Path + "\n" + string(leaf.Cert) + string(ca.Cert)
	text := "# /etc/kubernetes/pki/y.crt\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + good
	const malformed = "not a certificate: x509: malformed certificate"
	for name, test := range map[string]struct {
		answers map[string]host.Result
		want    []File
		err     string
	}{
		"all": {
			map[string]host.Result{answer: {Stdout: []byte(text)}},
			[]File{file, {Path: "/etc/kubernetes/pki/y.crt", Message: malformed}}, "",
		},
		"none":      {map[string]host.Result{answer: {}}, nil, ""},
		"not asked": {nil, nil, "the host was not asked for its certificates"},
		"half": {
			map[string]host.Result{answer: {Stdout: []byte(good), Stderr: []byte("awk: killed\n"), ExitCode: 124}},
			[]File{file}, "not all could be read, exit code 124: awk: killed",
		},
		"stopped": {
			map[string]host.Result{answer: {Stdout: []byte(good), ExitCode: 124, Stopped: 10 * time.Second}},
			[]File{file}, "not all could be read: that did not end within 10s and was stopped",
		},
		"too many": {
			map[string]host.Result{answer: {Stdout: []byte(strings.Repeat("#", host.MaxContent))}},
			nil, "not all could be read: there are more than 262144 bytes of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := In(&host.Facts{Commands: test.answers})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// TestPlaces: the kubelet's own files are distinguished from those beside them, wherever it keeps them.
func TestPlaces(t *testing.T) {
	for path, want := range map[string]bool{
		"/var/lib/kubelet/pki/kubelet-client-current.pem":  true,
		"/var/lib/kubelet/pki/kubelet.crt":                 true,
		"/etc/kubernetes/kubelet.conf":                     true,
		"/etc/kubernetes/pki/apiserver-kubelet-client.crt": false,
		"/etc/kubernetes/admin.conf":                       false,
	} {
		if got := (File{Path: path}).InKubeletsPlace(); got != want {
			t.Errorf("%s is in the kubelet's place: %v", path, got)
		}
	}
}
