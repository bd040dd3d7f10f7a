// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// A file system that somebody has mounted at a path before it is claimed stays mounted, and an undo leaves on it what was there.
func TestClaimOfMount(t *testing.T) {
	for name, tt := range map[string]struct {
		before string
		change func(path string) host.Change
		want   []string
	}{
		"Empty":     {"", func(path string) host.Change { return host.Claim{Paths: []string{path}} }, nil},
		"Kept":      {"theirs", func(path string) host.Change { return host.Claim{Paths: []string{path}} }, []string{"theirs"}},
		"Inherited": {"theirs", func(path string) host.Change { return host.Inherit{Paths: []string{path}} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			disk := filepath.Join(t.TempDir(), "user's disk")
			mount(t, disk, 0o750)
			if tt.before != "" {
				write(t, filepath.Join(disk, tt.before), "before")
			}
			s := begin(t)
			if _, err := s.Do(t.Context(), host.Act{Node: "n", Changes: []host.Change{tt.change(disk)}}); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(disk, "member", "wal", ".hidden"), "the cluster's")
			if tt.before != "" {
				write(t, filepath.Join(disk, tt.before), "the cluster's")
			}
			mount(t, filepath.Join(disk, "pod"), 0o755) // what the cluster has mounted below is unmounted
			write(t, filepath.Join(disk, "pod", "file"), "a pod's")
			was := mounted(t, disk)
			if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
				t.Fatal(err)
			}
			if mounted(t, disk) != was {
				t.Error("the disk is not mounted any more")
			}
			var left []string
			entries, err := os.ReadDir(disk)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if strings.Join(left, " ") != strings.Join(tt.want, " ") {
				t.Errorf("there is %q, want %q", left, tt.want)
			}
			if info, err := os.Stat(disk); err != nil || info.Mode().Perm() != 0o750 {
				t.Errorf("it has the mode %v (%v)", info.Mode(), err)
			}
			for _, name := range tt.want {
				if content, err := os.ReadFile(filepath.Join(disk, name)); err != nil || string(content) != "before" {
					t.Errorf("%s has %q (%v)", name, content, err)
				}
			}
		})
	}
}

// What is mounted below a claimed path is on a disk of its own: it is not copied to the undo store, and stays as it is there.
func TestClaimOfMountBelow(t *testing.T) {
	state, claimed := t.TempDir()+"/state", filepath.Join(t.TempDir(), "data")
	write(t, filepath.Join(claimed, "theirs"), "before")
	disk := filepath.Join(claimed, "disk")
	mount(t, disk, 0o750)
	write(t, filepath.Join(disk, "large"), "a disk's")
	write(t, filepath.Join(state, "undo", "7.part", "of"), "a copy that was cut")
	s, err := newHost(t, Config{Name: "here", stateDir: state}).Begin(t.Context(), host.Run{ID: "r", Holder: "the test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(state, "undo", "7.part")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the part of a copy is there still: %v", err)
	}
	if _, err := s.Do(t.Context(), host.Act{Node: "n", Changes: []host.Change{host.Claim{Paths: []string{claimed}}}}); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join(state, "undo", "1", "theirs")); err != nil || string(kept) != "before" {
		t.Errorf("kept is %q (%v)", kept, err)
	}
	if _, err := os.Stat(filepath.Join(state, "undo", "1", "disk", "large")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is mounted below was copied: %v", err)
	}
	write(t, filepath.Join(claimed, "theirs"), "the cluster's")
	if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(claimed, "theirs")); err != nil || string(content) != "before" {
		t.Errorf("after the undo there is %q (%v)", content, err)
	}
	if err := s.End(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// A file system that was mounted at a claimed path and is not any more has data that nothing removes: an undo says so.
func TestClaimOfMountThatIsGone(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	mount(t, disk, 0o700)
	s := begin(t)
	if _, err := s.Do(t.Context(), host.Act{Node: "n", Changes: []host.Change{host.Claim{Paths: []string{disk}}}}); err != nil {
		t.Fatal(err)
	}
	unmount(t, disk)
	var e *host.Error
	if err := s.Undo(t.Context(), host.Scope{}, nil); !errors.As(err, &e) || !strings.Contains(e.Output, "mount it, to be emptied") {
		t.Errorf("the undo says %v", err)
	}
	mount(t, disk, 0o700)
	if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
}

// An entry of before does not say what was mounted: what it says is undone as it was then.
func TestClaimOfMountBefore(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	mount(t, disk, 0o700)
	state := t.TempDir() + "/state"
	write(t, filepath.Join(state, "undo.log"), "+ 1 r n t claimed_empty claim "+disk+" 0700 0 0 ;\n")
	h := newHost(t, Config{Name: "here", stateDir: state})
	s, err := h.Begin(t.Context(), host.Run{ID: "r2", Holder: "the test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
	if mounted(t, disk) != mounted(t, filepath.Dir(disk)) {
		t.Error("the file system is mounted still")
	}
	if err := s.End(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// mount mounts an empty file system, whose root has this mode, until the end of the test.
func mount(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", path, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func unmount(t *testing.T, path string) {
	t.Helper()
	if err := unix.Unmount(path, 0); err != nil {
		t.Fatal(err)
	}
}

// mounted is the file system that path is on.
func mounted(t *testing.T, path string) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Dev
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
