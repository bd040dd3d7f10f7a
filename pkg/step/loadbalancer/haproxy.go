// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import _ "embed"

var (
	//go:embed haproxy.service.conf
	haproxyDropIn string
	//go:embed haproxy.cfg
	haproxyConfig string
)

// HAProxy looks at each API server's /readyz as anybody may, which needs anonymous requests to be allowed, as they are by
// default.
var HAProxy = Program{
	name: "haproxy", packages: []string{"haproxy"},
	leftovers:  []string{"/run/haproxy", "/run/haproxy.pid", "/run/haproxy-master.sock", "/var/lib/haproxy"},
	healthPort: 10242,
	configFile: "haproxy.cfg", config: haproxyConfig,
	server: func(name, endpoint string) string { return "server " + name + " " + endpoint },
	check:  []string{"haproxy", "-c", "-q", "-f", "/dev/stdin"},
	dropIn: haproxyDropIn,
	pod: podParts{
		command:      "haproxy, -W, -db, -f, /etc/kubexm/haproxy/haproxy.cfg",
		capabilities: "NET_BIND_SERVICE, SETGID, SETUID",
	},
}
