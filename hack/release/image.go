// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// program is the manager's path in its image, which has nothing else.
const program = "/manager"

// writeImages compiles the manager for each architecture, and writes its image as an archive.
func writeImages(ctx context.Context, root string, o *options) error {
	work, err := os.MkdirTemp("", "kubexm-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	dir := filepath.Join(o.out, "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, arch := range o.architectures {
		compiled := filepath.Join(work, "manager-"+arch)
		if err := compile(ctx, root, o.version, arch, compiled); err != nil {
			return err
		}
		path := filepath.Join(dir, fmt.Sprintf("manager-%s-%s.tar", o.version, arch))
		if err := writeImage(path, o.reference(), arch, compiled); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// compile is what "make build" does, for another machine.
func compile(ctx context.Context, root, version, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", out, "./cmd/manager")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the manager for %s: %w\n%s", arch, err, output)
	}
	return nil
}

// writeImage writes an archive with an OCI layout of the one image. The same program gives the same bytes.
func writeImage(path, reference, arch, compiled string) error {
	var layer bytes.Buffer
	diffID, err := oci.Compress(&layer, func(w io.Writer) error {
		return oci.WriteLayer(w, nil, []oci.Entry{{Path: program, Source: compiled, Mode: 0o755}})
	})
	if err != nil {
		return err
	}
	made, err := oci.Spec{
		Arch: arch, Entrypoint: []string{program}, Layers: []oci.Layer{{Blob: oci.BlobOf(layer.Bytes()), DiffID: diffID}},
	}.Make()
	if err != nil {
		return err
	}
	index, err := oci.Index([]oci.Tagged{{Ref: reference, Arch: arch, Manifest: oci.BlobOf(made.Manifest)}})
	if err != nil {
		return err
	}
	return writeArchive(path, []member{
		{"oci-layout", []byte(oci.Layout)},
		{"index.json", index},
		{blobPath(made.Manifest), made.Manifest},
		{blobPath(made.Config), made.Config},
		{blobPath(layer.Bytes()), layer.Bytes()},
	})
}

// member is a file of an archive.
type member struct {
	name string
	data []byte
}

func writeArchive(path string, members []member) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	tw := tar.NewWriter(f)
	for _, m := range members {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: m.name, Size: int64(len(m.data)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		if _, err := tw.Write(m.data); err != nil {
			return err
		}
	}
	return tw.Close()
}

func blobPath(data []byte) string { return "blobs/sha256/" + oci.BlobOf(data).SHA256 }
