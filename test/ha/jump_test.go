// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
)

// TestJumpHost makes a cluster of hosts that are reached through another one, and logged in to by the keys of an agent, of which none is in
// the config file or in what the command keeps. What knows no config file goes the same way.
func TestJumpHost(t *testing.T) {
	const spec = "  roleGroups: {master: [$1], worker: [$2]}\n  kubernetes: {version: v1.36.3}\n"
	c := start(t, "haj", 3, spec)
	runAgent(t, c.Hosts[0].KeyPath)
	c.Jump, c.Agent = c.Hosts[2], true
	c.given = c.Hosts[:2]
	c.write(spec)
	c.create()
	c.works()
	c.staysAsItIs()
	if out := c.on(c.Hosts[0], "journalctl", "--no-pager", "-t", "sshd"); !strings.Contains(out, "for ops from "+c.Jump.Address+" ") {
		t.Errorf("nobody came through the jump host:\n%s", out)
	}
	c.keptNowhere(c.Hosts[0].KeyPath)
	if out := c.kubexm("run", "command", "--", "hostname"); !strings.Contains(out, c.Hosts[1].Name) {
		t.Errorf("without the config file:\n%s", out)
	}
	c.isReset()
}

// keptNowhere wants the private key to be in no file of the command's state, neither as it is nor as objects have it.
func (c *cluster) keptNowhere(path string) {
	t := c.t
	t.Helper()
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(key), "\n")[1]
	err = filepath.WalkDir(filepath.Join(c.Dir, ".kubexm"), func(file string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		if strings.Contains(string(content), line) || strings.Contains(string(content), base64.StdEncoding.EncodeToString(key)) {
			t.Errorf("%s has the agent's key", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runAgent has an SSH agent run for the test and what it starts, with one key.
func runAgent(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(content)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	sshtest.RunAgent(t, socket, key)
	t.Setenv("SSH_AUTH_SOCK", socket)
}
