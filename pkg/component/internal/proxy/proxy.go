// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy is what proxies in front of the API servers have in common: each is a program that runs as a service on a load balancer
// host, or as a static pod on a worker, which reaches the API servers through it.
package proxy

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Program is one of them.
type Program struct {
	// Name is the program's, and also that of its task, of its image in the catalogue and of its service.
	Name string
	// HealthPort is on 127.0.0.1: /healthz says that the program itself works, whatever the API servers do.
	HealthPort int
	// ConfigFile is the name of the file with its configuration, and ConfigText what is in it: {bind}, {healthPort}, and where the
	// program is Nginx {user} and {modules} are filled in, and the line {servers} becomes one for each server.
	ConfigFile, ConfigText string
	// Server is that line, without the indent, for a host of this name with its API server at this endpoint.
	Server func(name, endpoint string) string
	// TestConfig is the command that tests a configuration in its standard input.
	TestConfig []string
	// DropIn makes the distribution's unit use our own configuration: the distribution's stays as it is, so that its upgrades have
	// nothing to ask.
	DropIn string
	// PodCommand and PodCapabilities are elements of YAML lists, and PodScratch the directories where it writes, in a pod.
	PodCommand, PodCapabilities string
	PodScratch                  []Directory
	// NeedsServer says that it takes no configuration without a server.
	NeedsServer bool
}

var (
	_ component.Proxy    = Program{}
	_ component.Occupant = Program{}
)

// Needs are the pod's image.
func (p Program) Needs(component.Inputs) component.Needs {
	return component.Needs{Images: component.ImagesNamed(p.Name)}
}

// Serve runs the program on all addresses of a load balancer host.
func (p Program) Serve(in component.Inputs) plan.Task {
	s := settings(in, "")
	steps := []step.Step{p.Packages(in.OS, in.PackageFiles.For(p.PackageNames(in.OS)...))}
	if p.takes(s) {
		steps = append(steps, p.Config(in.OS, s))
	}
	return plan.Task{Name: p.Name, Steps: steps}
}

// Service is what the distribution calls it.
func (p Program) Service() string { return p.Name + ".service" }

// Occupies is where the distribution's package has it put what a reset removes.
func (p Program) Occupies(os family.Family) []string {
	return os.Software(family.Program(p.Name)).Leftovers
}

// Local runs the program on a worker.
func (p Program) Local(in component.Inputs) plan.Task {
	return plan.Task{Name: p.Name, Steps: []step.Step{p.Pod(settings(in, "127.0.0.1"), in.ImageRef(p.Name))}}
}

// settings are those of a proxy that listens there.
func settings(in component.Inputs, bind string) Settings {
	port := in.Target.Cluster.ControlPlaneEndpoint.Port
	return Settings{Bind: bind, Port: port, Backends: in.Target.MembersWith(spec.RoleControlPlane), BackendPort: port}
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

func (p Program) dir() string        { return "/etc/kubexm/" + p.Name }
func (p Program) configPath() string { return p.dir() + "/" + p.ConfigFile }
func (p Program) service() string    { return p.Name + ".service" }

// takes reports whether the program can run with these settings.
func (p Program) takes(s Settings) bool { return len(s.Backends) > 0 || !p.NeedsServer }

// Check is a command that succeeds while the load balancer on this host works.
func (p Program) Check() string {
	return fmt.Sprintf("/usr/bin/curl --fail --silent --output /dev/null --max-time 1 http://127.0.0.1:%d/healthz", p.HealthPort)
}

// PackageNames are the packages that Packages installs on a host with this operating system.
func (p Program) PackageNames(os family.Family) []string {
	return family.Names(os, family.Program(p.Name), family.Curl)
}

// Packages installs the program, and curl for Check, from the given files as far as these have them. It does not start before it has
// its configuration.
func (p Program) Packages(os family.Family, from step.PackageFiles) step.Step {
	return step.New(step.Meta{
		Name: p.Name + "/packages", Description: "install " + p.Name, Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	},
		step.File{Path: "/etc/systemd/system/" + p.service() + ".d/kubexm.conf", Mode: 0o644, Content: step.Literal(p.DropIn)},
		step.Claim{Paths: p.Occupies(os)},
		step.Package{Names: p.PackageNames(os), From: from},
	)
}

// Config runs the program with these settings on a host with this operating system. A change reloads it: connections last for another
// ten minutes at most.
func (p Program) Config(os family.Family, s Settings) step.Step {
	text := p.render(s, os.Nginx())
	return step.New(step.Meta{
		Name: p.Name + "/config", Description: "run " + p.Name + " in front of the API servers", Disrupts: "reloads " + p.Name,
		Follows: step.FollowsAlways,
	},
		step.Command{
			Title: "check " + p.Name + "'s configuration", Argv: p.TestConfig, Stdin: step.Literal(text),
			Done: step.Done{SameInput: true},
		},
		step.Directory{Path: p.dir(), Mode: 0o755},
		step.File{Path: p.configPath(), Mode: 0o644, Content: step.Literal(text)},
		step.Service{Name: p.service(), Watches: []string{p.configPath()}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// imageLayout is that of nginx in the image of pods, which is made of Debian's package.
var imageLayout = family.Nginx{User: "www-data", Modules: "/etc/nginx/modules-enabled/*.conf"}

// render is the program's configuration, where nginx is laid out so.
func (p Program) render(s Settings, layout family.Nginx) string {
	byName := func(a, b spec.Member) int { return strings.Compare(a.Name, b.Name) }
	var servers []string
	for _, b := range slices.SortedFunc(slices.Values(s.Backends), byName) {
		servers = append(servers, p.Server(b.Name, net.JoinHostPort(b.Address, strconv.Itoa(int(s.BackendPort)))))
	}
	bind := s.Bind
	if bind == "" {
		bind = "0.0.0.0"
	}
	return strings.NewReplacer(
		"{bind}", net.JoinHostPort(bind, strconv.Itoa(int(s.Port))),
		"{healthPort}", strconv.Itoa(p.HealthPort),
		"{user}", layout.User,
		"{modules}", layout.Modules,
	).Replace(expand(p.ConfigText, "{servers}", servers))
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
