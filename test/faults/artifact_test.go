// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
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
		// file is a glob in the bundle; with biggest, of what it matches.
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
			corrupt, file := tr.corruptBundle(c.file)
			o := subject.options(nil)
			o.Artifacts = step.FromBundle(corrupt)
			_, err := engine.New(o).Run(t.Context(), p)
			f := onlyFailure(t, err)
			if f.Node != h.Name+"/"+c.node || !strings.Contains(f.Error(), filepath.Base(file)) {
				t.Errorf("node %q, and not %s is named: %v", f.Node, file, err)
			}
			if found := tr.exec(h, "sh", "-c", c.installed); found != "" {
				t.Errorf("installed although %s is corrupt: %s", file, found)
			}
			tr.demandTidy(h)

			tr.runUntil(subject.options(nil), p, c.node)
			tr.reset(nil)
		})
	}
}

// corruptBundle is the bundle with one bit of one file the other way: of the largest file of the pattern.
func (tr *trial) corruptBundle(pattern string) (b *artifact.Bundle, file string) {
	tr.Helper()
	from, to := subject.bundle.Dir(), filepath.Join(tr.TempDir(), "bundle")
	file = largest(tr.T, filepath.Join(from, pattern))
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
	if b, err = artifact.Open(tr.Context(), to, store); err != nil {
		tr.Fatal(err)
	}
	return b, file
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
