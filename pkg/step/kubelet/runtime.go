// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

// Runtime is what a kubelet must know of the container runtime of its host.
type Runtime struct {
	// Socket is the URL of its CRI, such as unix:///run/runtime.sock.
	Socket string
	// Unit is systemd's name for it; the kubelet is started after it.
	Unit string
}
