// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
)

// key is a private key that is the same in every run.
func key(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestOpenDoor runs the lines with a home directory and system tools of its own, twice: nothing may pile up.
func TestOpenDoor(t *testing.T) {
	lines, err := openDoor("root", map[string][]byte{infra.KeyPrivateKey: key(t)})
	if err != nil {
		t.Fatal(err)
	}
	home, bin := t.TempDir(), t.TempDir()
	stubs := map[string]string{
		"getent":  "echo root:x:0:0:root:" + home + ":/bin/sh",
		"chown":   "true",
		"install": "mkdir -p \"$8\"",
	}
	for name, body := range stubs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.Join(lines, "\n")
	for range 2 {
		cmd := exec.Command("/bin/sh", "-e", "-c", script)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
	}
	got, err := os.ReadFile(filepath.Join(home, ".ssh", "authorized_keys"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := publicKey(map[string][]byte{infra.KeyPrivateKey: key(t)})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want+"\n" {
		t.Errorf("authorized_keys:\n%s\nwant once:\n%s", got, want)
	}
}

func TestOpenDoorLetsBecomeRoot(t *testing.T) {
	with := func(credentials map[string][]byte) string {
		lines, err := openDoor("ops", credentials)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	if got := with(map[string][]byte{infra.KeyPassword: []byte("x")}); !strings.Contains(got, "useradd") || !strings.Contains(got, "NOPASSWD") {
		t.Errorf("without a password for sudo, the user must be made and get root:\n%s", got)
	}
	if got := with(map[string][]byte{infra.KeyPassword: []byte("x"), infra.KeySudoPassword: []byte("y")}); strings.Contains(got, "sudoers") {
		t.Errorf("with a password for sudo, the host's sudoers are not ours:\n%s", got)
	}
}

func TestBadKeyIsNotQuoted(t *testing.T) {
	_, err := openDoor("root", map[string][]byte{infra.KeyPrivateKey: []byte("hunter2")})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}
