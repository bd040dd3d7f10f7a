// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// ManifestName is the manifest's path in a bundle.
const ManifestName = "manifest.json"

// FormatVersion is the version of the bundle's layout that this package writes and reads.
const FormatVersion = 1

// Manifest says what is in a bundle. Anyone who trusts its digest can trust all of the bundle.
type Manifest struct {
	FormatVersion     int      `json:"formatVersion"`
	KubernetesVersion string   `json:"kubernetesVersion"`
	Architectures     []string `json:"architectures"`
	// Components are the versions of all that is in the bundle or in its images.
	Components map[string]string `json:"components"`
	CreatedBy  string            `json:"createdBy"`
	// SBOM is the bill of materials, which lies at SBOMName. Bundles that were made before there was one have none.
	SBOM  *oci.Blob `json:"sbom,omitempty"`
	Items []Item    `json:"items"`
}

// Item is one artifact.
type Item struct {
	Kind      Kind   `json:"kind"`
	Component string `json:"component"`
	Version   string `json:"version"`
	// Arch is empty for what is the same everywhere.
	Arch string `json:"arch,omitempty"`
	// System is the operating system of a package (debian/12), whose component is the system's ID.
	System string `json:"system,omitempty"`
	// Name is the name of the program, image (kube-apiserver) or chart.
	Name string `json:"name"`
	// Path is relative to the bundle, with slashes. An image's path is that of its manifest.
	Path string `json:"path"`
	oci.Blob
	// Ref, Digest and Platform (linux/amd64) are an image's.
	Ref      string `json:"ref,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Platform string `json:"platform,omitempty"`
	// Blobs are an image's configuration and layers, all of which lie beside its manifest.
	Blobs []oci.Blob `json:"blobs,omitempty"`
	// Source says where it comes from (go:k8s.io/kubernetes@v1.36.3, https://…).
	Source string `json:"source"`
}

// ContentSize is the size in bytes of all that belongs to the item. Images may share blobs.
func (i Item) ContentSize() int64 {
	size := i.Size
	for _, b := range i.Blobs {
		size += b.Size
	}
	return size
}

const (
	imagesDir = "images"
	chartsDir = "helm"
	layoutRel = imagesDir + "/oci-layout"
	indexRel  = imagesDir + "/index.json"
)

func blobRel(sum string) string { return imagesDir + "/blobs/sha256/" + sum }

// place is the path that an item of this kind must have.
func (i Item) place() string {
	switch i.Kind {
	case KindBinary:
		return path.Join(i.Component, i.Version, i.Arch, i.Name)
	case KindChart:
		return path.Join(chartsDir, i.Name+"-"+i.Version+".tgz")
	case KindPackage, KindIndex:
		return path.Join(systemsDir, i.System, i.Arch, path.Base(i.Path))
	default:
		return blobRel(i.SHA256)
	}
}

// maxManifest bounds what is read into memory.
const maxManifest = 16 << 20

// ReadManifest reads and checks a manifest.
func ReadManifest(r io.Reader) (Manifest, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", ManifestName, err)
	}
	m, err := decodeManifest(data)
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", ManifestName, err)
	}
	return m, nil
}

func decodeManifest(data []byte) (Manifest, error) {
	if len(data) > maxManifest {
		return Manifest{}, fmt.Errorf("it is larger than %d MiB", maxManifest>>20)
	}
	// The version is checked first: a newer manifest is distinguished from a broken one.
	var head struct{ FormatVersion int }
	if err := json.Unmarshal(data, &head); err != nil {
		return Manifest{}, err
	}
	if head.FormatVersion != FormatVersion {
		return Manifest{}, fmt.Errorf("formatVersion is %d; this version of kubexm reads %d", head.FormatVersion, FormatVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, err
	}
	return m, m.validate()
}

// encode is the manifest as it is written.
func (m Manifest) encode() ([]byte, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

var (
	sumForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)
)

// validate refuses what could lead outside of the bundle or contradicts itself.
func (m Manifest) validate() error {
	var errs []error
	places := map[string]oci.Blob{}
	claim := func(where, place string, b oci.Blob) {
		if !sumForm.MatchString(b.SHA256) || b.Size < 0 {
			errs = append(errs, fmt.Errorf("%s: sha256 %q or size %d is malformed", where, b.SHA256, b.Size))
		}
		if other, taken := places[place]; taken && other != b {
			errs = append(errs, fmt.Errorf("%s: %s is listed with different content", where, place))
		}
		places[place] = b
	}
	if m.SBOM != nil {
		claim("sbom", SBOMName, *m.SBOM)
	}
	refs := map[string]bool{}
	for n, item := range m.Items {
		where := fmt.Sprintf("items[%d]", n)
		if err := item.validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
			continue
		}
		claim(where, item.Path, item.Blob)
		for _, b := range item.Blobs {
			claim(where, blobRel(b.SHA256), b)
		}
		if item.Kind == KindImage {
			if key := item.Ref + " " + item.Arch; refs[key] {
				errs = append(errs, fmt.Errorf("%s: image %s is there twice", where, key))
			} else {
				refs[key] = true
			}
		}
	}
	return errors.Join(errs...)
}

func (i Item) validate() error {
	names := []string{i.Component, i.Version, i.Name}
	switch i.Kind {
	case KindChart:
	case KindPackage, KindIndex:
		names = nil
		if err := i.validatePackage(); err != nil {
			return err
		}
	default:
		names = append(names, i.Arch)
	}
	for _, name := range names {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("%q is not a name", name)
		}
	}
	switch i.Kind {
	case KindBinary, KindChart, KindPackage, KindIndex:
		if i.Ref != "" || i.Digest != "" || len(i.Blobs) > 0 {
			return fmt.Errorf("ref, digest and blobs are for images, not for kind %s", i.Kind)
		}
	case KindImage:
		if i.Ref == "" || i.Digest != "sha256:"+i.SHA256 || i.Platform != "linux/"+i.Arch || len(i.Blobs) == 0 {
			return errors.New("ref, digest, platform or blobs of the image are missing or contradict sha256 and arch")
		}
	default:
		return fmt.Errorf("kind %q is none of binary, image, chart, package, index", i.Kind)
	}
	if i.Path != i.place() {
		return fmt.Errorf("path is %q, must be %q", i.Path, i.place())
	}
	// No item can take the place of the bundle's own files.
	if top, _, _ := strings.Cut(i.Path, "/"); i.Kind == KindBinary &&
		slices.Contains([]string{imagesDir, chartsDir, systemsDir, ManifestName, SignatureName, SBOMName}, top) {
		return fmt.Errorf("component must not be %s", top)
	}
	return nil
}

// tagged are the images as the layout's index has them.
func (m Manifest) tagged() []oci.Tagged {
	var images []oci.Tagged
	for _, i := range m.Items {
		if i.Kind == KindImage {
			images = append(images, oci.Tagged{Ref: i.Ref, Arch: i.Arch, Manifest: i.Blob})
		}
	}
	return images
}
