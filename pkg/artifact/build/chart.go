// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Chart is a Helm chart that lies in a Go module.
type Chart struct {
	Module Module `json:"module"`
	// Directory is the chart's path in the module.
	Directory string `json:"directory"`
	// Add are further directories of the module, by their path in it, each with its path in the chart: what a chart has by a symbolic
	// link is not in a module.
	Add map[string]string `json:"add,omitempty"`
	// Edits are made to the chart's own files.
	Edits []Edit `json:"edits,omitempty"`
}

// Edit puts a text in the place of another one, which is in a file once. Another version of the file, in which it is not, is an error.
type Edit struct {
	// File is its path in the chart.
	File string `json:"file"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Run packs the chart into job.Out/<name>-<version>.tgz, with the name and version of its Chart.yaml. Helm's own
// packer stamps the time of day on every entry; here the same chart gives the same bytes.
func (c Chart) Run(ctx context.Context, job Job, sums []string) error {
	module, err := moduleDir(ctx, job, c.Module, sums)
	if err != nil {
		return err
	}
	job.report("packing", 0, 1)
	files, err := c.files(module)
	if err != nil {
		return fmt.Errorf("chart %s of module %s: %w", c.Directory, c.Module, err)
	}
	data, ok := files["Chart.yaml"]
	if !ok {
		return fmt.Errorf("chart %s of module %s: there is no Chart.yaml", c.Directory, c.Module)
	}
	var meta struct{ Name, Version string }
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("chart %s of module %s: Chart.yaml: %w", c.Directory, c.Module, err)
	}
	if meta.Name == "" || meta.Version == "" || strings.ContainsAny(meta.Name+meta.Version, "/\\") {
		return fmt.Errorf("chart %s of module %s: Chart.yaml: name %q and version %q must be set", c.Directory, c.Module, meta.Name, meta.Version)
	}
	f, err := os.Create(filepath.Join(job.Out, meta.Name+"-"+meta.Version+".tgz"))
	if err != nil {
		return err
	}
	err = packChart(f, files, meta.Name)
	return errors.Join(err, f.Close())
}

// files are the chart's, by their paths in it, without its own unit tests.
func (c Chart) files(module string) (map[string][]byte, error) {
	files := map[string][]byte{}
	if err := readFiles(files, filepath.Join(module, filepath.FromSlash(c.Directory)), ""); err != nil {
		return nil, err
	}
	for from, to := range c.Add {
		if err := readFiles(files, filepath.Join(module, filepath.FromSlash(from)), to); err != nil {
			return nil, err
		}
	}
	for _, e := range c.Edits {
		text := string(files[e.File])
		if n := strings.Count(text, e.From); n != 1 {
			return nil, fmt.Errorf("edit of %s: %q is there %d times, not once", e.File, e.From, n)
		}
		files[e.File] = []byte(strings.Replace(text, e.From, e.To, 1))
	}
	return files, nil
}

// readFiles reads the files below a directory, by their paths below to.
func readFiles(into map[string][]byte, dir, to string) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path.Join(to, p) == "tests":
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", p)
		}
		into[path.Join(to, p)], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(p)))
		return err
	})
}

// Validate reports what cannot be built.
func (c Chart) Validate() error {
	if c.Module.Path == "" || c.Directory == "" {
		return errors.New("module and directory must not be empty")
	}
	for from, to := range c.Add {
		if !filepath.IsLocal(from) || !filepath.IsLocal(to) {
			return fmt.Errorf("add: %q and %q are to be paths in the module and in the chart", from, to)
		}
	}
	for _, e := range c.Edits {
		if e.File == "" || e.From == "" {
			return errors.New("edits: file and from must not be empty")
		}
	}
	return nil
}

// packChart writes files, in order of their names, under the chart's name.
func packChart(w io.Writer, files map[string][]byte, name string) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	for _, p := range inOrder(files) {
		if err := tw.WriteHeader(&tar.Header{
			Name: path.Join(name, p), Mode: 0o644, Size: int64(len(files[p])), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		if _, err := tw.Write(files[p]); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

// inOrder are the names of files as a walk through their directories meets them.
func inOrder(files map[string][]byte) []string {
	return slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
}
