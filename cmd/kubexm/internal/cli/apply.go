// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// kubeconfigValidity is how long the kubeconfig that is left for the user is good.
const kubeconfigValidity = 365 * 24 * time.Hour

func (a *app) apply() *cobra.Command {
	s := &source{}
	var failure onFailure
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "Apply a saved plan",
		Long: `Runs a plan that "kubexm plan -o" wrote, on the hosts that it names. What is so already is left alone.

How hosts are reached is remembered from "kubexm plan"; hosts that need a password need their config file too (-f).`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := failure.check(); err != nil {
				return err
			}
			return a.applyPlan(cmd.Context(), s, args[0], failure)
		},
	}
	s.addFlags(cmd)
	s.addAdoptFlag(cmd)
	s.addSerialFlag(cmd)
	failure.addFlag(cmd.Flags())
	return cmd
}

func (a *app) applyPlan(ctx context.Context, s *source, path string, failure onFailure) error {
	p, err := readPlan(path)
	if err != nil {
		return err
	}
	digest, err := p.Digest()
	if err != nil {
		return err
	}
	dir, err := clusterdir.Of(a.stateRoot, p.Cluster)
	if err != nil {
		return usageError{err}
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	known, hosts, err := a.reach(s, dir)
	if err != nil {
		return err
	}
	if err := s.checkAdopt(p.Hosts); err != nil {
		return err
	}
	for _, name := range p.Hosts {
		if known.Host(name) == nil { // nobody would know that it was changed
			return usage("%s: host %s is not in the inventory of cluster %s, which was planned anew since: make this plan again: kubexm plan -f config.yaml -o %s",
				path, name, p.Cluster, path)
		}
	}
	bundlePath := known.Bundle
	if s.bundle != "" {
		bundlePath = s.bundle
	}
	bundle, err := a.openBundle(ctx, bundlePath, known.KubernetesVersion)
	if err != nil {
		return err
	}
	trust := &planner.Trust{Cluster: p.Cluster, Server: known.Server}
	if trust.Authorities, err = dir.Authorities(false); err != nil {
		return err
	}
	if trust.Secrets, err = planner.EtcdSecrets(known.EtcdSecret, known.EtcdFiles); err != nil {
		return err
	}
	return a.showing(known.about, func(reader event.Reader) (string, error) {
		tools := planner.Tools{
			Hosts: hosts, Owners: known.owners(dir, s.adopt), Bundle: bundle,
			Trust: trust, Reader: reader, OnFailure: cmp.Or(spec.FailurePolicy(failure), known.OnFailure),
		}
		copied := a.guard(dir, tools, s.stateIsCurrent)
		if err := copied.Begin(ctx, nil); err != nil {
			return "", err
		}
		known.SetApplied(p.Hosts, true)
		known.SetRunning(digest, false)
		if err := dir.WriteInventory(known.Inventory); err != nil {
			return "", err
		}
		report, err := tools.Engine().Run(ctx, p)
		if err != nil {
			return "", err
		}
		if err := copied.End(ctx); err != nil {
			return "", err
		}
		known.SetRunning(digest, true)
		if err := dir.WriteInventory(known.Inventory); err != nil {
			return "", err
		}
		kubeconfig, err := trust.Kubeconfig(kubeconfigValidity)
		if err != nil {
			return "", err
		}
		if err := dir.Write(kubeconfig.Reveal(), "kubeconfig"); err != nil {
			return "", err
		}
		if n := report.Total().Changed; n > 0 {
			return fmt.Sprintf("%s is ready in %s: %s, %s.   export KUBECONFIG=%s", p.Cluster, seconds(report.Duration),
				count(n, "change"), count(len(p.Hosts), "host"), dir.Kubeconfig()), nil
		}
		return fmt.Sprintf("%s is up to date: %s checked in %s, 0 changes.", p.Cluster, count(len(p.Hosts), "host"), seconds(report.Duration)), nil
	})
}

func readPlan(path string) (*plan.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError{err}
	}
	defer f.Close()
	p, err := plan.Read(f)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return p, nil
}

// inventory is a cluster's inventory with what commands ask of it.
type inventory struct{ *clusterdir.Inventory }

func (i inventory) about(name string) string {
	for _, h := range i.Hosts {
		if h.Name == name {
			return roleName(h.Role)
		}
	}
	return ""
}

// wasAdopted says of those of the hosts that were adopted, all if none is named, what a reset means; "" if none was.
func (i inventory) wasAdopted(names ...string) string {
	var adopted []string
	for _, h := range i.Hosts {
		if h.Adopted && (len(names) == 0 || slices.Contains(names, h.Name)) {
			adopted = append(adopted, h.Name)
		}
	}
	if len(adopted) == 0 {
		return ""
	}
	return fmt.Sprintf(" Adopted: %s: what Kubernetes has put there is removed, whoever did so, and nothing of it comes back; packages stay.",
		strings.Join(adopted, ", "))
}

// reach is how the hosts of a cluster are reached, see reachKnown.
func (a *app) reach(s *source, dir clusterdir.Dir) (inventory, *access.Hosts, error) {
	known, err := dir.Inventory()
	if err != nil {
		return inventory{}, nil, err
	}
	if known == nil {
		return inventory{}, nil, usage("nothing is known of cluster %s in %s", dir.Cluster, a.stateRoot)
	}
	hosts, err := a.reachKnown(s, dir, known)
	return inventory{known}, hosts, err
}

// reachKnown is how the hosts that are known are reached: as a config file says if one is given, and as it is remembered where that does
// not declare them.
func (a *app) reachKnown(s *source, dir clusterdir.Dir, known *clusterdir.Inventory) (*access.Hosts, error) {
	hosts, err := a.remembered(s, known)
	if err != nil {
		return nil, err
	}
	for _, h := range known.Hosts {
		if slices.ContainsFunc(hosts, func(declared config.Host) bool { return declared.Name == h.Name }) {
			continue
		}
		// One that needs a password cannot be reached, which is said of it when it is dialled.
		if host, err := rememberedHost(h); err == nil {
			hosts = append(hosts, host)
		}
	}
	return access.New(hosts, a.trusting(s, dir))
}

func (a *app) remembered(s *source, known *clusterdir.Inventory) ([]config.Host, error) {
	if s.file != "" {
		c, err := a.load(s)
		if err != nil {
			return nil, err
		}
		if c.Name != known.Cluster {
			return nil, usage("%s declares cluster %s, not %s", s.file, c.Name, known.Cluster)
		}
		return c.Hosts, nil
	}
	hosts := make([]config.Host, 0, len(known.Hosts))
	for _, h := range known.Hosts {
		host, err := rememberedHost(h)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

func rememberedHost(h clusterdir.Host) (config.Host, error) {
	host := config.Host{
		Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, PrivateKeyPath: h.PrivateKeyPath, HostKey: h.HostKey,
	}
	if h.NeedsPassword {
		return host, usage("host %s needs a password, which is not remembered: give the config file (-f)", h.Name)
	}
	if j := h.ProxyJump; j != nil {
		if j.NeedsPassword {
			return host, usage("host %s is behind the jump host %s, which needs a password that is not remembered: give the config file (-f)",
				h.Name, j.Host)
		}
		host.ProxyJump = config.ProxyJump{
			Host: j.Host, Port: j.Port, User: j.User, PrivateKeyPath: j.PrivateKeyPath, HostKey: j.HostKey,
		}
	}
	return host, nil
}
