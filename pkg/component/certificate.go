// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

// Certificate is one on a host that can be renewed.
type Certificate struct {
	// Name is what it is asked for by, and Path its file.
	Name, Path string
	// Restarts is the component that is restarted for it, "" when those who use it read it anew.
	Restarts string
}
