// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const behindJumpHosts = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  proxyJump: {host: bastion.example.org, user: jump, JUMP}
  hosts:
  - {name: node1, address: 192.0.2.1, privateKeyPath: KEY}
  - {name: node2, address: 192.0.2.2, privateKeyPath: KEY, proxyJump: none}
  roleGroups: {master: [node1], worker: [node2]}
  kubernetes: {version: v1.36.3}
`

// TestJumpHostsAreRemembered: commands without the config file reach hosts as it says, and have no password of a jump host's.
func TestJumpHostsAreRemembered(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{}
	remember := func(jump string) (*config.Cluster, *clusterdir.Inventory) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(strings.NewReplacer("KEY", key, "JUMP", jump).Replace(behindJumpHosts)), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := a.load(&source{file: file})
		if err != nil {
			t.Fatal(err)
		}
		d := &declared{Cluster: c, bundle: &artifact.Bundle{}}
		if d.dir, err = clusterdir.Of(t.TempDir(), c.Name); err != nil {
			t.Fatal(err)
		}
		if d.hosts, err = access.New(c.Hosts, a.trusting(&source{}, d.dir)); err != nil {
			t.Fatal(err)
		}
		if err := d.dir.WriteInventory(d.inventory()); err != nil {
			t.Fatal(err)
		}
		known, err := d.dir.Inventory()
		if err != nil {
			t.Fatal(err)
		}
		return c, known
	}
	const pin = "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"
	c, known := remember("port: 2222, privateKeyPath: " + key + ", hostKey: \"" + pin + "\"")
	hosts, err := a.remembered(&source{}, known)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range hosts {
		if diff := cmp.Diff(c.Hosts[i].ProxyJump, h.ProxyJump); diff != "" {
			t.Errorf("%s is reached otherwise: %s", h.Name, diff)
		}
	}
	if j := hosts[0].ProxyJump; j.HostKey != pin || j.PrivateKeyPath != key || j.Port != 2222 {
		t.Errorf("the jump host is %+v", j)
	}
	_, known = remember("password: hunter2")
	_, err = a.remembered(&source{}, known)
	if err == nil || !strings.Contains(err.Error(), "node1 is behind the jump host bastion.example.org, which needs a password that is not remembered") {
		t.Errorf("error %v", err)
	}
}

// TestNothingToLogInWithHere: a host without key and password is refused with its line where there is no agent and no key of OpenSSH's.
func TestNothingToLogInWithHere(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	for name, content := range map[string]string{"key": "a key", "ssh_config": "IdentityFile " + dir + "/none\n", "config.yaml": strings.NewReplacer(
		"privateKeyPath: KEY, proxyJump", "proxyJump", "KEY", filepath.Join(dir, "key"), ", JUMP", "").Replace(behindJumpHosts)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{}
	a.openSSH.Config = filepath.Join(dir, "ssh_config")
	_, err := a.load(&source{file: file})
	for _, want := range []string{
		"config.yaml:5: spec.proxyJump: has neither password nor privateKeyPath, and no SSH agent runs (SSH_AUTH_SOCK is not set), and OpenSSH has no key for jump@bastion.example.org",
		"config.yaml:8: spec.hosts[1]: has neither password nor privateKeyPath, and no SSH agent runs (SSH_AUTH_SOCK is not set), and OpenSSH has no key for root@192.0.2.2",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	t.Setenv("SSH_AUTH_SOCK", "/run/its")
	if _, err := a.load(&source{file: file}); err != nil {
		t.Errorf("there is an agent: %v", err)
	}
}
