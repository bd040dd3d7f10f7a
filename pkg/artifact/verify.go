// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// Problem is a file of a bundle that is not as the manifest says.
type Problem struct {
	// Path is relative to the bundle, with slashes.
	Path   string
	Reason string

	sum string // what the content's sum should be
}

// VerifyError lists everything that is wrong with a bundle, by path.
type VerifyError struct {
	Bundle   string
	Problems []Problem
}

func (e *VerifyError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.Path+": "+p.Reason)
	}
	return fmt.Sprintf("bundle %s: %d files are not as its manifest says:\n%s", e.Bundle, len(e.Problems), strings.Join(lines, "\n"))
}

// contents are all files of a bundle by their path, except the manifest.
func (m Manifest) contents() (map[string]oci.Blob, error) {
	files := map[string]oci.Blob{}
	for _, i := range m.Items {
		files[i.Path] = i.Blob
		for _, b := range i.Blobs {
			files[blobRel(b.SHA256)] = b
		}
	}
	if m.SBOM != nil {
		files[SBOMName] = *m.SBOM
	}
	documents, err := m.layoutDocuments()
	for rel, data := range documents {
		files[rel] = oci.BlobOf(data)
	}
	return files, err
}

// layoutDocuments are the files of the image layout that follow from the manifest, by their path.
func (m Manifest) layoutDocuments() (map[string][]byte, error) {
	index, err := oci.Index(m.tagged())
	return map[string][]byte{layoutRel: []byte(oci.Layout), indexRel: index}, err
}

// walk calls visit for each file that is in the bundle's directory, with its path, except for the manifest and its signature.
func (b *Bundle) walk(visit func(rel string) error) error {
	return fs.WalkDir(os.DirFS(b.dir), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || rel == ManifestName || rel == SignatureName {
			return err
		}
		return visit(rel)
	})
}

// Verify reads all of the bundle. The error is a *VerifyError that names every file that is corrupt, missing or too many.
func (b *Bundle) Verify(ctx context.Context) error {
	want, err := b.manifest.contents()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var problems []Problem
	found := func(p Problem) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, p)
	}

	seen := map[string]bool{}
	err = b.walk(func(rel string) error {
		seen[rel] = true
		if _, ok := want[rel]; !ok {
			found(Problem{Path: rel, Reason: "it is not in the manifest"})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("bundle %s: %w", b.dir, err)
	}

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, rel := range slices.Sorted(maps.Keys(want)) {
		if !seen[rel] {
			found(Problem{Path: rel, Reason: "it is missing", sum: want[rel].SHA256})
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if reason := b.check(rel, want[rel]); reason != "" {
				found(Problem{Path: rel, Reason: reason, sum: want[rel].SHA256})
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("bundle %s: %w", b.dir, err)
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(x, y Problem) int { return strings.Compare(x.Path, y.Path) })
		return &VerifyError{Bundle: b.dir, Problems: problems}
	}
	return nil
}

// check says what is wrong with a file, or nothing.
func (b *Bundle) check(rel string, want oci.Blob) (reason string) {
	f, err := openVerified(b.dir, filepath.FromSlash(rel), want)
	if err == nil {
		_, err = io.Copy(io.Discard, f)
		err = errors.Join(err, f.Close())
	}
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt) && corrupt.Got.Size != want.Size:
		return fmt.Sprintf("it is corrupt: not the %d bytes that it must have", want.Size)
	case errors.As(err, &corrupt):
		return fmt.Sprintf("it is corrupt: sha256 %s, must be %s", corrupt.Got.SHA256, want.SHA256)
	case err != nil:
		return err.Error()
	}
	return ""
}

// sameManifest says whether dir holds a bundle with exactly this manifest.
func sameManifest(dir string, manifest []byte) bool {
	data, err := os.ReadFile(filepath.Join(dir, ManifestName))
	return err == nil && bytes.Equal(data, manifest)
}
