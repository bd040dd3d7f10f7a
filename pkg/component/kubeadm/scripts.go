// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strconv"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// ready is what scripts about static pods that run begin with.
//
//go:embed ready.sh
var ready string

// fail is what scripts end with that failed.
const fail = `fail() {
	printf '%s\n' "$*" >&2
	exit 1
}
`

// askReady is the command that asks this host's API server whether it is ready.
func askReady(c Cluster, n kubelet.Node) []string {
	const ask = `api /readyz >/dev/null || { echo "kube-apiserver is not ready"; exit 1; }`
	return append(apiEnvironment(c, n), "/bin/sh", "-uc", ready+ask, "kubeadm")
}

// apiEnvironment is what ready.sh must know to ask this host's API server.
func apiEnvironment(c Cluster, n kubelet.Node) []string {
	port := strconv.Itoa(int(c.Spec.ControlPlaneEndpoint.Port))
	return []string{"/usr/bin/env", "name=" + n.Name, "host=" + host.InURL(n.Address), "port=" + port, "dir=" + dir}
}

// rendered holds when file has this content: it is written last.
func rendered(file, content string) step.Done {
	return step.Done{Contents: []step.Content{{Path: file, Digest: "sha256:" + digest(content)}}}
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
