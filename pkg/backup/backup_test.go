// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/local"
)

// save writes a backup that is whole.
func save(t *testing.T, dir, cluster, authority string, hour int) string {
	t.Helper()
	content := strings.Repeat(fmt.Sprintf("snapshot %s %d\n", cluster, hour), 100_000) // more than one exchange brings
	sum := sha256.Sum256([]byte(content))
	path := filepath.Join(dir, fmt.Sprintf("etcd-%s-20261123T%02d0000Z-cp1.db", cluster, hour))
	manifest := fmt.Sprintf(`{"cluster": %q, "authority": %q, "kubernetesVersion": "v1.36.3", "etcdVersion": "3.6.14", "etcdClusterID": "a1",
		"host": "cp1", "time": "2026-11-23T%02d:00:00Z", "revision": 7, "size": %d, "sha256": %q}`,
		cluster, authority, hour, len(content), hex.EncodeToString(sum[:]))
	put(t, path, content)
	put(t, strings.TrimSuffix(path, ".db")+".json", manifest)
	return path
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := save(t, dir, "prod", "SHA256:a", 1)
	if m, err := backup.Read(path); err != nil || m.Cluster != "prod" || m.Revision != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[100] ^= 1
	put(t, path, string(content))
	if _, err := backup.Read(path); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a damaged one: %v", err)
	}
	manifest := strings.TrimSuffix(path, ".db") + ".json"
	for what, text := range map[string]string{
		"nothing": "", "a list": "[]", "without an authority": `{"cluster": "prod", "revision": 1, "size": 1, "sha256": "` + strings.Repeat("a", 64) + `"}`,
		"a field that is not known": `{"cluster": "prod", "key": "secret"}`,
	} {
		put(t, manifest, text)
		if _, err := backup.Read(path); err == nil || !strings.Contains(err.Error(), "is no manifest") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a manifest: %v", err)
	}
}

// TestPrune removes the oldest that are whole and of the cluster, and nothing else.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for hour := range 4 {
		save(t, dir, "prod", "SHA256:a", hour)
	}
	save(t, dir, "prod", "SHA256:other", 10)
	save(t, dir, "test", "SHA256:a", 0)
	put(t, save(t, dir, "prod", "SHA256:a", 20), "cut short")
	put(t, filepath.Join(dir, "etcd-prod-notes.json"), "{}")
	const newest = "etcd-prod-20261123T030000Z-cp1"
	if err := backup.Prune(dir, "prod", "SHA256:a", newest, 0); err != nil || len(names(t, dir)) != 7*2+1 {
		t.Errorf("0 keeps all: %v %v", names(t, dir), err)
	}
	if err := backup.Prune(dir, "prod", "SHA256:a", newest, 2); err != nil {
		t.Fatal(err)
	}
	want := "etcd-prod-20261123T020000Z-cp1 etcd-prod-20261123T030000Z-cp1 etcd-prod-20261123T100000Z-cp1 etcd-test-20261123T000000Z-cp1"
	all, err := backup.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, b := range all {
		got[b.Name] = true
	}
	for name := range strings.FieldsSeq(want) {
		if !got[name] {
			t.Errorf("%s is gone", name)
		}
	}
	if len(all) != 4 || len(names(t, dir)) != 5*2+1 {
		t.Errorf("there are %v", names(t, dir))
	}
	if all[0].Name != "etcd-prod-20261123T100000Z-cp1" {
		t.Errorf("the newest is %s", all[0].Name)
	}
	if none, err := backup.List(filepath.Join(dir, "none")); err != nil || len(none) != 0 {
		t.Errorf("a directory that is not there has %v, %v", none, err)
	}
}

// TestPruneKeepsTheSaved: what was just saved counts, and stays, although others are of a clock that was ahead.
func TestPruneKeepsTheSaved(t *testing.T) {
	for keep, want := range map[int][]string{
		1: {"etcd-prod-20261123T010000Z-cp1"},
		2: {"etcd-prod-20261123T040000Z-cp1", "etcd-prod-20261123T010000Z-cp1"},
	} {
		dir := t.TempDir()
		for hour := range 5 {
			save(t, dir, "prod", "SHA256:a", hour)
		}
		if err := backup.Prune(dir, "prod", "SHA256:a", "etcd-prod-20261123T010000Z-cp1", keep); err != nil {
			t.Fatal(err)
		}
		all, err := backup.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range all {
			got = append(got, b.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("keep %d: there are %v, want %v", keep, got, want)
		}
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFetch copies a backup from a host, this machine's own shell here, and leaves nothing of one that is damaged.
func TestFetch(t *testing.T) {
	there, here := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	h, err := local.New(local.Config{Name: "cp1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	path := save(t, there, "prod", "SHA256:a", 1)
	b, err := backup.Fetch(t.Context(), h, path, here)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := backup.Read(b.Path); err != nil || m != b.Manifest {
		t.Errorf("%+v, %v", m, err)
	}
	if info, err := os.Stat(b.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it is for more than its owner: %v", err)
	}
	bad := save(t, there, "prod", "SHA256:a", 2)
	content, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	put(t, bad, string(content))
	if _, err := backup.Fetch(t.Context(), h, bad, here); err == nil || !strings.Contains(err.Error(), "it is damaged there") {
		t.Errorf("a damaged one: %v", err)
	}
	if _, err := backup.Fetch(t.Context(), h, filepath.Join(there, "none.db"), here); err == nil || !strings.Contains(err.Error(), "is not fetched") {
		t.Errorf("one that is not there: %v", err)
	}
	if entries, err := os.ReadDir(here); err != nil || len(entries) != 2 {
		t.Errorf("there are %v (%v)", entries, err)
	}
}
