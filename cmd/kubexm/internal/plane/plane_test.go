// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/openssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestProgramsAreVerified: of a program that is executed here, every byte is what the bundle's manifest says.
func TestProgramsAreVerified(t *testing.T) {
	dir := t.TempDir()
	const program = "#!/bin/sh\nexit 0\n"
	sum := sha256.Sum256([]byte(program))
	var items []map[string]any
	for name, component := range map[string]string{
		"etcd": "etcd", "kube-apiserver": artifact.Kubernetes, "kube-controller-manager": artifact.Kubernetes,
	} {
		path := component + "/v1.36.3/" + runtime.GOARCH + "/" + name
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
		items = append(items, map[string]any{
			"kind": "binary", "component": component, "version": "v1.36.3", "arch": runtime.GOARCH, "name": name, "path": path,
			"sha256": hex.EncodeToString(sum[:]), "size": len(program), "source": "go:example.com/" + name + "@v1.36.3",
		})
	}
	manifest, err := json.Marshal(map[string]any{
		"formatVersion": 1, "kubernetesVersion": "v1.36.3", "architectures": []string{runtime.GOARCH}, "createdBy": "test",
		"components": map[string]string{"etcd": "v1.36.3", artifact.Kubernetes: "v1.36.3"}, "items": items,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.ManifestName), manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	bundle, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Options{Bundle: bundle}).settings(); err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		path := item["path"].(string)
		for _, other := range []string{"#!/bin/sh\nexit 1\n", program + "#", ""} {
			if err := os.WriteFile(filepath.Join(dir, path), []byte(other), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := (Options{Bundle: bundle}).settings()
			var corrupt *artifact.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Path != filepath.Join(dir, path) {
				t.Errorf("%s with %q: got %v", path, other, err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDialWithTheAgent: where the plane's objects have nothing to log in with, the user's own agent is asked, of the host and of its jump
// host, and what they have stays.
func TestDialWithTheAgent(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptossh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sshtest.RunAgent(t, filepath.Join(dir, "agent"), private)
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("IdentityAgent "+dir+"/agent\nIdentityFile "+dir+"/none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func() *sshtest.Server {
		return sshtest.New(t, func(e *sshtest.Exec) { e.Hang() }, func(c *cryptossh.ServerConfig) {
			c.NoClientAuth = false
			c.PublicKeyCallback = func(_ cryptossh.ConnMetadata, shown cryptossh.PublicKey) (*cryptossh.Permissions, error) {
				if !bytes.Equal(shown.Marshal(), key.Marshal()) {
					return nil, errors.New("refused")
				}
				return nil, nil
			}
		})
	}
	far, jump := server(), server()
	to := ssh.Config{
		Name: "node1", Address: far.Address, Port: far.Port, User: "ops", HostKey: ssh.HostKey{Pinned: []string{far.HostKey}},
		Jump: &ssh.Config{Address: jump.Address, Port: jump.Port, User: "jump", HostKey: ssh.HostKey{Pinned: []string{jump.HostKey}}},
	}
	o := Options{OpenSSH: &openssh.Client{Config: config}}
	connected, err := o.dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if err := connected.Close(); err != nil {
		t.Error(err)
	}
	to.Auth.Password = secret.New("wrong")
	if _, err := o.dial(t.Context(), to); host.KindOf(err) != host.KindAuth || strings.Contains(err.Error(), "jump host") {
		t.Errorf("the password that the objects have is not what is logged in with: %v", err)
	}
}
