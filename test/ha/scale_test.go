// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"strings"
	"testing"
)

// TestScale grows a control plane and shrinks it again, by the config file. The host that began it is among those that stay or
// go as it comes: no host is more than another.
func TestScale(t *testing.T) {
	const spec = `  roleGroups: {master: [$MASTERS], worker: [$4]}
  kubernetes: {version: v1.36.3, type: kubeadm}
  etcd: {type: kubeadm}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
`
	c := start(t, "has", 4, strings.ReplaceAll(spec, "$MASTERS", "$1"))
	c.create()
	for _, masters := range []string{"$1, $2, $3", "$1"} {
		c.write(strings.ReplaceAll(spec, "$MASTERS", masters))
		c.create()
		c.works()
		c.staysAsItIs()
	}
	c.givesBack()
}
