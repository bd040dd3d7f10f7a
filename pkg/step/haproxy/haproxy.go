// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package haproxy holds the steps that run haproxy in front of the API servers: as a service on a load balancer host, or as a
// static pod on a worker, which reaches the API servers through it.
//
// It looks at each API server's /readyz as anybody may, which needs anonymous requests to be allowed, as they are by default.
package haproxy

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
	service = "haproxy.service"
	// dropIn names our own configuration: the distribution's stays as it is, so that its upgrades have nothing to ask.
	dropIn   = "/etc/systemd/system/" + service + ".d/kubexm.conf"
	dir      = "/etc/kubexm/haproxy"
	config   = dir + "/haproxy.cfg"
	manifest = "/etc/kubernetes/manifests/kubexm-haproxy.yaml"

	// HealthPort is on 127.0.0.1: /healthz says that haproxy itself works, whatever the API servers do.
	HealthPort = 10242
)

var (
	//go:embed haproxy.service.conf
	dropInFile string
	//go:embed haproxy.cfg
	configFile string
	//go:embed pod.yaml
	podFile string
)

// Check is a command that succeeds while haproxy on this host works.
const Check = "/usr/bin/curl --fail --silent --output /dev/null --max-time 1 http://127.0.0.1:10242/healthz"

// Settings of haproxy.
type Settings struct {
	// Bind is the address to listen on; "" means all of IPv4. Port is where clients come.
	Bind string
	Port int32
	// Backends are the hosts with API servers, in any order, and BackendPort is the API servers' port.
	Backends    []spec.Member
	BackendPort int32
}

// Packages installs haproxy, and curl for Check. It does not start before it has its configuration.
func Packages() step.Step {
	return step.New(step.Meta{
		Name: "haproxy/packages", Description: "install haproxy", Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	},
		step.File{Path: dropIn, Mode: 0o644, Content: step.Literal(dropInFile)},
		// What the package leaves behind when it goes.
		step.Claim{Paths: []string{"/run/haproxy", "/run/haproxy.pid", "/run/haproxy-master.sock", "/var/lib/haproxy"}},
		step.Package{Names: []string{"haproxy", "curl"}},
	)
}

// Config runs haproxy with these settings. A change reloads it: connections last for another ten minutes at most.
func Config(s Settings) step.Step {
	text := render(s)
	return step.New(step.Meta{
		Name: "haproxy/config", Description: "run haproxy in front of the API servers", Disrupts: "reloads haproxy",
	},
		step.Command{
			Title: "check haproxy's configuration", Argv: []string{"haproxy", "-c", "-q", "-f", "/dev/stdin"}, Stdin: step.Literal(text),
			Done: step.Done{SameInput: true},
		},
		step.Directory{Path: dir, Mode: 0o755},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(text)},
		step.Service{Name: service, Watches: []string{config}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// Pod has the kubelet run haproxy with these settings as a static pod. A change of the settings is a change of the manifest,
// which restarts the pod: what goes through it must connect again, a second or two later.
func Pod(s Settings, image string) step.Step {
	text := render(s)
	return step.New(step.Meta{
		Name: "haproxy/pod", Description: "run haproxy in front of the API servers", Disrupts: "restarts haproxy",
	},
		step.Directory{Path: dir, Mode: 0o755},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(text)},
		step.File{Path: manifest, Mode: 0o600, Content: step.Literal(pod(text, image))},
	)
}

// render is haproxy's configuration.
func render(s Settings) string {
	byName := func(a, b spec.Member) int { return strings.Compare(a.Name, b.Name) }
	var servers strings.Builder
	for _, b := range slices.SortedFunc(slices.Values(s.Backends), byName) {
		fmt.Fprintf(&servers, "    server %s %s\n", b.Name, net.JoinHostPort(b.Address, strconv.Itoa(int(s.BackendPort))))
	}
	bind := s.Bind
	if bind == "" {
		bind = "0.0.0.0"
	}
	return strings.NewReplacer(
		"{bind}", net.JoinHostPort(bind, strconv.Itoa(int(s.Port))),
		"    {servers}\n", servers.String(),
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
