// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build makes artifacts from source: programs from Go modules, a C file, a Helm chart out of a module,
// a small Debian user space for images.
//
// Every source is checked before it is used: modules by the Go checksum database (and by the sums that the
// catalogue pins), Debian packages by the archive's signature. A build is given an empty directory and leaves its
// files there; where they are kept, and that two builds of the same thing do not run at once, is the caller's
// concern (see package artifact).
package build
