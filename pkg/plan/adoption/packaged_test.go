// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// made makes files below a directory of the test, and returns their paths.
func made(t *testing.T, names ...string) (dir string, paths []string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return dir, paths
}

// TestLeave: what packages own stays, with the directories that lead there, and all else goes, whatever its name; again it does nothing.
func TestLeave(t *testing.T) {
	dir, _ := made(t, "kubernetes/manifests/.kubelet-keep", "kubernetes/manifests/etcd.yaml", "kubernetes/pki/etcd/ca.key", "kubernetes/admin.conf",
		"kubernetes/.hidden", "kubernetes/..odd", "kubernetes/with blank/*", "kubernetes/manifests.d/x", "other")
	top := filepath.Join(dir, "kubernetes")
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	kept := []Owned{{Path: top + "/manifests", Package: "kubelet"}, {Path: top + "/manifests/.kubelet-keep", Package: "kubelet"}}
	for range 2 {
		c, is := leave(top, kept).(host.Command)
		if !is || len(c.Argv) > 0 {
			t.Fatalf("it does something: %v", c)
		}
		if out, err := exec.CommandContext(t.Context(), c.Undo[0], c.Undo[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var left []string
		if err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
			left = append(left, strings.TrimPrefix(path, dir))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{"", "/kubernetes", "/kubernetes/manifests", "/kubernetes/manifests/.kubelet-keep", "/other"}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
	}
	gone := leave(filepath.Join(dir, "none"), kept).(host.Command).Undo
	if out, err := exec.CommandContext(t.Context(), gone[0], gone[1:]...).CombinedOutput(); err != nil {
		t.Errorf("of a directory that is not there: %v\n%s", err, out)
	}
}

// TestPackagesAreAsked runs what hosts are asked, with the package managers' answers.
func TestPackagesAreAsked(t *testing.T) {
	dir, paths := made(t, "kubernetes/manifests/.kubelet-keep", "kubernetes/admin.conf", "bin/bridge")
	const dpkg = `case "$*" in "-S -- $dir/kubernetes $dir/kubernetes/* $dir/bin $dir/bin/*") ;; *) echo "$*" >&2; exit 2 ;; esac
echo "diversion by x from: $dir/bin/bridge"
echo "kubelet, kubeadm: $dir/kubernetes"
echo "kubelet: $dir/kubernetes/manifests/.kubelet-keep"
echo "kubelet: $dir/kubernetes/manifests/.that-is-gone"
echo "kubernetes-cni:amd64: $dir/bin/bridge"
exit 1`
	const rpm = `echo "kubelet $dir/kubernetes"
echo "kubelet $dir/kubernetes/manifests/.kubelet-keep"
echo "kubelet $dir/kubernetes-else"
echo "kubernetes-cni $dir/bin/bridge"
echo "bash /bin/bash"`
	for manager, script := range map[string]string{"dpkg-query": dpkg, "rpm": rpm} {
		t.Run(manager, func(t *testing.T) {
			programs := t.TempDir()
			for _, name := range []string{"sed", "awk"} {
				from, err := exec.LookPath(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(from, filepath.Join(programs, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(programs, manager), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-uc", packaged, "sh", dir+"/kubernetes", dir+"/bin")
			cmd.Env = []string{"PATH=" + programs, "dir=" + dir}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := []string{"kubelet " + dir + "/kubernetes", "kubelet " + paths[0], "kubernetes-cni " + paths[2]}
			if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
				t.Errorf("it says:\n%s", out)
			}
		})
	}
}
