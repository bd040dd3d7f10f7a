// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nginx holds the steps that run nginx in front of the API servers: as a service on a load balancer host, or as a
// static pod on a worker, which reaches the API servers through it.
//
// This nginx does not look at API servers by itself: one that takes no connection is left out for some seconds, and the client
// that met it gets another, but one that takes connections and is not ready gets its share. haproxy knows better.
package nginx

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	service = "nginx.service"
	// dropIn names our own configuration: the distribution's stays as it is, so that its upgrades have nothing to ask.
	dropIn   = "/etc/systemd/system/" + service + ".d/kubexm.conf"
	dir      = "/etc/kubexm/nginx"
	config   = dir + "/nginx.conf"
	manifest = "/etc/kubernetes/manifests/kubexm-nginx.yaml"

	// HealthPort is on 127.0.0.1: /healthz says that nginx itself works, whatever the API servers do.
	HealthPort = 10243
)

var (
	//go:embed nginx.service.conf
	dropInFile string
	//go:embed nginx.conf
	configFile string
	//go:embed pod.yaml
	podFile string
)

// Check is a command that succeeds while nginx on this host works.
const Check = "/usr/bin/curl --fail --silent --output /dev/null --max-time 1 http://127.0.0.1:10243/healthz"

// check tests the configuration in its standard input; nginx reads none but from a file.
const check = `f=$(mktemp); trap 'rm -f "$f"' EXIT; cat >"$f"; nginx -t -q -c "$f"`

// Settings of nginx.
type Settings struct {
	// Bind is the address to listen on; "" means all of IPv4. Port is where clients come.
	Bind string
	Port int32
	// Backends are the hosts with API servers, at least one, in any order; BackendPort is the API servers' port.
	Backends    []spec.Member
	BackendPort int32
}

// Packages installs nginx, and curl for Check. It does not start before it has its configuration: the distribution's has it
// listen on port 80.
func Packages() step.Step {
	return step.New(step.Meta{
		Name: "nginx/packages", Description: "install nginx", Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	},
		step.File{Path: dropIn, Mode: 0o644, Content: step.Literal(dropInFile)},
		// What the package leaves behind when it goes.
		step.Claim{Paths: []string{"/var/www"}},
		step.Package{Names: []string{"nginx", "libnginx-mod-stream", "curl"}},
	)
}

// Config runs nginx with these settings. A change reloads it: connections last for another ten minutes at most.
func Config(s Settings) step.Step {
	text := render(s)
	return step.New(step.Meta{
		Name: "nginx/config", Description: "run nginx in front of the API servers", Disrupts: "reloads nginx",
	},
		step.Command{
			Title: "check nginx's configuration", Argv: []string{"/bin/sh", "-ec", check}, Stdin: step.Literal(text),
			Done: step.Done{SameInput: true},
		},
		step.Directory{Path: dir, Mode: 0o755},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(text)},
		step.Service{Name: service, Watches: []string{config}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// Pod has the kubelet run nginx with these settings as a static pod. A change of the settings is a change of the manifest,
// which restarts the pod: what goes through it must connect again, a second or two later.
func Pod(s Settings, image string) step.Step {
	text := render(s)
	return step.New(step.Meta{
		Name: "nginx/pod", Description: "run nginx in front of the API servers", Disrupts: "restarts nginx",
	},
		step.Directory{Path: dir, Mode: 0o755},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(text)},
		step.File{Path: manifest, Mode: 0o600, Content: step.Literal(pod(text, image))},
	)
}

// render is nginx's configuration.
func render(s Settings) string {
	byName := func(a, b spec.Member) int { return strings.Compare(a.Name, b.Name) }
	var servers strings.Builder
	for _, b := range slices.SortedFunc(slices.Values(s.Backends), byName) {
		fmt.Fprintf(&servers, "        server %s max_fails=1 fail_timeout=5s; # %s\n",
			net.JoinHostPort(b.Address, strconv.Itoa(int(s.BackendPort))), b.Name)
	}
	bind := s.Bind
	if bind == "" {
		bind = "0.0.0.0"
	}
	return strings.NewReplacer(
		"{bind}", net.JoinHostPort(bind, strconv.Itoa(int(s.Port))),
		"        {servers}\n", servers.String(),
		"{healthPort}", strconv.Itoa(HealthPort),
	).Replace(configFile)
}

// pod is the static pod of a configuration, by whose digest the kubelet sees that it is another.
func pod(config, image string) string {
	sum := sha256.Sum256([]byte(config))
	return strings.NewReplacer(
		"{digest}", hex.EncodeToString(sum[:]),
		"{image}", image,
		"{healthPort}", strconv.Itoa(HealthPort),
	).Replace(podFile)
}
