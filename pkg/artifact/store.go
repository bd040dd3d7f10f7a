// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
)

// CacheVariable is the environment variable that names the store's directory.
const CacheVariable = "KUBEXM_CACHE"

// Store keeps files by their content, and which recipe gave which files. Several processes may use one store: a recipe
// is made once, by anyone who has its lock, and what a killed process left half made is thrown away by the next.
//
//	blobs/sha256/<sum>   files
//	recipes/<key>.json   what a recipe gave; key is the digest of the recipe
//	bundles/<sum>/       bundle archives, unpacked
//	locks/ work/ part/   locks, builds under way, downloads under way
type Store struct{ root string }

// OpenStore opens the store in root and creates it if need be. An empty root is the default: $KUBEXM_CACHE, or kubexm in the user's
// cache directory ($XDG_CACHE_HOME, ~/.cache).
func OpenStore(root string) (*Store, error) {
	if root == "" {
		root = os.Getenv(CacheVariable)
	}
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("artifact store: %w: set %s", err, CacheVariable)
		}
		root = filepath.Join(cache, "kubexm")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("artifact store: %w", err)
	}
	for _, dir := range []string{"blobs/sha256", "recipes", "bundles", "locks", "work", "part"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, fmt.Errorf("artifact store: %w", err)
		}
	}
	s := &Store{root: root}
	return s, s.sweep()
}

// sweep removes what killed processes left half made. What is being made now is locked by the one who makes it.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(filepath.Join(s.root, "work"))
	if err != nil {
		return fmt.Errorf("artifact store: %w", err)
	}
	for _, e := range entries {
		unlock, err := tryLock(filepath.Join(s.root, "locks", e.Name()))
		if errors.Is(err, errLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(filepath.Join(s.root, "work", e.Name())), unlock())
		}
		if err != nil {
			return fmt.Errorf("artifact store: %w", err)
		}
	}
	return nil
}

// Root is the store's directory.
func (s *Store) Root() string { return s.root }

func (s *Store) blobRel(sum string) string { return filepath.Join("blobs", "sha256", sum) }

func (s *Store) blob(sum string) string { return filepath.Join(s.root, s.blobRel(sum)) }

// record is what a recipe gave.
type record struct {
	// Recipe is what the key is the digest of, for people who look.
	Recipe json.RawMessage `json:"recipe"`
	Files  []storedFile    `json:"files"`
	// Downloads are what a locked order was made of.
	Downloads []LockedFile `json:"downloads,omitempty"`
	// Seconds is how long it took to make.
	Seconds float64 `json:"seconds"`
}

type storedFile struct {
	Name string `json:"name"`
	oci.Blob
}

// file is the file of a name, or false.
func (r record) file(name string) (storedFile, bool) {
	for _, f := range r.Files {
		if f.Name == name {
			return f, true
		}
	}
	return storedFile{}, false
}

// keyOf is the key of a recipe: the digest of its JSON.
func keyOf(recipe any) (key string, raw json.RawMessage, err error) {
	raw, err = json.Marshal(recipe)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), raw, nil
}

// workspace is where a recipe is made.
type workspace struct {
	work string // an empty directory
	out  string // an empty directory; its files are the result
	part string // a path prefix for what is worth keeping when the making is interrupted
	// fetched is what was downloaded for it.
	fetched *[]LockedFile
}

// lookup finds what a recipe gave, if all of it is still there.
func (s *Store) lookup(key string) (record, bool, error) {
	data, err := os.ReadFile(s.recordPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, false, nil // made again
	}
	for _, f := range r.Files {
		if info, err := os.Stat(s.blob(f.SHA256)); err != nil || info.Size() != f.Size {
			return record{}, false, nil
		}
	}
	return r, true, nil
}

func (s *Store) recordPath(key string) string { return filepath.Join(s.root, "recipes", key+".json") }

// produce finds what a recipe gave or has fill make it. mode is the files' mode. waiting, which may be nil, is called when another is
// making it already.
func (s *Store) produce(
	ctx context.Context, recipe any, mode fs.FileMode, waiting func(), fill func(context.Context, workspace) error,
) (r record, err error) {
	key, raw, err := keyOf(recipe)
	if err != nil {
		return record{}, err
	}
	if r, ok, err := s.lookup(key); ok || err != nil {
		return r, err
	}
	unlock, err := lock(ctx, filepath.Join(s.root, "locks", key), waiting)
	if err != nil {
		return record{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if r, ok, err := s.lookup(key); ok || err != nil {
		return r, err
	}

	dir := filepath.Join(s.root, "work", key)
	ws := workspace{
		work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"), part: filepath.Join(s.root, "part", key), fetched: &[]LockedFile{},
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(ws.work, 0o755), os.MkdirAll(ws.out, 0o755)); err != nil {
		return record{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	started := time.Now()
	if err := fill(ctx, ws); err != nil {
		return record{}, err
	}
	r = record{Recipe: raw, Downloads: *ws.fetched}
	if r.Files, err = s.keepAll(ws.out, mode); err != nil {
		return record{}, err
	}
	r.Seconds = time.Since(started).Seconds()
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return record{}, err
	}
	return r, atomicfile.WriteBytes(s.recordPath(key), 0o644, data)
}

// keepAll moves the files of dir into the store.
func (s *Store) keepAll(dir string, mode fs.FileMode) ([]storedFile, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	files := make([]storedFile, 0, len(entries))
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("artifact store: %s is not a regular file", e.Name())
		}
		blob, err := s.keep(filepath.Join(dir, e.Name()), mode)
		if err != nil {
			return nil, err
		}
		files = append(files, storedFile{Name: e.Name(), Blob: blob})
	}
	return files, nil
}

// keep moves a file into the store, written through to the disk.
func (s *Store) keep(path string, mode fs.FileMode) (oci.Blob, error) {
	blob, err := sumFile(path)
	if err != nil {
		return oci.Blob{}, err
	}
	if err := errors.Join(os.Chmod(path, mode), syncFile(path)); err != nil {
		return oci.Blob{}, err
	}
	// What was there under this name, damaged perhaps, gives way.
	return blob, os.Rename(path, s.blob(blob.SHA256))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncTree writes a directory with all that is in it through to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}

// sumFile reads a file once and gives its sum and size.
func sumFile(path string) (oci.Blob, error) {
	f, err := os.Open(path)
	if err != nil {
		return oci.Blob{}, err
	}
	blob, err := sum(context.Background(), f)
	return blob, errors.Join(err, f.Close())
}

// sum reads until the end, or until ctx ends.
func sum(ctx context.Context, r io.Reader) (oci.Blob, error) {
	h := sha256.New()
	n, err := io.Copy(h, &cancelReader{ctx: ctx, r: r})
	if err != nil {
		return oci.Blob{}, err
	}
	return oci.Blob{SHA256: hex.EncodeToString(h.Sum(nil)), Size: n}, nil
}

// cancelReader ends with its context, between two reads.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
