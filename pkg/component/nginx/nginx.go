// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nginx carries requests to the API servers by Nginx.
package nginx

import (
	_ "embed"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
)

var (
	//go:embed nginx.service.conf
	dropIn string
	//go:embed nginx.conf
	config string
)

// test tests the configuration in its standard input; nginx reads none but from a file.
const test = `f=$(mktemp); trap 'rm -f "$f"' EXIT; cat >"$f"; nginx -t -q -c "$f"`

// Proxy does not look at API servers by itself, in the distributions' builds: one that takes no connection is left out for some
// seconds, and the client that met it gets another, but one that takes connections and is not ready gets its share. HAProxy
// knows better.
var Proxy = proxy.Program{
	// Without our configuration, the distribution's would have it listen on port 80.
	Name:       string(family.NginxProxy),
	HealthPort: 10243,
	ConfigFile: "nginx.conf", ConfigText: config,
	Server: func(name, endpoint string) string {
		return "server " + endpoint + " max_fails=1 fail_timeout=5s; # " + name
	},
	TestConfig:      []string{"/bin/sh", "-ec", test},
	DropIn:          dropIn,
	NeedsServer:     true,
	PodCommand:      `nginx, -e, stderr, -c, /etc/kubexm/nginx/nginx.conf, -g, "daemon off;"`,
	PodCapabilities: "CHOWN, NET_BIND_SERVICE, SETGID, SETUID",
	PodScratch:      []proxy.Directory{{Name: "run", Path: "/run"}, {Name: "scratch", Path: "/var/lib/nginx"}},
}
