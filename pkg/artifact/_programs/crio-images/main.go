// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crio-images lists, loads and names images of CRI-O's, which has no command for it. It is compiled with the very modules that
// CRI-O is compiled with, so that what it stores is what CRI-O reads, under the same locks. Its first argument is the directory that has
// the store, and its second what to do:
//
//	list REF…        prints a line for each image of these that is there: its reference and the digest of its manifest
//	load             reads the archive of an OCI layout from standard input, and stores each of its images by its reference
//	name REF OTHER   gives the image another name; what had that name before keeps OTHER-before
//	undo REF OTHER   gives the name back to what had it before
package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/containers/image/v5/copy"
	"github.com/containers/image/v5/oci/layout"
	"github.com/containers/image/v5/signature"
	imagestorage "github.com/containers/image/v5/storage"
	"github.com/containers/image/v5/types"
	"github.com/containers/storage"
	"github.com/containers/storage/pkg/reexec"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

const driver = "overlay"

func main() {
	if reexec.Init() { // layers are unpacked by a process of their own
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crio-images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("give the directory of the store, and list, load, name or undo")
	}
	s := images{dir: args[0]}
	switch what, rest := args[1], args[2:]; {
	case what == "list":
		return s.list(os.Stdout, rest)
	case what == "load" && len(rest) == 0:
		return s.load(ctx, os.Stdin)
	case what == "name" && len(rest) == 2:
		return s.with(func(of storage.Store) error { return name(of, rest[0], rest[1]) })
	case what == "undo" && len(rest) == 2:
		return s.with(func(of storage.Store) error { return undo(of, rest[1]) })
	default:
		return fmt.Errorf("%q is not one of list REF…, load, name REF OTHER and undo REF OTHER", args[1:])
	}
}

// images are those below a directory.
type images struct{ dir string }

func (s images) root() string { return filepath.Join(s.dir, "storage") }

// list reads what the store has written, without opening the store: that would make one where there is none, and mount it.
func (s images) list(w io.Writer, refs []string) error {
	data, err := os.ReadFile(filepath.Join(s.root(), driver+"-images", "images.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var all []storage.Image
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	have := map[string]string{}
	for _, i := range all {
		for _, n := range i.Names {
			have[n] = i.Digest.String()
		}
	}
	for _, ref := range refs {
		if digest := have[ref]; digest != "" {
			fmt.Fprintln(w, ref, digest)
		}
	}
	return nil
}

// with opens the store as CRI-O does.
func (s images) with(do func(storage.Store) error) error {
	store, err := storage.GetStore(storage.StoreOptions{
		RunRoot: "/run/containers/storage", GraphRoot: s.root(), GraphDriverName: driver,
	})
	if err != nil {
		return err
	}
	err = do(store)
	// What is mounted is CRI-O's containers', so nothing is unmounted here.
	store.Free()
	return err
}

// load stores images. One that is there by the same digest costs nothing; a run that is cut leaves layers that the next one, or CRI-O,
// removes.
func (s images) load(ctx context.Context, r io.Reader) (err error) {
	work := filepath.Join(s.dir, "import")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := unpack(r, work); err != nil {
		return fmt.Errorf("the archive on standard input: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(work, specs.ImageIndexFile))
	if err != nil {
		return err
	}
	var index specs.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("%s: %w", specs.ImageIndexFile, err)
	}
	// What is in the bundle was verified when it was made, and its blobs are by their digests once more here.
	policy, err := signature.NewPolicyContext(&signature.Policy{
		Default: signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()},
	})
	if err != nil {
		return err
	}
	return s.with(func(store storage.Store) error {
		for i, m := range index.Manifests {
			ref := m.Annotations[specs.AnnotationRefName]
			if err := store1(ctx, store, policy, work, i, ref); err != nil {
				return fmt.Errorf("image %s: %w", ref, err)
			}
		}
		return nil
	})
}

// store1 stores an image of the layout by its reference.
func store1(ctx context.Context, store storage.Store, policy *signature.PolicyContext, work string, at int, ref string) error {
	from, err := layout.NewIndexReference(work, at)
	if err != nil {
		return err
	}
	to, err := imagestorage.Transport.ParseStoreReference(store, ref)
	if err != nil {
		return err
	}
	_, err = copy.Image(ctx, policy, to, from, &copy.Options{
		PreserveDigests: true,
		SourceCtx:       &types.SystemContext{BigFilesTemporaryDir: work},
		DestinationCtx:  &types.SystemContext{BigFilesTemporaryDir: work},
	})
	return err
}

// unpack writes the files of a layout: it has directories of two levels, and files alone.
func unpack(r io.Reader, dir string) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%q is no file of a layout", header.Name)
		}
		if err := writeFile(filepath.Join(dir, header.Name), archive); err != nil {
			return err
		}
	}
}

func writeFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func before(other string) string { return other + "-before" }

func name(store storage.Store, ref, other string) error {
	id, err := store.Lookup(ref)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	had, err := store.Lookup(other)
	switch {
	case errors.Is(err, storage.ErrNotAnID), errors.Is(err, storage.ErrImageUnknown), errors.Is(err, storage.ErrLayerUnknown):
	case err != nil:
		return fmt.Errorf("image %s: %w", other, err)
	case had != id:
		if err := store.AddNames(had, []string{before(other)}); err != nil {
			return fmt.Errorf("image %s: %w", other, err)
		}
	}
	return store.AddNames(id, []string{other})
}

func undo(store storage.Store, other string) error {
	had, err := store.Lookup(before(other))
	if err != nil {
		return nil // nothing had the name
	}
	if err := store.AddNames(had, []string{other}); err != nil {
		return err
	}
	return store.RemoveNames(had, []string{before(other)})
}
