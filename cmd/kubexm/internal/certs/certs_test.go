// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
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
	write("kubelet/kubelet-client-2026-01-01-00-00-00.pem", leaf.Cert, key)
	write("kubelet/kubelet-client-current.pem", key, leaf.Cert, ca.Cert)
	write("ssl/member-key.pem", key)
	write("ssl/member.pem", leaf.Cert)
	write("ssl/broken.pem", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n"))
	write("admin.conf", []byte("users:\n- name: admin\n  user:\n    client-certificate-data: "), encode(leaf.Cert),
		[]byte("\n    client-key-data: "), encode(key), []byte("\n"))
	write("scheduler.conf", []byte("users:\n- user:\n    client-certificate: /etc/kubernetes/pki/scheduler.crt\n"))

	var args []string
	for _, name := range []string{"pki", "kubelet", "ssl", "none", "admin.conf", "scheduler.conf", "none.conf"} {
		args = append(args, filepath.Join(dir, name))
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", look, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := string(out); strings.Contains(text, "KEY") || strings.Contains(text, string(encode(key)[:40])) {
		t.Fatal("a key was printed")
	}
	got := map[string]string{}
	for _, c := range parse(string(out)) {
		got[strings.TrimPrefix(c.Path, dir+"/")] = c.Subject + string(c.Status)
		if c.Authority != (c.Subject == "kubernetes") {
			t.Errorf("%s is an authority: %v", c.Path, c.Authority)
		}
	}
	want := map[string]string{
		"pki/ca.crt": "kubernetes", "kubelet/kubelet-client-current.pem": "kube-apiserver", "ssl/member.pem": "kube-apiserver",
		"ssl/broken.pem": string(Unreadable), "admin.conf": "kube-apiserver",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOfHalf: a host on which the script fails is not one without certificates.
func TestOfHalf(t *testing.T) {
	e := engine.New(engine.Options{Dial: func(_ context.Context, name string) (host.Host, error) {
		m := fake.New(name)
		m.OnCommand = func(*fake.Machine, host.Command) host.Result {
			return host.Result{ExitCode: 127, Stderr: []byte("sh: awk: not found\n")}
		}
		return m.Connect(), nil
	}})
	got, err := Of(t.Context(), e, "prod", []string{"node1"}, time.Now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []Certificate{{Cluster: "prod", Host: "node1", Status: Unreadable, Message: "not all could be read, exit code 127: sh: awk: not found"}}
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

// TestOf: what hosts answer is judged, in their order, and one that does not answer hides nothing of the others.
func TestOf(t *testing.T) {
	_, leaf := pairs(t)
	is, err := leaf.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{Dial: func(_ context.Context, name string) (host.Host, error) {
		if name == "gone" {
			return nil, &host.Error{Kind: host.KindUnreachable, Host: name, Message: "cannot connect"}
		}
		m := fake.New(name)
		m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
			if c.Argv[0] != "/bin/sh" {
				t.Errorf("a command that nobody should run: %v", c.Argv)
			}
			files := []byte("# /etc/kubernetes/pki/x.key\n# /etc/kubernetes/pki/x.crt\n")
			return host.Result{Stdout: append(files, leaf.Cert...)}
		}
		return m.Connect(), nil
	}})
	const day = 24 * time.Hour
	for _, c := range []struct {
		now  time.Time
		days int
		want Status
	}{
		{is.NotAfter.Add(-90 * day), 90, Good},
		{is.NotAfter.Add(-90*day + time.Second), 89, Ending},
		{is.NotAfter.Add(-time.Second), 0, Ending},
		{is.NotAfter, -1, Ended},
		{is.NotAfter.Add(36 * time.Hour), -2, Ended},
	} {
		got, err := Of(t.Context(), e, "prod", []string{"node2", "gone", "node1"}, c.now, 90*day)
		var failed *engine.Error
		if !errors.As(err, &failed) || len(failed.Failures) != 1 {
			t.Fatalf("error %v, want that of one host", err)
		}
		if len(got) != 2 || got[0].Host != "node2" || got[1].Host != "node1" {
			t.Fatalf("certificates %v", got)
		}
		if got[0].Status != c.want || got[0].DaysLeft != c.days {
			t.Errorf("at %s: %s, %d days; want %s, %d", c.now, got[0].Status, got[0].DaysLeft, c.want, c.days)
		}
	}
}
