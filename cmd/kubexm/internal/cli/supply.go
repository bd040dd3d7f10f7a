// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// bundlePath is where the bundle for a version of Kubernetes is looked for: where the user says, or where "bundle create"
// and the project's own make put it.
func (a *app) bundlePath(flag, declared, version string) (string, error) {
	if path := cmp.Or(flag, declared); path != "" {
		return path, nil
	}
	own := a.defaultBundle(version)
	for _, path := range []string{own, filepath.Join("build", "bundle")} {
		if _, err := os.Stat(filepath.Join(path, artifact.ManifestName)); err == nil {
			return path, nil
		}
	}
	catalogue, err := artifact.DefaultCatalogue()
	if err != nil {
		return "", err
	}
	if _, err := catalogue.Release(version); err != nil {
		return "", usage("spec.kubernetes.version: there are no artifacts for it: %w", err)
	}
	return "", fmt.Errorf("there is no bundle for Kubernetes %s in %s: say where it lies (spec.artifacts.bundle.path, or --bundle), or make one with: "+
		"kubexm bundle create --kubernetes-version %s", version, own, version)
}

// defaultBundle is where "bundle create" puts a bundle.
func (a *app) defaultBundle(version string) string {
	return filepath.Join(a.stateRoot, "bundles", version)
}

// openBundle opens a bundle for a version of Kubernetes; "" is any. Where path is a directory with several bundles, it is the
// one that has the version.
func (a *app) openBundle(ctx context.Context, path, version string) (*artifact.Bundle, error) {
	return a.openPinned(ctx, path, version, "")
}

// openPinned opens a bundle like openBundle, if it has a digest; "" is any.
func (a *app) openPinned(ctx context.Context, path, version, sum string) (*artifact.Bundle, error) {
	store, err := artifact.OpenStore("")
	if err != nil {
		return nil, err
	}
	signers, err := artifact.ReadSigners(a.bundleKey)
	if err != nil {
		return nil, usage("--bundle-verify-key: %w", err)
	}
	if version != "" {
		if path, err = artifact.ForVersion(path, version); err != nil {
			return nil, usage("spec.kubernetes.version: %w", err)
		}
	}
	b, err := artifact.OpenWith(ctx, path, artifact.OpenOptions{Store: store, SHA256: sum, Signers: signers})
	var other *artifact.DigestError
	if errors.As(err, &other) {
		return nil, usage("spec.artifacts.bundle.sha256: %w: correct it, or name the right bundle", err)
	}
	if err != nil {
		return nil, err
	}
	if has := b.Manifest().KubernetesVersion; version != "" && has != version {
		return nil, usage("spec.kubernetes.version: the bundle %s has Kubernetes %s, and not %s: set this version, or make another bundle with: kubexm bundle create --kubernetes-version %s",
			path, has, version, version)
	}
	return b, nil
}

// bundleFor opens the bundle that a config is to be made from.
func (a *app) bundleFor(ctx context.Context, flag string, c *config.Cluster) (*artifact.Bundle, error) {
	declared := c.Spec.Artifacts.Bundle
	path, err := a.bundlePath(flag, declared.Path, c.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	// The digest is of the bundle that the config names, and not of another that a flag names.
	sum := declared.SHA256
	if flag != "" && flag != declared.Path {
		sum = ""
	}
	return a.openPinned(ctx, path, c.KubernetesVersion, sum)
}

// describeBundle is a bundle in a few words.
func describeBundle(b *artifact.Bundle) string {
	var size int64
	items := b.Manifest().Items
	for _, i := range items {
		size += i.ContentSize()
	}
	return fmt.Sprintf("bundle %s verified (%d artifacts, %d MiB)", b.Manifest().KubernetesVersion, len(items), size>>20)
}

// verify reads all of a bundle. Of a corrupt one it says what to do.
func verify(ctx context.Context, b *artifact.Bundle) error {
	err := b.Verify(ctx)
	var wrong *artifact.VerifyError
	switch {
	case !errors.As(err, &wrong):
		return err
	case b.FromArchive():
		return fmt.Errorf("%w\nRemedy: remove %s, to which the bundle's archive was unpacked: the next command unpacks it again", err, b.Dir())
	}
	return fmt.Errorf("%w\nRemedy: make the bundle again: kubexm bundle create --kubernetes-version %s --output %s",
		err, b.Manifest().KubernetesVersion, b.Dir())
}

// replaceFile replaces what a file of the user's has, and keeps its mode and, where root does it, its owner. Where it is a link, what it
// leads to is replaced.
func replaceFile(path string, content []byte) (err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, info.Mode().Perm(), func(f *os.File) error {
		_, err := f.Write(content)
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
			err = errors.Join(err, f.Chown(int(owner.Uid), int(owner.Gid)))
		}
		return err
	})
}
