// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package haproxy carries requests to the API servers by HAProxy.
package haproxy

import (
	_ "embed"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
)

var (
	//go:embed haproxy.service.conf
	dropIn string
	//go:embed haproxy.cfg
	config string
)

// Proxy looks at each API server's /readyz as anybody may, which needs anonymous requests to be allowed, as they are by
// default.
var Proxy = proxy.Program{
	Name:       string(family.HAProxy),
	HealthPort: 10242,
	ConfigFile: "haproxy.cfg", ConfigText: config,
	Server:          func(name, endpoint string) string { return "server " + name + " " + endpoint },
	TestConfig:      []string{"haproxy", "-c", "-q", "-f", "/dev/stdin"},
	DropIn:          dropIn,
	PodCommand:      "haproxy, -W, -db, -f, /etc/kubexm/haproxy/haproxy.cfg",
	PodCapabilities: "NET_BIND_SERVICE, SETGID, SETUID",
}
