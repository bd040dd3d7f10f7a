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
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

func (a *app) bundleCreate() *cobra.Command {
	o := artifact.CreateOptions{}
	var prefer, key, lock string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the bundle of a version of Kubernetes: programs, images and charts",
		Long: `Makes a bundle with all that a cluster of this version of Kubernetes needs. Programs are built from source, verified by
the Go checksum database, or downloaded and verified by their publisher's digest. What was made once is kept in a store
(KUBEXM_CACHE, or kubexm in the user's cache directory) and not made again.

With --os, the bundle has packages of the hosts' operating system too, in os/ID/VERSION/ARCH: those that steps install, those of
--os-package, and all that they depend on beyond the smallest Debian. Hosts then ask no mirror for them.

With --with, the bundle has components that not every cluster has, by their names in the catalogue.

With --lock, a file says what bundles are made of: each download, image and package of an operating system by its digest. What it has
must be so, and what it has not is added to it, or refused with --locked: keep it with what you review.

A key that has a passphrase, or is in an agent or a token, signs afterwards what is a directory:
ssh-keygen -Y sign -n kubexm-bundle -f KEY DIRECTORY/manifest.json`,
		Example: "  kubexm bundle create\n  kubexm bundle create --kubernetes-version v1.36.3 --output bundle-v1.36.3.tar.zst --arch amd64,arm64" +
			"\n  kubexm bundle create --os debian/12 --os-package nfs-common",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Prefer = artifact.Preference(prefer)
			var err error
			if o.Signer, err = signerOf(key); err != nil {
				return err
			}
			if lock == "" && o.Locked {
				return usage("--locked: give the lock file: --lock")
			}
			return a.createBundle(cmd.Context(), o, lock)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.KubernetesVersion, "kubernetes-version", "", "version of Kubernetes (default the newest that there are artifacts for)")
	flags.StringVarP(&o.Out, "output", "o", "", "directory, or file that ends in .tar, .tar.gz or .tar.zst (default .kubexm/bundles/VERSION)")
	flags.StringSliceVar(&o.Architectures, "arch", nil, "architectures: amd64, arm64 (default this machine's)")
	flags.StringSliceVar(&o.Systems, "os", nil, "operating systems whose packages are wanted, for hosts that reach no mirror (debian/12)")
	flags.StringSliceVar(&o.Packages, "os-package", nil, "more packages, with those that they depend on, of each --os")
	flags.StringSliceVar(&o.With, "with", nil, "optional components that the bundle is to have as well")
	flags.StringVar(&prefer, "prefer", string(artifact.FromSource), "where programs come from when there is a choice: "+string(artifact.FromSource)+" or "+string(artifact.FromUpstream))
	flags.StringVar(&o.Zone, "zone", "", "mirrors to download from, by their name in the catalogue (cn)")
	flags.BoolVar(&o.Insecure, "insecure", false, "download from http:// too, what its digest identifies")
	flags.StringVar(&lock, "lock", "", "file with the digests of what bundles are made of: compared, and added to")
	flags.BoolVar(&o.Locked, "locked", false, "refuse what is not in the lock file")
	_ = cmd.MarkFlagFilename("lock", "yaml") // the flag is there
	flags.StringVar(&key, "sign", "", "private SSH key (file, without a passphrase) to sign the bundle with")
	flags.IntVar(&o.Jobs, "jobs", 0, "how many components are made at once (default 2)")
	return cmd
}

// createBundle makes a bundle. lock is the file that says what it may be made of, "" for anything.
func (a *app) createBundle(ctx context.Context, o artifact.CreateOptions, lock string) error {
	if lock != "" {
		if _, err := os.Stat(lock); err != nil && o.Locked {
			return usage("--lock: %w", err)
		}
		var err error
		if o.Lock, err = artifact.ReadLock(lock); err != nil {
			return usageError{err}
		}
	}
	store, err := artifact.OpenStore("")
	if err != nil {
		return err
	}
	if o.KubernetesVersion == "" {
		if o.KubernetesVersion, err = newest(); err != nil {
			return err
		}
	}
	if o.Out == "" {
		o.Out = a.defaultBundle(o.KubernetesVersion)
		if err := os.MkdirAll(filepath.Dir(o.Out), 0o755); err != nil {
			return err
		}
	}
	started := time.Now()
	making := newMaking(started, a.note)
	o.Store, o.CreatedBy, o.Progress = store, "kubexm "+a.ownVersion(), func(e artifact.Event) { making.event(e, time.Now()) }
	stop := making.watch()
	b, err := artifact.Create(ctx, o)
	stop()
	var unknown *artifact.UnknownVersionError
	var name *artifact.UnknownNameError
	if errors.As(err, &unknown) || errors.As(err, &name) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if lock != "" && !o.Locked {
		if err := o.Lock.Write(lock); err != nil {
			return fmt.Errorf("write the lock file: %w", err)
		}
	}
	fmt.Fprintf(a.Out, "%s  Kubernetes %s  %s  in %s\n", o.Out, b.Manifest().KubernetesVersion, b.Digest(), seconds(time.Since(started)))
	return nil
}

// signerOf reads a private key, nil for none.
func signerOf(path string) (artifact.Signer, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usage("--sign: %w", err)
	}
	signer, err := artifact.ParseSigner(data)
	switch {
	case errors.Is(err, artifact.ErrPassphrase):
		return nil, usage("--sign: %s: %w: make the bundle as a directory without --sign, and sign it with: "+
			"ssh-keygen -Y sign -n %s -f %s DIRECTORY/%s", path, err, artifact.SignatureNamespace, path, artifact.ManifestName)
	case err != nil:
		return nil, usage("--sign: %s: %w", path, err)
	}
	return signer, nil
}

// newest is the newest version of Kubernetes that there are artifacts for.
func newest() (string, error) {
	catalogue, err := artifact.DefaultCatalogue()
	if err != nil {
		return "", err
	}
	newest, found := (*version.Version)(nil), ""
	for _, name := range catalogue.Versions(artifact.Kubernetes) {
		v, err := version.ParseSemantic(name)
		if err != nil {
			return "", err
		}
		if newest == nil || newest.LessThan(v) {
			newest, found = v, name
		}
	}
	return found, nil
}

func (a *app) bundleVerify() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "verify PATH",
		Short: "Read all of a bundle and compare every file with the manifest, and the manifest with its signature",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.bundleKey = cmp.Or(key, a.bundleKey)
			b, err := a.openBundle(cmd.Context(), args[0], "")
			if err != nil {
				return err
			}
			if err := verify(cmd.Context(), b); err != nil {
				return err
			}
			fmt.Fprintln(a.Out, describeBundle(b), b.Digest())
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the same as --bundle-verify-key")
	return cmd
}

func (a *app) bundleList() *cobra.Command {
	format := newFormat()
	cmd := &cobra.Command{
		Use:   "list PATH",
		Short: "List what is in a bundle",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := a.openBundle(cmd.Context(), args[0], "")
			if err != nil {
				return err
			}
			return list(a.Out, format, b.Manifest().Items, bundleTable())
		},
	}
	format.addFlag(cmd)
	return cmd
}

func bundleTable() table[artifact.Item] {
	return table[artifact.Item]{
		{name: "KIND", value: func(i artifact.Item) string { return string(i.Kind) }},
		{name: "COMPONENT", value: func(i artifact.Item) string { return i.Component }},
		{name: "NAME", value: func(i artifact.Item) string { return i.Name }},
		{name: "VERSION", value: func(i artifact.Item) string { return i.Version }},
		{name: "ARCH", value: func(i artifact.Item) string { return i.Arch }},
		{name: "SIZE", value: func(i artifact.Item) string { return fmt.Sprintf("%.1f MiB", float64(i.ContentSize())/(1<<20)) }},
		{name: "PATH", wide: true, value: func(i artifact.Item) string { return i.Path }},
		{name: "SHA256", wide: true, value: func(i artifact.Item) string { return i.SHA256 }},
		{name: "SOURCE", wide: true, value: func(i artifact.Item) string { return i.Source }},
	}
}
