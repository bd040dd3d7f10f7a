// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import _ "embed"

var (
	//go:embed nginx.service.conf
	nginxDropIn string
	//go:embed nginx.conf
	nginxConfig string
)

// nginxCheck tests the configuration in its standard input; nginx reads none but from a file.
const nginxCheck = `f=$(mktemp); trap 'rm -f "$f"' EXIT; cat >"$f"; nginx -t -q -c "$f"`

// Nginx does not look at API servers by itself, in the distributions' builds: one that takes no connection is left out for some
// seconds, and the client that met it gets another, but one that takes connections and is not ready gets its share. HAProxy
// knows better.
var Nginx = Program{
	// Without our configuration, the distribution's would have it listen on port 80.
	name: "nginx", packages: []string{"nginx", "libnginx-mod-stream"},
	leftovers:  []string{"/var/www"},
	healthPort: 10243,
	configFile: "nginx.conf", config: nginxConfig,
	server: func(name, endpoint string) string {
		return "server " + endpoint + " max_fails=1 fail_timeout=5s; # " + name
	},
	check:       []string{"/bin/sh", "-ec", nginxCheck},
	dropIn:      nginxDropIn,
	needsServer: true,
	pod: podParts{
		command:      `nginx, -e, stderr, -c, /etc/kubexm/nginx/nginx.conf, -g, "daemon off;"`,
		capabilities: "CHOWN, NET_BIND_SERVICE, SETGID, SETUID",
		scratch:      []directory{{"run", "/run"}, {"scratch", "/var/lib/nginx"}},
	},
}
