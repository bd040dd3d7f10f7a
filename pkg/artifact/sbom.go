// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// SBOMName is the path in a bundle of its bill of materials: an SPDX 2.3 document in JSON.
const SBOMName = "sbom.spdx.json"

const (
	sbomNamespace = "https://github.com/mensylisir/cluster-api-provider-kubexm/sbom/"
	noAssertion   = "NOASSERTION"
)

// sbomOf lists a manifest's items as SPDX packages. The same items give the same bytes, so its date is the epoch: a bundle is not made
// at a time, but of sources.
func sbomOf(m Manifest) ([]byte, error) {
	items, err := json.Marshal(m.Items)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(items)
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      "kubexm bundle for Kubernetes " + m.KubernetesVersion,
		DocumentNamespace: sbomNamespace + hex.EncodeToString(sum[:]),
		CreationInfo: &v2_3.CreationInfo{
			Created: "1970-01-01T00:00:00Z", Creators: []common.Creator{{CreatorType: "Tool", Creator: creatorOf(m)}},
		},
	}
	for n, i := range m.Items {
		p := packageOf(i, n)
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, &v2_3.Relationship{
			RefA: common.MakeDocElementID("", "DOCUMENT"),
			RefB: common.MakeDocElementID("", string(p.PackageSPDXIdentifier)), Relationship: "DESCRIBES",
		})
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("%s: %w", SBOMName, err)
	}
	return out.Bytes(), nil
}

func creatorOf(m Manifest) string {
	if m.CreatedBy == "" {
		return "kubexm"
	}
	return strings.ReplaceAll(m.CreatedBy, " ", "-")
}

func packageOf(i Item, n int) *v2_3.Package {
	p := &v2_3.Package{
		PackageName: i.Name, PackageSPDXIdentifier: common.ElementID(fmt.Sprintf("Package-%d", n+1)),
		PackageVersion: i.Version, PackageFileName: i.Path, PackageDownloadLocation: noAssertion,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: i.SHA256}},
		PackageSourceInfo:       i.Source,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
		PackageComment: strings.TrimSpace(fmt.Sprintf("%s of %s %s", i.Kind, i.Component, i.Arch)),
	}
	if strings.HasPrefix(i.Source, "https://") {
		p.PackageDownloadLocation = i.Source
	}
	if id := purlOf(i); id != "" {
		p.PackageExternalReferences = []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: id,
		}}
	}
	return p
}

// purlOf is the package URL (purl-spec) of what an item is made from, "" where there is no type for it.
func purlOf(i Item) string {
	if i.Kind == KindImage {
		return "pkg:oci/" + i.Name + "@" + url.QueryEscape(i.Digest) + "?arch=" + i.Arch
	}
	if i.Kind == KindPackage {
		return "pkg:deb/" + i.Component + "/" + i.Name + "@" + url.QueryEscape(i.Version) + "?arch=" + i.Arch +
			"&distro=" + strings.ReplaceAll(i.System, "/", "-")
	}
	if module, found := strings.CutPrefix(i.Source, "go:"); found {
		module, _, _ = strings.Cut(module, " ")
		return "pkg:golang/" + module
	}
	return ""
}
