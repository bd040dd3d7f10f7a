// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
)

// writeDirectory writes the bundle to a directory of its own and puts that in the place of what was at Out.
func (p *production) writeDirectory(ctx context.Context, m Manifest) (*Bundle, error) {
	out, err := filepath.Abs(p.opts.Out)
	if err != nil {
		return nil, err
	}
	data, err := m.encode()
	if err != nil {
		return nil, err
	}
	if sameManifest(out, data) {
		b, err := openDir(out, nil)
		if err == nil && b.Verify(ctx) == nil {
			return b, p.signIn(out, data)
		}
	}
	if err := replaceable(out); err != nil {
		return nil, err
	}
	dir, err := staging(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := p.fill(ctx, dir, m, data); err != nil {
		return nil, err
	}
	b, err := openDir(dir, nil)
	if err != nil {
		return nil, err
	}
	if err := b.Verify(ctx); err != nil {
		return nil, p.repair(err)
	}
	if err := syncTree(dir); err != nil {
		return nil, err
	}
	if err := replaceDirectory(dir, out); err != nil {
		return nil, err
	}
	return openDir(out, nil)
}

// fill writes a bundle's files into an empty directory, the manifest last. Files of the store are linked where the file system can.
func (p *production) fill(ctx context.Context, dir string, m Manifest, manifest []byte) error {
	files, err := m.contents()
	if err != nil {
		return err
	}
	documents, err := p.documents(m, manifest)
	if err != nil {
		return err
	}
	modes := modesOf(m)
	written, total := int64(0), totalSize(files)
	for _, rel := range slices.Sorted(maps.Keys(files)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		dst := filepath.Join(dir, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
			return err
		}
		if doc, ok := documents[rel]; ok {
			err = os.WriteFile(dst, doc, 0o644)
		} else {
			err = p.opts.Store.link(files[rel], dst, modes(rel))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
		written += files[rel].Size
		p.maker.progress.send(Event{Phase: PhaseWriting, N: written, M: total})
	}
	// MkdirTemp makes it for its owner alone.
	if signature, signed := documents[SignatureName]; signed {
		err = os.WriteFile(filepath.Join(dir, SignatureName), signature, 0o644)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, ManifestName), manifest, 0o644), os.Chmod(dir, 0o755))
}

// signIn signs a bundle that is there. Without a key, it keeps the signature that it has.
func (p *production) signIn(dir string, manifest []byte) error {
	if p.opts.Signer == nil {
		return nil
	}
	signature, err := sign(manifest, p.opts.Signer)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(dir, SignatureName), 0o644, signature)
}

// modesOf tells a file's permissions by its path.
func modesOf(m Manifest) func(rel string) fs.FileMode {
	programs := map[string]bool{}
	for _, i := range m.Items {
		if i.Kind == KindBinary {
			programs[i.Path] = true
		}
	}
	return func(rel string) fs.FileMode {
		if programs[rel] {
			return 0o755
		}
		return 0o644
	}
}

// link makes dst a file of the store's content: by a hard link, or by a copy where that cannot be or the mode is another.
func (s *Store) link(b oci.Blob, dst string, mode fs.FileMode) (err error) {
	info, err := os.Stat(s.blob(b.SHA256))
	if err != nil {
		return err
	}
	if info.Mode().Perm() == mode && os.Link(s.blob(b.SHA256), dst) == nil {
		return nil
	}
	src, err := os.Open(s.blob(b.SHA256))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	f, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// replaceable says whether what is at out may give way: a bundle with nothing else in it, an empty directory, or nothing.
func replaceable(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	// Others call their files manifest.json, too.
	b, err := readDir(out, nil)
	if err != nil {
		return fmt.Errorf("%s is not empty and not a bundle (%w): it is left alone; give another directory or remove it", out, err)
	}
	known, err := b.manifest.contents()
	if err != nil {
		return fmt.Errorf("bundle %s: %w", out, err)
	}
	return b.walk(func(rel string) error {
		if _, ok := known[rel]; !ok {
			return fmt.Errorf("bundle %s: %s is no file of the bundle, and would go with it: all is left alone; give another directory, "+
				"or move that file away", out, rel)
		}
		return nil
	})
}

// replaceDirectory moves dir to out, and what was there away.
func replaceDirectory(dir, out string) error {
	old := dir + ".old"
	err := os.Rename(out, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(dir, out); err != nil {
		return errors.Join(err, os.Rename(old, out))
	}
	return os.RemoveAll(old)
}

// archiveOrder are the paths of a bundle in the order that an archive has them: the manifest first, so that a reader knows
// what to expect of every other.
func archiveOrder(files map[string]oci.Blob) []string {
	return append([]string{ManifestName}, slices.Sorted(maps.Keys(files))...)
}

// writeArchive writes the bundle as one file, and has the store hold it unpacked, which takes no room beside what is there.
func (p *production) writeArchive(ctx context.Context, m Manifest, form archiveForm) (*Bundle, error) {
	manifest, err := m.encode()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p.opts.Out), 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(p.opts.Out), "."+filepath.Base(p.opts.Out)+".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it is gone if all went well
	h := sha256.New()
	err = p.repair(p.pack(ctx, io.MultiWriter(f, h), m, manifest, form))
	if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), p.opts.Out); err != nil {
		return nil, err
	}
	return p.opts.Store.bundle(ctx, hex.EncodeToString(h.Sum(nil)), nil, func(dir string) error { return p.fill(ctx, dir, m, manifest) })
}

// pack writes a bundle's files as a tar, each checked by the way.
func (p *production) pack(ctx context.Context, out io.Writer, m Manifest, manifest []byte, form archiveForm) (err error) {
	files, err := m.contents()
	if err != nil {
		return err
	}
	documents, err := p.documents(m, manifest)
	if err != nil {
		return err
	}
	w, err := newArchiveWriter(out, form)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := w.close(); err == nil { // after another error the tar's end is in disorder anyhow
			err = closeErr
		}
	}()
	modes := modesOf(m)
	written, total := int64(0), totalSize(files)
	paths := archiveOrder(files)
	if _, signed := documents[SignatureName]; signed {
		paths = slices.Insert(paths, 1, SignatureName)
	}
	for _, rel := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if doc, ok := documents[rel]; ok {
			err = w.document(rel, doc)
		} else {
			err = w.file(rel, p.opts.Store, files[rel], modes(rel))
		}
		if err != nil {
			return err
		}
		written += files[rel].Size
		p.maker.progress.send(Event{Phase: PhaseWriting, N: written, M: total})
	}
	return nil
}

func totalSize(files map[string]oci.Blob) int64 {
	var size int64
	for _, b := range files {
		size += b.Size
	}
	return size
}
