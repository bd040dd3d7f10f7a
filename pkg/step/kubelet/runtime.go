// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

// Runtime is what a kubelet, and who works beside it, must know of the container runtime of its host.
type Runtime struct {
	// Socket is the URL of its CRI, such as unix:///run/runtime.sock.
	Socket string
	// Unit is systemd's name for it; the kubelet is started after it.
	Unit string
	// Name is what it calls itself: a Node's containerRuntimeVersion begins with it and ://.
	Name string
	// Enter is shell that defines a function enter. "enter NAME" prints the beginning of a command, in words without quotes: what comes
	// after it is run in the container of this name of the kubelet's that runs. It fails if there is none, and says so as an error.
	Enter string
}
