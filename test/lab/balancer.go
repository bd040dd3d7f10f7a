// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// Balance makes a host a load balancer that is none of the cluster's own, as its administrator would: an haproxy of the distribution in
// front of the others, of which those are used whose API server is ready.
func Balance(t testing.TB, h *hosts.Host, others ...*hosts.Host) {
	t.Helper()
	var config strings.Builder
	config.WriteString(`defaults
  mode tcp
  timeout connect 5s
  timeout check 5s
  timeout client 10m
  timeout server 10m
frontend api
  bind :6443
  default_backend api
backend api
  option httpchk GET /readyz
  default-server check check-ssl verify none inter 2s fall 3 rise 1 on-marked-down shutdown-sessions
`)
	for _, other := range others {
		fmt.Fprintf(&config, "  server %s %s:6443\n", other.Name, other.Address)
	}
	install := h.Command(t.Context(), "sh", "-ec", `apt-get -q update
DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends haproxy
cat >/etc/haproxy/haproxy.cfg
systemctl restart haproxy`)
	install.Stdin = strings.NewReader(config.String())
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("haproxy cannot be installed on %s: %v\n%s", h.Name, err, out)
	}
}
