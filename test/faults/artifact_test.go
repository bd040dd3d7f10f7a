// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A file of the bundle that is not what the manifest says is refused by its name, nothing of it is installed, and the next
// run goes on from there with a bundle that is whole.
func TestArtifactCorrupt(t *testing.T) {
	for _, c := range []struct {
		name string
		// file is a pattern in the bundle: the largest that it fits.
		file, node string
		// installed prints something when the file is on the host, whole or not.
		installed string
	}{
		{
			name: "Program", file: "containerd/*/amd64/containerd", node: "runtime/containerd/containerd/programs",
			installed: "ls -d /usr/local/bin/*containerd* /usr/local/bin/.* 2>/dev/null | grep -v '/\\.*$' || true",
		},
		{
			name: "Image", file: "images/blobs/sha256/*", node: "runtime/images/containerd/images",
			installed: "ctr --namespace k8s.io images list --quiet",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t)
			p := tr.plan(1)
			h := pool.Hosts[0]
			file := largest(t, filepath.Join(subject.bundle.Dir(), c.file))
			o := subject.options(nil)
			o.Artifacts = step.FromBundle(tr.corruptBundle(file))
			_, err := engine.New(o).Run(t.Context(), p)
			f := onlyFailure(t, err)
			if f.Node != h.Name+"/"+c.node || !strings.Contains(f.Error(), filepath.Base(file)) {
				t.Errorf("node %q, and not %s is named: %v", f.Node, file, err)
			}
			if found := tr.exec(h, "sh", "-c", c.installed); found != "" {
				t.Errorf("installed although %s is corrupt: %s", file, found)
			}
			// Files that are whole may wait there for the next run, and so may parts of those that were being sent ahead when this one
			// ended, which the next begins by removing.
			if found := tr.exec(h, "sh", "-c", "ls /var/lib/kubexm/staging | grep -e "+digest(t, file)+" || true"); found != "" {
				t.Errorf("staged although %s is corrupt: %s", file, found)
			}

			tr.runUntil(subject.options(nil), p, c.node)
			tr.reset(nil)
		})
	}
}

// corruptBundle is the bundle with one bit of one file the other way.
func (tr *trial) corruptBundle(file string) *artifact.Bundle {
	tr.Helper()
	from, to := subject.bundle.Dir(), filepath.Join(tr.TempDir(), "bundle")
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch target := filepath.Join(to, rel); {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case path == file:
			return copyFlipped(path, target)
		default:
			return link(path, target)
		}
	})
	if err != nil {
		tr.Fatal(err)
	}
	store, err := artifact.OpenStore("")
	if err != nil {
		tr.Fatal(err)
	}
	b, err := artifact.Open(tr.Context(), to, store)
	if err != nil {
		tr.Fatal(err)
	}
	return b
}

// digest is that of a file's content, in hex.
func digest(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(content))
}

func largest(t *testing.T, pattern string) (file string) {
	t.Helper()
	matches, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var most int64 = -1
	for _, m := range matches {
		info, err := os.Stat(m)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			most, file = info.Size(), m
		}
	}
	if file == "" {
		t.Fatalf("nothing in the bundle is called %s", pattern)
	}
	return file
}

// copyFlipped copies a file with one bit in its middle the other way.
func copyFlipped(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	content[len(content)/2] ^= 1
	return os.WriteFile(to, content, 0o755)
}

// link makes a second link, or where that cannot be, a copy.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}
