// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer holds the steps that run a load balancer in front of the API servers, haproxy or nginx: as a service on a
// load balancer host, or as a static pod on a worker, which reaches the API servers through it.
package loadbalancer

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Program is what balances: HAProxy or Nginx.
type Program struct {
	name string
	// packages are the distribution's, and leftovers what they leave behind when they go.
	packages, leftovers []string
	// healthPort is on 127.0.0.1: /healthz says that the program itself works, whatever the API servers do.
	healthPort int
	// configFile is the name of the file with its configuration, and config the text: {bind} and {healthPort} are filled in, and
	// the line {servers} becomes one for each server.
	configFile, config string
	// server is that line, without the indent, for a host of this name with its API server at this endpoint.
	server func(name, endpoint string) string
	// check is the command that tests a configuration in its standard input.
	check []string
	// dropIn makes the distribution's unit use our own configuration: the distribution's stays as it is, so that its upgrades have
	// nothing to ask.
	dropIn string
	pod    podParts
	// needsServer says that it takes no configuration without a server.
	needsServer bool
}

// Settings of a load balancer.
type Settings struct {
	// Bind is the address to listen on; "" means all of IPv4. Port is where clients come.
	Bind string
	Port int32
	// Backends are the hosts with API servers, in any order, and BackendPort is the API servers' port.
	Backends    []spec.Member
	BackendPort int32
}

func (p Program) dir() string        { return "/etc/kubexm/" + p.name }
func (p Program) configPath() string { return p.dir() + "/" + p.configFile }
func (p Program) service() string    { return p.name + ".service" }

// Name is the program's.
func (p Program) Name() string { return p.name }

// Takes reports whether the program can run with these settings: Nginx cannot without a server.
func (p Program) Takes(s Settings) bool { return len(s.Backends) > 0 || !p.needsServer }

// HealthPort is a port on 127.0.0.1 where /healthz says that the load balancer itself works, whatever the API servers do.
func (p Program) HealthPort() int { return p.healthPort }

// Check is a command that succeeds while the load balancer on this host works.
func (p Program) Check() string {
	return fmt.Sprintf("/usr/bin/curl --fail --silent --output /dev/null --max-time 1 http://127.0.0.1:%d/healthz", p.healthPort)
}

// PackageNames are the distribution's packages that Packages installs.
func (p Program) PackageNames() []string { return append(slices.Clone(p.packages), "curl") }

// Packages installs the program, and curl for Check, from the given files as far as these have them. It does not start before it has
// its configuration.
func (p Program) Packages(from step.PackageFiles) step.Step {
	return step.New(step.Meta{
		Name: p.name + "/packages", Description: "install " + p.name, Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	},
		step.File{Path: "/etc/systemd/system/" + p.service() + ".d/kubexm.conf", Mode: 0o644, Content: step.Literal(p.dropIn)},
		step.Claim{Paths: p.leftovers},
		step.Package{Names: p.PackageNames(), From: from},
	)
}

// Config runs the program with these settings. A change reloads it: connections last for another ten minutes at most.
func (p Program) Config(s Settings) step.Step {
	text := p.render(s)
	return step.New(step.Meta{
		Name: p.name + "/config", Description: "run " + p.name + " in front of the API servers", Disrupts: "reloads " + p.name,
		Follows: step.FollowsAlways,
	},
		step.Command{
			Title: "check " + p.name + "'s configuration", Argv: p.check, Stdin: step.Literal(text),
			Done: step.Done{SameInput: true},
		},
		step.Directory{Path: p.dir(), Mode: 0o755},
		step.File{Path: p.configPath(), Mode: 0o644, Content: step.Literal(text)},
		step.Service{Name: p.service(), Watches: []string{p.configPath()}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// render is the program's configuration.
func (p Program) render(s Settings) string {
	byName := func(a, b spec.Member) int { return strings.Compare(a.Name, b.Name) }
	var servers []string
	for _, b := range slices.SortedFunc(slices.Values(s.Backends), byName) {
		servers = append(servers, p.server(b.Name, net.JoinHostPort(b.Address, strconv.Itoa(int(s.BackendPort)))))
	}
	bind := s.Bind
	if bind == "" {
		bind = "0.0.0.0"
	}
	return strings.NewReplacer(
		"{bind}", net.JoinHostPort(bind, strconv.Itoa(int(s.Port))),
		"{healthPort}", strconv.Itoa(p.healthPort),
	).Replace(expand(p.config, "{servers}", servers))
}

// expand puts lines in the place of the line with the mark, each with its indent.
func expand(text, mark string, lines []string) string {
	before, after, _ := strings.Cut(text, mark+"\n")
	start := strings.LastIndexByte(before, '\n') + 1
	indent := before[start:]
	var all strings.Builder
	for _, l := range lines {
		all.WriteString(indent + l + "\n")
	}
	return before[:start] + all.String() + after
}
