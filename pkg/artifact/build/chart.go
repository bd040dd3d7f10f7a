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
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Chart is a Helm chart that lies in a Go module.
type Chart struct {
	Module Module `json:"module"`
	// Directory is the chart's path in the module.
	Directory string `json:"directory"`
}

// Run packs the chart into job.Out/<name>-<version>.tgz, with the name and version of its Chart.yaml. Helm's own
// packer stamps the time of day on every entry; here the same chart gives the same bytes.
func (c Chart) Run(ctx context.Context, job Job, sums []string) error {
	module, err := moduleDir(ctx, job, c.Module, sums)
	if err != nil {
		return err
	}
	job.report("packing", 0, 1)
	dir := filepath.Join(module, filepath.FromSlash(c.Directory))
	data, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		return fmt.Errorf("chart %s of module %s: %w", c.Directory, c.Module, err)
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
	err = packChart(f, os.DirFS(dir), meta.Name)
	return errors.Join(err, f.Close())
}

// Validate reports what cannot be built.
func (c Chart) Validate() error {
	if c.Module.Path == "" || c.Directory == "" {
		return errors.New("module and directory must not be empty")
	}
	return nil
}

// packChart writes the files below dir, in order of their names, under the chart's name. The chart's own unit tests stay out.
func packChart(w io.Writer, dir fs.FS, name string) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	err := fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p == "tests":
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", p)
		}
		data, err := fs.ReadFile(dir, p)
		if err != nil {
			return err
		}
		if err := tw.WriteHeader(&tar.Header{
			Name: path.Join(name, p), Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}
