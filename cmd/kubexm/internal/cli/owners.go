// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func (s *source) addAdoptFlag(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&s.adopt, "adopt", nil,
		"take a host over from its owner, as `HOST=CLUSTER`, with all that runs there: the cluster or the authority that the refusal names, or \"unknown\"; may be repeated")
	cmd.Flags().Lookup("adopt").DefValue = "" // not "[]"
}

// checkAdopt refuses to adopt hosts that are not the cluster's to be.
func (s *source) checkAdopt(names []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.adopt)) {
		switch {
		case !slices.Contains(names, name):
			return usage("--adopt %s=%s: the cluster has no host %s", name, s.adopt[name], name)
		case s.adopt[name] == "":
			return usage("--adopt %s=: name the owner from whom the host is taken over, as the refusal has it", name)
		}
	}
	return nil
}

// owners say that the hosts are those of the cluster whose state is in dir.
func owners(dir clusterdir.Dir, roles map[string]spec.Role, adopt map[string]string) planner.Owners {
	return planner.Owners{Cluster: dir.Cluster, Authority: dir.Authority, Roles: roles, Adopt: adopt}
}

// owners say that the hosts are the declared cluster's.
func (d *declared) owners() planner.Owners { return owners(d.dir, rolesOf(d.targets), d.adopt) }

func rolesOf(targets []spec.Target) map[string]spec.Role {
	roles := make(map[string]spec.Role, len(targets))
	for _, t := range targets {
		roles[t.Host.Name] = t.Host.Role
	}
	return roles
}

// owners say that the hosts are those of the cluster that is known.
func (i inventory) owners(dir clusterdir.Dir, adopt map[string]string) planner.Owners {
	roles := make(map[string]spec.Role, len(i.Hosts))
	for _, h := range i.Hosts {
		roles[h.Name] = h.Role
	}
	return owners(dir, roles, adopt)
}

// names are the names of all hosts.
func (i inventory) names() []string {
	names := make([]string, 0, len(i.Hosts))
	for _, h := range i.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// sharedKeys warns of hosts that show one key.
func sharedKeys(hosts *access.Hosts) []preflight.Problem {
	var problems []preflight.Problem
	for _, names := range hosts.SharedKeys() {
		problems = append(problems, preflight.Problem{
			Host: strings.Join(names, ", "), Check: "identity", Severity: preflight.Warning,
			Cause:  "they have one SSH host key, which does not tell them apart when their addresses move",
			Remedy: "give each a key of its own: rm /etc/ssh/ssh_host_* && ssh-keygen -A && systemctl restart ssh",
		})
	}
	return problems
}
