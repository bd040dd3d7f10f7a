// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubexm makes clusters of test hosts by the program kubexm and a config.yaml, as a user would.
package kubexm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// Cluster is one that the program makes of hosts. All paths are absolute.
type Cluster struct {
	Name string
	// Dir is where the program is run: it keeps the config file, and the program's state.
	Dir string
	// Hosts are at most nine. KnownHosts is the file with their keys.
	Hosts      []*hosts.Host
	KnownHosts string
	// IPv6First has the hosts' Nodes have their IPv6 addresses first.
	IPv6First bool
	// Jump, if not nil, is the host through which the others are reached. It is none of those that the specification speaks of.
	Jump *hosts.Host
	// Agent has the config file name no keys: an SSH agent has them.
	Agent bool
	// Internal, if not nil, is the address at which others reach a host, where that is not the one at which it is reached.
	Internal func(*hosts.Host) string
	// Program and Bundle are what clusters are made by and of.
	Program, Bundle string
}

// Config is the config file.
func (c *Cluster) Config() string { return filepath.Join(c.Dir, "config.yaml") }

// Kubeconfig is that of the administrator, which is there once the cluster is made.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, ".kubexm", c.Name, "kubeconfig") }

// VIP is an address of the hosts' network that none of them has.
func (c *Cluster) VIP() string {
	first := c.Hosts[0].Address
	return first[:strings.LastIndex(first, ".")] + ".250"
}

// Write writes the config file with this specification: in it $1, $2, … are the hosts' names, of which those are declared that
// it speaks of, and $VIP is VIP.
func (c *Cluster) Write(spec string) error {
	var file strings.Builder
	fmt.Fprintf(&file, "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec:\n", c.Name)
	if c.Jump != nil {
		fmt.Fprintf(&file, "  proxyJump: {host: %q, user: %s%s}\n", c.Jump.Address, c.Jump.User, c.key(c.Jump))
	}
	file.WriteString("  hosts:\n")
	replace := []string{"$VIP", c.VIP()}
	for i, h := range c.Hosts {
		name := fmt.Sprintf("$%d", i+1)
		if strings.Contains(spec, name) {
			internal := ""
			switch {
			case c.IPv6First:
				internal = fmt.Sprintf(", internalAddresses: [%q, %s]", h.Address6, h.Address)
			case c.Internal != nil:
				internal = fmt.Sprintf(", internalAddresses: [%s]", c.Internal(h))
			}
			fmt.Fprintf(&file, "  - {name: %s, address: %q%s, user: %s%s}\n", h.Name, h.Address, internal, h.User, c.key(h))
			replace = append(replace, name, h.Name)
		}
	}
	file.WriteString(strings.NewReplacer(replace...).Replace(spec))
	return os.WriteFile(c.Config(), []byte(file.String()), 0o600)
}

// key is what the config file says of a host's key.
func (c *Cluster) key(h *hosts.Host) string {
	if c.Agent {
		return ""
	}
	return fmt.Sprintf(", privateKeyPath: %q", h.KeyPath)
}

// Run runs the program, and returns what it prints. The error has that too.
func (c *Cluster) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Program, args...)
	cmd.Dir = c.Dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubexm %s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, out.String())
	}
	return out.String(), nil
}

// CreateArgs are what makes the cluster what the config file says.
func (c *Cluster) CreateArgs() []string {
	return []string{"create", "cluster", "-f", c.Config(), "--bundle", c.Bundle, "--known-hosts", c.KnownHosts, "--yes"}
}
