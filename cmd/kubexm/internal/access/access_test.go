// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC7KlRI4aZNDMoDfgl10PXVBxUFrSseaTrhHhVby8jLv"

// TestHostKeys: the config file's key comes before that of known_hosts, where the port counts.
func TestHostKeys(t *testing.T) {
	known := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(known, []byte("172.16.0.2 "+key+"\n[172.16.0.3]:2222 "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts, err := access.New([]config.Host{
		{Name: "known", Address: "172.16.0.2", Port: 22},
		{Name: "pinned", Address: "172.16.0.2", Port: 22, HostKey: "SHA256:pin"},
		{Name: "port", Address: "172.16.0.3", Port: 2222},
		{Name: "other-port", Address: "172.16.0.3", Port: 22},
	}, access.Options{KnownHosts: []string{known, filepath.Join(t.TempDir(), "missing")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"known": key, "pinned": "SHA256:pin", "port": key, "other-port": "", "nobody": ""} {
		if got := hosts.HostKey(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestUnreadable: all hosts whose key file cannot be read are named at once.
func TestUnreadable(t *testing.T) {
	_, err := access.New([]config.Host{{Name: "a", PrivateKeyPath: "/nonexistent"}, {Name: "b", PrivateKeyPath: "/nonexistent"}}, access.Options{})
	if err == nil || !strings.Contains(err.Error(), "host a") || !strings.Contains(err.Error(), "host b") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownName(t *testing.T) {
	hosts, err := access.New(nil, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.Dial(t.Context(), "nobody"); host.KindOf(err) != host.KindInvalid {
		t.Errorf("got %v", err)
	}
}

// TestSharedKeys: hosts with one key are found, whichever way the key is pinned.
func TestSharedKeys(t *testing.T) {
	const (
		pinned      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA0/fXqx0SfFLhF88hACNiYrXn19LsKbAcJHeaAHSf+L"
		fingerprint = "SHA256:CMImvU4dFoLiiZ5GHxusRzhTnzS0v1sTm9fM9+yhKEo"
		another     = "SHA256:AAAAAU4dFoLiiZ5GHxusRzhTnzS0v1sTm9fM9+yhKEo"
	)
	h, err := access.New([]config.Host{
		{Name: "b", Address: "10.0.0.2", HostKey: fingerprint}, {Name: "a", Address: "10.0.0.1", HostKey: pinned + " root@image"},
		{Name: "c", Address: "10.0.0.3", HostKey: another}, {Name: "d", Address: "10.0.0.4"}, {Name: "e", Address: "10.0.0.5"},
	}, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"a", "b"}}, h.SharedKeys()); diff != "" {
		t.Error(diff)
	}
}
