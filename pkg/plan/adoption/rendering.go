// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	_ "embed"
	"path"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Rendering is what kubeadm makes of a host's configuration for one component: a static pod's manifest or, of "kubelet", the kubelet's
// configuration and flags.
type Rendering struct {
	Component string
	// phase and config are kubeadm's.
	phase, config string
}

// Kubelet is the Component of what the kubelet reads.
const Kubelet = "kubelet"

//go:embed render.sh
var render string

// Renderings are what s has kubeadm make of the host, none if it is another step.
func Renderings(s step.Step) []Rendering {
	var all []Rendering
	for _, p := range parts(s) {
		c, is := p.(step.Command)
		if !is {
			continue
		}
		words := map[string]string{}
		for _, w := range c.Argv {
			name, value, _ := strings.Cut(w, "=")
			words[name] = value
		}
		switch r := (Rendering{Component: words["component"], phase: words["phase"], config: words["config"]}); {
		case r.config == "":
		case r.Component != "" && r.phase != "":
			all = append(all, r)
		case words["kubelet"] != "":
			r.Component, r.phase = Kubelet, "kubelet-start"
			all = append(all, r)
		}
	}
	return all
}

// Query renders it with the host's own kubeadm, beside what is there. It changes nothing.
func (r Rendering) Query() host.CommandQuery {
	return host.CommandQuery{
		ID: "rendering of " + r.Component, Timeout: 4 * host.QueryTimeout,
		Argv: []string{
			"/usr/bin/env", "component=" + r.Component, "phase=" + r.phase, "config=" + r.config, "patches=/etc/kubernetes/patches", "/bin/sh", "-uc", render, "kubeadm",
		},
	}
}

// ServingNames are the names that the API server's certificate is made for, a line each, besides those that kubeadm gives it: "" if no step
// makes it.
func ServingNames(nodes []plan.Node) (string, error) {
	return text(nodes, func(p string) bool { return path.Base(p) == "apiserver.names" })
}
