// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Bundles opens the bundle that a cluster names, or the one at path where it names none. path is a directory or an archive; a
// cluster names what lies in that directory, and nothing else of the manager's files is opened. A directory may have one
// bundle for each version that hosts have, which are two while a cluster is upgraded. A bundle that did not change is
// opened once. store is where archives are unpacked; it may be nil for bundles that are directories. One of signers must have signed each
// bundle; nil asks for no signature.
func Bundles(path string, store *artifact.Store, signers *artifact.Signers) reconcilers.Artifacts {
	b := &bundles{path: path, store: store, signers: signers, known: make(map[string]known)}
	return b.bundle
}

type bundles struct {
	path    string
	store   *artifact.Store
	signers *artifact.Signers

	// A bundle may take minutes to read, or for ever where its file system hangs: nobody waits for another's bundle.
	reads singleflight.Group

	mu    sync.Mutex // held for the map alone
	known map[string]known
}

// known is what was found at a path, and by what one sees that it is another now.
type known struct {
	modified time.Time
	size     int64

	sum    string           // the archive's or the manifest's
	bundle *artifact.Bundle // nil while nobody has asked for this sum
}

// bundle waits no longer than ctx, whatever the read does.
func (b *bundles) bundle(ctx context.Context, from spec.Artifacts, version string) (*artifact.Bundle, error) {
	if b.path == "" {
		return nil, errors.New("the manager has no bundles: start it with --bundle=DIRECTORY, and put them there")
	}
	for {
		read := b.reads.DoChan(from.Bundle.Path+"\x00"+from.Bundle.SHA256+"\x00"+version, func() (any, error) {
			return b.find(ctx, from.Bundle, version)
		})
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read the bundle %s: %w", cmp.Or(from.Bundle.Path, b.path), ctx.Err())
		case result := <-read:
			if result.Err == nil {
				return result.Val.(*artifact.Bundle), nil
			}
			// The one who read for all was cancelled, and this one was not.
			if ctx.Err() == nil && (errors.Is(result.Err, context.Canceled) || errors.Is(result.Err, context.DeadlineExceeded)) {
				continue
			}
			return nil, result.Err
		}
	}
}

func (b *bundles) find(ctx context.Context, from spec.Bundle, version string) (*artifact.Bundle, error) {
	root, path, err := b.locate(from.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if path, err = artifact.ForVersionIn(root, path, version); err != nil {
		return nil, err
	}
	found, err := b.at(ctx, root, path, from.SHA256)
	if err != nil {
		return nil, err
	}
	if has := found.Version(artifact.Kubernetes); has != version {
		return nil, fmt.Errorf("the bundle %s is for Kubernetes %s, not %s", path, has, version)
	}
	return found, nil
}

// locate is the directory that the manager takes bundles from, and the path in it that is asked for.
func (b *bundles) locate(declared string) (*os.Root, string, error) {
	info, err := os.Stat(b.path)
	if err != nil {
		return nil, "", fmt.Errorf("--bundle: %w", err)
	}
	dir, only := b.path, ""
	if !info.IsDir() {
		dir, only = filepath.Split(b.path)
		dir = cmp.Or(dir, ".")
	}
	path := cmp.Or(only, ".")
	if declared != "" {
		if path, err = below(dir, declared); err != nil {
			return nil, "", err
		}
	}
	if only != "" && path != only {
		return nil, "", fmt.Errorf("cluster.artifacts.bundle.path: the manager was started with one bundle, %s: leave path out", b.path)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", fmt.Errorf("--bundle: %w", err)
	}
	return root, path, nil
}

// below is a declared path, relative to dir.
func below(dir, declared string) (string, error) {
	path := filepath.Clean(declared)
	if filepath.IsAbs(path) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		if path, err = filepath.Rel(abs, path); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("cluster.artifacts.bundle.path: %s does not lie in the directory of bundles that the manager was started with, %s: "+
			"put the bundle there, or leave path out", declared, dir)
	}
	return path, nil
}

// at opens the bundle at a path in root, unless it was opened before and has not changed.
func (b *bundles) at(ctx context.Context, root *os.Root, path, sum string) (*artifact.Bundle, error) {
	name := filepath.Join(root.Name(), path)
	info, err := root.Stat(path)
	if err == nil && info.IsDir() {
		info, err = root.Stat(filepath.Join(path, artifact.ManifestName))
	}
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", name, err)
	}
	seen := b.recall(name, info)
	// A digest that is wrong is not computed again each time that it is asked for.
	if seen.sum != "" && sum != "" && seen.sum != sum {
		return nil, differs(&artifact.DigestError{Path: name, Want: sum, Got: seen.sum})
	}
	if seen.bundle != nil {
		return seen.bundle, nil
	}
	bundle, err := artifact.OpenWith(ctx, path, artifact.OpenOptions{Root: root, Store: b.store, SHA256: sum, Signers: b.signers})
	var other *artifact.DigestError
	if errors.As(err, &other) {
		b.remember(name, known{modified: info.ModTime(), size: info.Size(), sum: other.Got})
		return nil, differs(&artifact.DigestError{Path: name, Want: sum, Got: other.Got})
	}
	if err != nil {
		return nil, err
	}
	b.remember(name, known{modified: info.ModTime(), size: info.Size(), sum: bundle.SHA256(), bundle: bundle})
	return bundle, nil
}

func differs(err *artifact.DigestError) error {
	return fmt.Errorf("%w as cluster.artifacts.bundle.sha256 says: correct it, or put the right bundle there", err)
}

// recall is what is known of a path, or nothing where its file has changed.
func (b *bundles) recall(name string, info os.FileInfo) known {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.known[name]; k.modified.Equal(info.ModTime()) && k.size == info.Size() {
		return k
	}
	return known{}
}

func (b *bundles) remember(name string, k known) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[name] = k
}
