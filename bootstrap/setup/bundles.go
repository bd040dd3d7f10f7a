// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Bundles opens the bundle that a cluster names, or the one at path where it names none: either may be a directory with one
// bundle for each version that hosts have, which are two while a cluster is upgraded. A bundle that did not change is
// opened once. store is where archives are unpacked; it may be nil for bundles that are directories.
func Bundles(path string, store *artifact.Store) reconcilers.Artifacts {
	b := &bundles{path: path, store: store, open: make(map[string]opened)}
	return b.bundle
}

type bundles struct {
	path  string
	store *artifact.Store

	mu   sync.Mutex
	open map[string]opened
}

// opened is a bundle, and by what one knows that its file is another now.
type opened struct {
	bundle   *artifact.Bundle
	modified time.Time
	size     int64
}

func (b *bundles) bundle(ctx context.Context, from spec.Artifacts, version string) (*artifact.Bundle, error) {
	path := b.path
	switch {
	case from.Bundle.URL != "":
		return nil, errors.New("cluster.artifacts.bundle.url is not supported by this version of kubexm: download the bundle and set path")
	case from.Bundle.Path != "":
		path = from.Bundle.Path
	case path == "":
		return nil, errors.New("there is no bundle: set cluster.artifacts.bundle.path, or give the manager one")
	}
	path, err := artifact.ForVersion(path, version)
	if err != nil {
		return nil, err
	}
	found, err := b.at(ctx, path, from.Bundle.SHA256)
	if err != nil {
		return nil, err
	}
	if has := found.Version(artifact.Kubernetes); has != version {
		return nil, fmt.Errorf("the bundle %s is for Kubernetes %s, not %s", path, has, version)
	}
	return found, nil
}

func (b *bundles) at(ctx context.Context, path, sum string) (*artifact.Bundle, error) {
	info, err := os.Stat(manifestOf(path))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	key := path + "@" + sum
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, found := b.open[key]; found && known.modified.Equal(info.ModTime()) && known.size == info.Size() {
		return known.bundle, nil
	}
	if err := verify(path, sum); err != nil {
		return nil, err
	}
	bundle, err := artifact.Open(ctx, path, b.store)
	if err != nil {
		return nil, err
	}
	b.open[key] = opened{bundle: bundle, modified: info.ModTime(), size: info.Size()}
	return bundle, nil
}

// manifestOf is the file by which a bundle is known: an archive itself, or a directory's manifest.
func manifestOf(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, artifact.ManifestName)
	}
	return path
}

// verify compares an archive with its digest, if one is given.
func verify(path, sum string) error {
	if sum == "" {
		return nil
	}
	f, err := os.Open(manifestOf(path))
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("bundle %s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("the bundle %s has the sha256 %s, not %s as cluster.artifacts.bundle.sha256 says", path, got, sum)
	}
	return nil
}
