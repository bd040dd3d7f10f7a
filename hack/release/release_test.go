// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

const root = "../.."

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no version":              {nil, []string{"-version", "v0.1.0"}},
		"a version without a v":   {[]string{"-version=0.1.0"}, []string{"-version", "0.1.0"}},
		"a commit for a version":  {[]string{"-version=784dca1"}, []string{"-version", "784dca1"}},
		"an unknown architecture": {[]string{"-version=v0.1.0", "-arch=amd64,riscv64"}, []string{"-arch", "riscv64"}},
		"an unknown part":         {[]string{"-version=v0.1.0", "charts"}, []string{"charts", manifests, image}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.args)
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in: %v", part, err)
				}
			}
		})
	}
}

func release(t *testing.T, version string) *options {
	t.Helper()
	o, err := parse([]string{"-version", version, "-out", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// The layout is that of clusterctl's contract: it takes nothing else from a directory.
func TestWriteRepository(t *testing.T) {
	o := release(t, "v0.1.7")
	if err := writeRepository(root, o); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(o.out, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(o.out, path)
			got = append(got, relative)
		}
		return err
	})
	want := []string{
		"bootstrap-kubexm/v0.1.7/bootstrap-components.yaml",
		"bootstrap-kubexm/v0.1.7/metadata.yaml",
		"bootstrap-kubexm/v0.1.7/namespaced-bootstrap-components.yaml",
		"clusterctl.yaml",
		"control-plane-kubexm/v0.1.7/control-plane-components.yaml",
		"control-plane-kubexm/v0.1.7/metadata.yaml",
		"control-plane-kubexm/v0.1.7/namespaced-control-plane-components.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-byoh.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-dev.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-ha.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-metal3-kubeadm-workers.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-metal3.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-topology-byoh.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-topology-dev.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-topology-metal3.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template-topology.yaml",
		"infrastructure-kubexm/v0.1.7/cluster-template.yaml",
		"infrastructure-kubexm/v0.1.7/clusterclass-kubexm-byoh.yaml",
		"infrastructure-kubexm/v0.1.7/clusterclass-kubexm-dev.yaml",
		"infrastructure-kubexm/v0.1.7/clusterclass-kubexm-metal3.yaml",
		"infrastructure-kubexm/v0.1.7/clusterclass-kubexm.yaml",
		"infrastructure-kubexm/v0.1.7/infrastructure-components.yaml",
		"infrastructure-kubexm/v0.1.7/metadata.yaml",
		"infrastructure-kubexm/v0.1.7/namespaced-infrastructure-components.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}

	for _, name := range want {
		if !strings.HasSuffix(name, "-components.yaml") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(o.out, name))
		if err != nil {
			t.Fatal(err)
		}
		var images []string
		for line := range strings.Lines(string(content)) {
			if image, found := strings.CutPrefix(strings.TrimSpace(line), "image: "); found {
				images = append(images, image)
			}
		}
		if want := []string{defaultRepository + ":v0.1.7"}; !slices.Equal(images, want) {
			t.Errorf("%s: the images are %v, not %v", name, images, want)
		}
	}

	configuration, err := os.ReadFile(filepath.Join(o.out, "clusterctl.yaml"))
	wantConfiguration := strings.ReplaceAll(`providers:
- name: kubexm
  type: BootstrapProvider
  url: file://OUT/bootstrap-kubexm/latest/bootstrap-components.yaml
- name: kubexm
  type: ControlPlaneProvider
  url: file://OUT/control-plane-kubexm/latest/control-plane-components.yaml
- name: kubexm
  type: InfrastructureProvider
  url: file://OUT/infrastructure-kubexm/latest/infrastructure-components.yaml
`, "OUT", o.out)
	if diff := cmp.Diff(wantConfiguration, string(configuration)); diff != "" || err != nil {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}
}

// clusterctl cannot use a version of which nothing says what contract it follows.
func TestWriteRepositoryNeedsASeries(t *testing.T) {
	o := release(t, "v0.9.0")
	err := writeRepository(root, o)
	if err == nil || !strings.Contains(err.Error(), "metadata.yaml has no release series for v0.9.0") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(o.out); len(left) > 0 {
		t.Errorf("and yet it writes %v", left)
	}
}

func TestWriteImage(t *testing.T) {
	compiled := filepath.Join(t.TempDir(), "compiled")
	if err := os.WriteFile(compiled, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(t.TempDir(), "manager.tar")
		if err := writeImage(path, "example.com/manager:v0.1.0", "arm64", compiled); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same program gives other bytes the second time")
	}

	files := untar(t, archives[0])
	index, err := v1.ParseIndexManifest(bytes.NewReader(files["index.json"]))
	if err != nil {
		t.Fatal(err)
	}
	at := index.Manifests[0]
	if got := at.Annotations["io.containerd.image.name"]; got != "example.com/manager:v0.1.0" || at.Platform.Architecture != "arm64" {
		t.Errorf("the image is called %q, for %v", got, at.Platform)
	}
	blob := func(digest v1.Hash) []byte { return files["blobs/sha256/"+digest.Hex] }
	manifest, err := v1.ParseManifest(bytes.NewReader(blob(at.Digest)))
	if err != nil {
		t.Fatal(err)
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(blob(manifest.Config.Digest)))
	if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
		t.Errorf("%+v, %v", config, err)
	}
	layer, err := zstd.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	content, err := io.ReadAll(layer)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(untar(t, content)["manager"]); got != "a program" {
		t.Errorf("the program is %q", got)
	}
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for tr := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}
