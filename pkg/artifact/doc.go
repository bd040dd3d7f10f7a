// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifact brings together what a cluster is made of: programs, images and charts, each known by its digest.
//
// Three nouns:
//
//   - Catalogue says which versions there are and where each comes from: built from source (Go modules that the checksum
//     database verifies) or downloaded (with the publisher's sha256). It is data; adding a component is an entry in
//     catalogue.yaml.
//   - Store keeps what was made, by content, and finds it again by its recipe. What is in it is never made twice.
//   - Bundle is all of one Kubernetes version, as a directory or as one tar, with a manifest that lists every file's sum.
//
// Create goes from the first to the last:
//
//	store, err := artifact.OpenStore("")
//	bundle, err := artifact.Create(ctx, artifact.CreateOptions{KubernetesVersion: "v1.36.3", Out: "bundle.tar.zst", Store: store})
//
// and anyone who makes a cluster reads the last:
//
//	bundle, err := artifact.Open(ctx, "bundle.tar.zst", store)
//	err = bundle.Verify(ctx)
//	kubelet, err := bundle.Binary("kubernetes", "", "amd64", "kubelet")
//	archive, err := bundle.ImageArchive("amd64", refs...)
//
// A bundle:
//
//	manifest.json                           what is in it (Manifest)
//	images/                                 one OCI image layout with all images
//	helm/<chart>-<version>.tgz
//	<component>/<version>/<arch>/<program>
//	os/<id>/<version>/<arch>/               packages of an operating system, as an apt repository (*.deb, Packages, Release)
package artifact
