// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostlogs keeps the logs of hosts that failed as files, where the manager runs.
package hostlogs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// perHost is how many logs are kept of one host.
	perHost = 5
	// MaxBytes is how much is kept of all hosts: when more comes, the oldest goes.
	MaxBytes = 256 << 20

	// suffix is how the files end that are ours.
	suffix = ".log.gz"
)

// keeping is one at a time: what one host's logs take, the next has to count.
var keeping sync.Mutex

// Dir is a directory with logs, in <namespace>/<host>/<time>.log.gz. Nobody but its owner may read them.
type Dir string

// File is the log of a host.
type File struct {
	// Name is its path in the directory, with slashes.
	Name string
	// Size is in bytes, compressed.
	Size int64
}

// Keep writes a host's logs, removes the oldest of those that are too many, and returns the file.
func (d Dir) Keep(namespace, host string, at time.Time, content []byte) (string, error) {
	keeping.Lock()
	defer keeping.Unlock()
	file, err := d.keep(filepath.Join(namespace, host), at.UTC().Format("20060102T150405.000Z")+suffix, content, MaxBytes)
	if err != nil {
		return "", fmt.Errorf("keep the logs of the host %s: %w", host, err)
	}
	return file, nil
}

func (d Dir) keep(of, name string, content []byte, most int64) (_ string, err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(string(d)) // whatever hosts are called
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// There is room before it is needed: a volume may be no larger.
	if err := rotate(root, filepath.ToSlash(of), int64(len(content)), most); err != nil {
		return "", err
	}
	if err := root.MkdirAll(of, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(of, name)
	if err := root.WriteFile(file, content, 0o600); err != nil {
		return "", errors.Join(err, root.Remove(file))
	}
	return filepath.Join(string(d), file), nil
}

// rotate removes the oldest logs of one host, and then of all, until one more of that size may come.
func rotate(root *os.Root, of string, size, most int64) error {
	files, err := list(root)
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(path.Base(a.Name), path.Base(b.Name)) }) // which is by time
	own := 0
	for _, f := range files {
		if size += f.Size; path.Dir(f.Name) == of {
			own++
		}
	}
	remove := func(f File) error {
		size -= f.Size
		if err := root.Remove(filepath.FromSlash(f.Name)); err != nil {
			return err
		}
		_ = root.Remove(filepath.FromSlash(path.Dir(f.Name))) // it stays as long as it holds another
		return nil
	}
	var rest []File
	for _, f := range files {
		if path.Dir(f.Name) != of || own < perHost {
			rest = append(rest, f)
			continue
		}
		own--
		if err := remove(f); err != nil {
			return err
		}
	}
	for _, f := range rest {
		if size <= most {
			break
		}
		if err := remove(f); err != nil {
			return err
		}
	}
	return nil
}

// list are the logs that there are.
func list(root *os.Root) ([]File, error) {
	var files []File
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.Count(name, "/") != 2 || !strings.HasSuffix(name, suffix) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files = append(files, File{Name: name, Size: info.Size()})
		}
		return err
	})
	return files, err
}

// List are the logs of all hosts, by namespace, host and time. There are none where nothing was kept yet.
func (d Dir) List() ([]File, error) {
	root, err := os.OpenRoot(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := list(root)
	return files, errors.Join(err, root.Close())
}

// Copy writes one of the logs, as it is compressed, to w. name is as List or Keep returns it.
func (d Dir) Copy(w io.Writer, name string) (err error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.Open(strings.TrimPrefix(name, filepath.Clean(string(d))+string(filepath.Separator)))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return errors.Join(err, f.Close())
}
