// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostlogs keeps the logs of hosts that failed as files, where the manager runs.
package hostlogs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// perHost is how many logs are kept of one host.
const perHost = 5

// suffix is how the files end that are ours.
const suffix = ".log.gz"

// Dir is a directory with logs, in <namespace>/<host>/<time>.log.gz. Nobody but its owner may read them.
type Dir string

// Keep writes a host's logs, removes the oldest of those that are too many, and returns the file.
func (d Dir) Keep(namespace, host string, at time.Time, content []byte) (string, error) {
	file, err := d.keep(filepath.Join(namespace, host), at.UTC().Format("20060102T150405.000Z")+suffix, content)
	if err != nil {
		return "", fmt.Errorf("keep the logs of the host %s: %w", host, err)
	}
	return file, nil
}

func (d Dir) keep(of, name string, content []byte) (_ string, err error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(string(d)) // whatever hosts are called
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.MkdirAll(of, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(of, name)
	if err := root.WriteFile(file, content, 0o600); err != nil {
		return "", errors.Join(err, root.Remove(file))
	}
	all, err := fs.ReadDir(root.FS(), filepath.ToSlash(of))
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), suffix) })
	for _, old := range all[:max(0, len(all)-perHost)] { // they are sorted by name, which is by time
		if err := root.Remove(filepath.Join(of, old.Name())); err != nil {
			return "", err
		}
	}
	return filepath.Join(string(d), file), nil
}
