// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keepalived lets a virtual address move between load balancer hosts by keepalived.
package keepalived

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/vip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// VirtualAddress is keepalived.
type VirtualAddress struct{}

var (
	_ component.VirtualAddress = VirtualAddress{}
	_ component.Occupant       = VirtualAddress{}
)

// Needs nothing: keepalived is a package of the operating system.
func (VirtualAddress) Needs(component.Inputs) component.Needs { return component.Needs{} }

// Claim is none: nothing but keepalived itself puts the address on a load balancer host, and Config declares it.
func (VirtualAddress) Claim(component.Inputs) []plan.Task { return nil }

// Certificates are none.
func (VirtualAddress) Certificates(component.Inputs) []step.Step { return nil }

// Service is keepalived's.
func (VirtualAddress) Service() string { return service }

// Occupies is the configuration: keepalived has one, whoever wrote it.
func (VirtualAddress) Occupies(family.Family) []string { return []string{config} }

// Hold runs keepalived beside the host's proxy.
func (VirtualAddress) Hold(in component.Inputs) plan.Task {
	set, host := in.Target.Cluster.LoadBalancer.Keepalived, in.Target.Host
	var peers []string
	for _, m := range in.Target.MembersWith(spec.RoleLoadBalancer) {
		if m.Name != host.Name {
			peers = append(peers, m.Address)
		}
	}
	return plan.Task{Name: "keepalived", Steps: []step.Step{
		Packages(in.OS, in.PackageFiles.For(PackageNames(in.OS)...)),
		Config(Settings{
			Name: host.Name, Interface: cmp.Or(set.Interface, in.System.DefaultInterface), Address: host.NodeAddress(),
			VIP: in.Target.Cluster.ControlPlaneEndpoint.Address, RouterID: set.VirtualRouterID, Peers: peers,
			Priority: Priority(host.NodeAddress(), peers), Check: in.External.Proxy.Check(),
		}),
	}}
}

const (
	service = "keepalived.service"
	dropIn  = "/etc/systemd/system/" + service + ".d/kubexm.conf"
	config  = "/etc/keepalived/keepalived.conf"
)

var (
	//go:embed keepalived.service.conf
	dropInFile string
	//go:embed keepalived.conf
	configFile string
)

// check tests the configuration in its standard input; keepalived reads none but from a regular file. When it is done with
// a test it ends its parent, too, unless that ignores it.
const check = `f=$(mktemp); trap 'rm -f "$f"' EXIT; trap '' TERM; cat >"$f"; keepalived --config-test --use-file="$f"`

// Settings of keepalived on one host.
type Settings struct {
	// Name is the host's, Interface the one that gets the virtual address, Address its own address there.
	Name, Interface, Address string
	// VIP is the virtual address.
	VIP string
	// RouterID tells this virtual address from others in the same network segment.
	RouterID int32
	// Peers are the addresses of the other load balancer hosts, in any order.
	Peers []string
	// Priority is what Priority says.
	Priority int
	// Check is a command that succeeds while this host may have the address: while its proxy works.
	Check string
}

// Priority is that of the host with this address among all of them: by it they agree, without another word, who gets the
// virtual address when nobody has it.
func Priority(address string, peers []string) int {
	const first = 200
	before := 0
	for _, p := range peers {
		if p < address {
			before++
		}
	}
	return first - before
}

// PackageNames are the packages that Packages installs on a host with this operating system.
func PackageNames(os family.Family) []string { return family.Names(os, family.Keepalived) }

// Packages installs keepalived, from the given files if these have it. It does not start before it has its configuration.
func Packages(os family.Family, from step.PackageFiles) step.Step {
	return step.New(step.Meta{
		Name: "keepalived/packages", Description: "install keepalived", Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	},
		step.File{Path: dropIn, Mode: 0o644, Content: step.Literal(dropInFile)},
		step.Package{Names: PackageNames(os), From: from},
	)
}

// Config runs keepalived with these settings. A change reloads it, by which the virtual address stays where it is.
func Config(s Settings) step.Step {
	text := render(s)
	return step.New(step.Meta{
		Name: "keepalived/config", Description: "let the virtual address move between hosts", Disrupts: "reloads keepalived",
		Follows: step.FollowsAlways,
	},
		step.Command{
			Title: "check keepalived's configuration", Argv: []string{"/bin/sh", "-ec", check}, Stdin: step.Literal(text),
			Done: step.Done{SameInput: true},
		},
		step.Claim{Cleanup: []step.Cleanup{vip.Release(s.VIP)}},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(text)},
		step.Service{Name: service, Watches: []string{config}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// render is keepalived's configuration.
func render(s Settings) string {
	unicast := ""
	for _, p := range slices.Sorted(slices.Values(s.Peers)) {
		unicast += "        " + p + "\n"
	}
	if unicast != "" { // a host that is alone may not speak of it
		unicast = "    unicast_src_ip " + s.Address + "\n    unicast_peer {\n" + unicast + "    }\n"
	}
	return strings.NewReplacer(
		"{name}", s.Name,
		"{check}", s.Check,
		"{interface}", s.Interface,
		"{routerID}", strconv.Itoa(int(s.RouterID)),
		"{priority}", strconv.Itoa(s.Priority),
		"    {unicast}\n", unicast,
		"{vip}", s.VIP,
	).Replace(configFile)
}
