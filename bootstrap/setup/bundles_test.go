// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestBundlesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bundle.tar")
	writeFile(t, file, "not a bundle")
	elsewhere := filepath.Join(t.TempDir(), "token")
	writeFile(t, elsewhere, "of a ServiceAccount")
	for name, to := range map[string]string{"out": elsewhere, "zero": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		path string
		from spec.Bundle
		want string
	}{
		"none":            {"", spec.Bundle{}, "start it with --bundle"},
		"no directory":    {"", spec.Bundle{Path: file}, "start it with --bundle"},
		"no such file":    {dir, spec.Bundle{Path: file + ".gone"}, "no such file"},
		"another digest":  {dir, spec.Bundle{Path: "bundle.tar", SHA256: strings.Repeat("0", 64)}, "as cluster.artifacts.bundle.sha256 says"},
		"without a store": {file, spec.Bundle{}, "a store is needed"},
		"a device":        {dir, spec.Bundle{Path: "/dev/zero", SHA256: strings.Repeat("0", 64)}, "does not lie in the directory of bundles"},
		"a parent":        {dir, spec.Bundle{Path: "../" + filepath.Base(filepath.Dir(elsewhere)) + "/token"}, "does not lie in the directory of bundles"},
		"a link to a file": {
			dir, spec.Bundle{Path: "out", SHA256: strings.Repeat("0", 64)}, "path escapes from parent",
		},
		"a link to a device": {dir, spec.Bundle{Path: "zero", SHA256: strings.Repeat("0", 64)}, "path escapes from parent"},
		"a pipe":             {dir, spec.Bundle{Path: "pipe", SHA256: strings.Repeat("0", 64)}, "is neither a regular file nor a directory"},
		"beside the one":     {file, spec.Bundle{Path: filepath.Join(dir, "pipe")}, "was started with one bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := setup.Bundles(tc.path, nil, nil)(t.Context(), spec.Artifacts{Bundle: tc.from}, "v1.36.3")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A digest that was refused is refused again without reading the archive, and its owner's change of the archive is seen.
func TestBundlesRememberDigests(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "bundle.tar")
	writeFile(t, file, "not a bundle")
	open := setup.Bundles(dir, storeOf(t), nil)
	pinned := func(sum string) error {
		_, err := open(t.Context(), spec.Artifacts{Bundle: spec.Bundle{Path: file, SHA256: sum}}, "v1.36.3")
		return err
	}
	wrong := strings.Repeat("0", 64)
	if err := pinned(wrong); err == nil || !strings.Contains(err.Error(), "not "+wrong) {
		t.Fatalf("got %v", err)
	}
	// Same size and time, other content: anyone who asked would be answered from what was read before.
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "NOT A BUNDLE")
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%x", sha256.Sum256([]byte("not a bundle")))
	if err := pinned(strings.Repeat("1", 64)); err == nil || !strings.Contains(err.Error(), before) {
		t.Errorf("the archive was read again: %v", err)
	}
	writeFile(t, file, "other content, no bundle")
	after := fmt.Sprintf("%x", sha256.Sum256([]byte("other content, no bundle")))
	if err := pinned(wrong); err == nil || !strings.Contains(err.Error(), after) {
		t.Errorf("the change was not seen: %v", err)
	}
}

// A bundle that cannot be read to its end keeps nobody from another one, and anyone who asks for it waits no longer than they want to.
func TestBundlesDoNotWaitForEachOther(t *testing.T) {
	dir := t.TempDir()
	bundleOf(t, dir, "v1.36.3")
	// A sparse archive takes longer to read than the test runs.
	f, err := os.Create(filepath.Join(dir, "endless.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<42), f.Close()); err != nil {
		t.Fatal(err)
	}
	open := setup.Bundles(dir, storeOf(t), nil)
	reading, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := open(reading, spec.Artifacts{Bundle: spec.Bundle{Path: "endless.tar"}}, "v1.36.3")
		ended <- err
	}()
	if _, err := open(t.Context(), spec.Artifacts{Bundle: spec.Bundle{Path: "v1.36.3"}}, "v1.36.3"); err != nil {
		t.Errorf("another bundle: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the read ended before it was cancelled: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A directory may have a bundle for each version that hosts have; which is taken is the version's to say.
func TestBundlesOfSeveralVersions(t *testing.T) {
	dir := t.TempDir()
	bundleOf(t, dir, "v1.35.4")
	bundleOf(t, dir, "v1.36.3")
	open := setup.Bundles(dir, nil, nil)
	for _, version := range []string{"v1.35.4", "v1.36.3", "v1.35.4"} {
		b, err := open(t.Context(), spec.Artifacts{}, version)
		if err != nil || b.Version("kubernetes") != version {
			t.Errorf("%s: %v, %v", version, b, err)
		}
	}
	if _, err := open(t.Context(), spec.Artifacts{}, "v1.37.0"); err == nil || !strings.Contains(err.Error(), "are for Kubernetes v1.35.4, v1.36.3, not v1.37.0") {
		t.Errorf("got %v", err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bundleOf makes a bundle with nothing in it below dir.
func bundleOf(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, version, "manifest.json"),
		`{"formatVersion": 1, "kubernetesVersion": "`+version+`", "architectures": ["amd64"], "components": {"kubernetes": "`+version+`"}, "items": []}`)
}

func storeOf(t *testing.T) *artifact.Store {
	t.Helper()
	s, err := artifact.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
