// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// FirewallOff stops firewalld and ufw, whichever is there.
func FirewallOff() step.Step {
	return step.New(step.Meta{Name: "system/firewall", Description: "turn the firewall manager off"},
		step.Service{Name: "firewalld.service", State: step.Stopped},
		step.Service{Name: "ufw.service", State: step.Stopped},
	)
}

// Openings are what must get past a host's firewall.
type Openings struct {
	// Ports are open to all.
	Ports []spec.Port
	// Peers are open to one address each.
	Peers []Peer
	// Pods are the prefixes whose packets the host forwards. Those to NodePorts and to load balancers are among them: they are to a
	// pod by the time that a firewall sees them.
	Pods []string
}

// Peer is another host, and the port that it reaches.
type Peer struct {
	Address string
	Port    spec.Port
}

var (
	//go:embed firewalld.sh
	firewalld string
	//go:embed ufw.sh
	ufw string
)

const (
	firewalldDir = "/etc/firewalld/"
	ufwProfile   = "/etc/ufw/applications.d/kubexm"
)

// Firewalld opens o by a service and policies of our own. They come before the zones, of which none is changed.
func Firewalld(o Openings) step.Step {
	files := o.firewalldFiles()
	digest := digestOf(files)
	loaded := step.Done{Check: []string{"/bin/sh", "-uc", policyLoaded, "sh", digest}}
	// What it undoes comes last: the files are gone by then.
	parts := []step.Step{step.Command{
		Title: "see that firewalld may be reloaded", Argv: inShell(firewalld, "may_reload"), Undo: inShell(firewalld, "forget"), Done: loaded,
	}}
	for _, f := range files {
		content := strings.ReplaceAll(f.content, digestMark, digest)
		parts = append(parts, step.File{Path: firewalldDir + f.name, Mode: 0o644, Content: step.Literal(content)})
	}
	return step.New(step.Meta{Name: "system/firewall", Description: "open ports in firewalld"},
		append(parts, step.Command{Title: "reload firewalld", Argv: []string{"firewall-cmd", "--reload"}, Done: loaded})...)
}

// policyLoaded asks firewalld whether it runs with the files of the digest $1, which stands in the policy's description.
const policyLoaded = `busctl call org.fedoraproject.FirewallD1 /org/fedoraproject/FirewallD1 org.fedoraproject.FirewallD1.policy \
	getPolicySettings s kubexm 2>/dev/null | grep -qF -e "$1" || { echo "firewalld has not loaded the ports to be open"; exit 1; }`

// digestMark stands in the files for the digest of all of them.
const digestMark = "@DIGEST@"

type file struct{ name, content string }

func digestOf(files []file) string {
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%s\n%s\n", f.name, f.content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

const xmlHeader = `<?xml version="1.0" encoding="utf-8"?>` + "\n"

// firewalldFiles are written in the form of firewalld.service(5) and firewalld.policies(5).
func (o Openings) firewalldFiles() []file {
	var service, host, pods strings.Builder
	const reached = "What others reach of Kubernetes on this host."
	fmt.Fprintf(&service, "%s<service>\n  <short>kubexm</short>\n  <description>%s</description>\n", xmlHeader, reached)
	for _, p := range o.Ports {
		number, protocol, _ := strings.Cut(p.String(), "/")
		fmt.Fprintf(&service, "  <port port=%q protocol=%q/>\n", number, protocol)
	}
	service.WriteString("</service>\n")

	const policy = xmlHeader + `<policy priority="-100" target="CONTINUE">
  <short>kubexm</short>
  <description>%s</description>
  <ingress-zone name="ANY"/>
  <egress-zone name=%q/>
`
	fmt.Fprintf(&host, policy, reached+" "+digestMark, "HOST")
	host.WriteString(`  <service name="kubexm"/>` + "\n")
	for _, p := range o.Peers {
		fmt.Fprintf(&host, "  <rule family=%q>\n    <source address=%q/>\n    <protocol value=%q/>\n    <accept/>\n  </rule>\n",
			ipFamily(p.Address), p.Address, p.Port.Protocol)
	}
	host.WriteString("</policy>\n")
	files := []file{{"services/kubexm.xml", service.String()}, {"policies/kubexm.xml", host.String()}}
	if len(o.Pods) == 0 {
		return files
	}
	fmt.Fprintf(&pods, policy, "What this host forwards from and to pods.", "ANY")
	for _, cidr := range o.Pods {
		for _, end := range []string{"source", "destination"} {
			fmt.Fprintf(&pods, "  <rule family=%q>\n    <%s address=%q/>\n    <accept/>\n  </rule>\n", ipFamily(cidr), end, cidr)
		}
	}
	pods.WriteString("</policy>\n")
	return append(files, file{"policies/kubexm-pods.xml", pods.String()})
}

func ipFamily(address string) string {
	if strings.Contains(address, ":") {
		return "ipv6"
	}
	return "ipv4"
}

// UFW opens o by an application profile of our own, and by rules that say in their comment that they are ours.
func UFW(o Openings) step.Step {
	profile := o.ufwProfile()
	// With another profile all rules have another comment.
	arguments := append([]string{"made by kubexm " + digestOf([]file{{ufwProfile, profile}})}, o.ufwRules()...)
	return step.New(step.Meta{Name: "system/firewall", Description: "open ports in ufw"},
		step.File{Path: ufwProfile, Mode: 0o644, Content: step.Literal(profile)},
		step.Command{
			Title: "allow kubexm in ufw", Argv: inShell(ufw, `make_so "$@"`, arguments...), Undo: inShell(ufw, "forget"),
			Done: step.Done{Check: inShell(ufw, `is_so "$@"`, arguments...)},
		})
}

// ufwProfile is the profile of o's ports, in the form of ufw(8), APPLICATION INTEGRATION.
func (o Openings) ufwProfile() string {
	var lists []string
	for _, p := range o.Ports {
		lists = append(lists, strings.Replace(p.String(), "-", ":", 1))
	}
	return "[kubexm]\ntitle=kubexm\ndescription=What others reach of Kubernetes on this host.\nports=" + strings.Join(lists, "|") + "\n"
}

func (o Openings) ufwRules() []string {
	rules := []string{"allow kubexm"}
	for _, p := range o.Peers {
		rules = append(rules, fmt.Sprintf("allow from %s proto %s", p.Address, p.Port.Protocol))
	}
	for _, cidr := range o.Pods {
		if prefix, err := netip.ParsePrefix(cidr); err == nil {
			cidr = prefix.Masked().String() // as ufw writes it
		}
		rules = append(rules, "route allow from "+cidr, "route allow to "+cidr)
	}
	return rules
}

// inShell is the command that does something of a script of functions.
func inShell(functions, act string, arguments ...string) []string {
	return append([]string{"/bin/sh", "-uc", functions + act, "sh"}, arguments...)
}
