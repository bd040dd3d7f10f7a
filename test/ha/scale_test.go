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
	for _, kind := range []struct {
		by      string
		hosts   int
		worker  string
		masters []string
	}{
		{"kubeadm", 4, "$4", []string{"$1", "$1, $2, $3", "$1"}},
		{"kubexm", 6, "$6", []string{"$1, $2, $3", "$1, $2, $3, $4, $5", "$1, $4, $5"}},
	} {
		t.Run(kind.by, func(t *testing.T) {
			spec := func(masters string) string {
				return strings.NewReplacer("$MASTERS", masters, "$WORKER", kind.worker, "$BY", kind.by).Replace(
					`  roleGroups: {master: [$MASTERS], worker: [$WORKER]}
  kubernetes: {version: v1.36.3, type: $BY}
  etcd: {type: $BY}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
`)
			}
			c := start(t, "has", kind.hosts, spec(kind.masters[0]))
			c.create()
			c.refuses(spec("$1, $2"), "etcd runs on them, and its members decide by majority: name 1, 3, 5 or 7 hosts")
			for _, masters := range kind.masters[1:] {
				c.write(spec(masters))
				c.create()
				c.works()
				c.staysAsItIs()
			}
			c.isReset()
		})
	}
}

// refuses wants a config file to be refused before anything is done.
func (c *cluster) refuses(spec, want string) {
	c.t.Helper()
	c.write(spec)
	if out, err := c.Run(c.t.Context(), c.CreateArgs()...); err == nil || !strings.Contains(out, want) {
		c.t.Errorf("it is not refused for %q: %v\n%s", want, err, out)
	}
}
