// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// upgradeOptions are the flags of "upgrade cluster".
type upgradeOptions struct {
	source
	to               string
	plan             bool
	controlPlaneOnly bool
	workersOnly      bool
	strategy         string
	concurrency      int
	canary           string
	anyTime          bool
	// acceptRemovedAPIs is whether to begin though APIs are in use that the version does not serve.
	acceptRemovedAPIs bool
	yes               bool
	wait              time.Duration
	// onFailure is what becomes of a host's changes when a step fails, "" for what the config file says.
	onFailure onFailure
}

func (a *app) upgradeCluster() *cobra.Command {
	o := &upgradeOptions{}
	cmd := &cobra.Command{
		Use:   "cluster -f config.yaml [--to VERSION]",
		Short: "Bring a cluster to another version of Kubernetes, host by host",
		Long: `Brings the control plane, one host after the other, and then the workers, a pool after the other, to the version that the
config file declares. With --to, the config file is made to declare it first: that line is changed and no other.

Each Node is drained, changed and made schedulable again before the next begins. A host that fails stops the upgrade until it
is repaired. Interrupted, the same command resumes.

No minor version may be skipped, and there is no way back.`,
		Example: "  kubexm upgrade cluster -f config.yaml --to v1.36.3 --plan\n  kubexm upgrade cluster -f config.yaml --to v1.36.3",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.upgrade(cmd.Context(), o) },
	}
	o.addFlags(cmd)
	o.addSerialFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "the version (default that of the config file)")
	flags.BoolVar(&o.plan, "plan", false, "show which hosts would be changed, in which order and how, and change nothing")
	flags.BoolVar(&o.controlPlaneOnly, "control-plane-only", false, "leave workers as they are")
	flags.BoolVar(&o.workersOnly, "workers-only", false, "upgrade workers alone; the control plane must have the version")
	flags.StringVar(&o.strategy, "strategy", string(controlplanev1.InPlaceStrategy),
		"InPlace: hosts are upgraded in place; RollingUpdate: each is reset, and joins again")
	flags.IntVar(&o.concurrency, "node-concurrency", 1, "how many workers may be unavailable at once")
	flags.StringVar(&o.canary, "canary", "", "the worker that goes first in its pool, alone (InPlace)")
	flags.BoolVar(&o.anyTime, "any-time", false, "begin outside of the maintenance windows of the config file, too")
	flags.BoolVar(&o.acceptRemovedAPIs, "accept-removed-apis", false, "begin though APIs are in use that the version does not serve")
	o.onFailure.addFlag(flags)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	flags.DurationVar(&o.wait, "wait-timeout", 2*time.Hour, "how long it may take; failures are tried again until then")
	return cmd
}

// replace is whether Machines are replaced.
func (o *upgradeOptions) replace() bool {
	return o.strategy == string(controlplanev1.RollingUpdateStrategy)
}

// check refuses flags that make no sense.
func (o *upgradeOptions) check() error {
	if err := o.onFailure.check(); err != nil {
		return err
	}
	switch {
	case o.strategy != string(controlplanev1.InPlaceStrategy) && !o.replace():
		return usage("--strategy: %q is none of %s, %s", o.strategy, controlplanev1.InPlaceStrategy, controlplanev1.RollingUpdateStrategy)
	case o.controlPlaneOnly && o.workersOnly:
		return usage("--control-plane-only, --workers-only: give one of them, or neither")
	case o.concurrency < 1:
		return usage("--node-concurrency: %d: want 1 or more", o.concurrency)
	case o.canary != "" && (o.replace() || o.controlPlaneOnly):
		return usage("--canary: it is for workers upgraded in place")
	}
	if errs := spec.ValidateVersion(cmp.Or(o.to, "v1.0.0"), field.NewPath("to")); len(errs) > 0 {
		return usage("--to: %s", errs[0].ErrorBody())
	}
	return nil
}

// upgrade is a cluster on its way to the version that it is declared to have.
type upgrade struct {
	*declared
	*upgradeOptions
	known *clusterdir.Inventory
	// previous has the artifacts of the version that the cluster had.
	previous *artifact.Bundle
	// content is what the config file is to be, nil if it declares the version.
	content []byte
}

func (a *app) upgrade(ctx context.Context, o *upgradeOptions) error {
	began := time.Now()
	u, err := a.upgradeOf(ctx, o)
	if err != nil {
		return err
	}
	unlock, err := u.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if u.known.KubernetesVersion == u.KubernetesVersion {
		if !o.plan {
			if err := u.declareVersion(); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(a.Out, "%s has %s already.\n", u.Name, u.KubernetesVersion)
		return err
	}
	if err := a.showUpgrade(ctx, u); err != nil || o.plan {
		return err
	}
	if err := u.inWindow(time.Now()); err != nil {
		return err
	}
	if !o.yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s will be upgraded from %s to %s. There is no way back.", u.Name, u.known.KubernetesVersion, u.KubernetesVersion)); err != nil {
			return err
		}
	}
	// What was seen of the hosts may be old by now: somebody was asked.
	copied := a.guard(u.dir, u.tools(), o.stateIsCurrent)
	if err := copied.Begin(ctx, nil); err != nil {
		return err
	}
	return a.showing(u.about, func(reader event.Reader) (string, error) {
		err := a.runUpgrade(ctx, u, reader)
		if o.replace() { // hosts were reset, also where others failed or somebody interrupted it
			again, cancel := ctx, context.CancelFunc(func() {})
			if ctx.Err() != nil {
				again, cancel = context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
			}
			defer cancel()
			err = errors.Join(err, copied.Again(again))
		}
		if err != nil {
			return "", err
		}
		if o.controlPlaneOnly && len(u.workers()) > 0 {
			return fmt.Sprintf("The control plane of %s has %s, after %s.   Its workers: kubexm upgrade cluster -f %s --workers-only",
				u.Name, u.KubernetesVersion, seconds(time.Since(began)), o.file), nil
		}
		return fmt.Sprintf("%s has %s, after %s.   export KUBECONFIG=%s", u.Name, u.KubernetesVersion, seconds(time.Since(began)), u.dir.Kubeconfig()), nil
	})
}

// upgradeOf reads what is declared and what is known of the cluster, and refuses what cannot be. Nothing is touched.
func (a *app) upgradeOf(ctx context.Context, o *upgradeOptions) (*upgrade, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := a.load(&o.source)
	if err != nil {
		return nil, err
	}
	o.onFailure.declare(&c.Spec)
	u := &upgrade{upgradeOptions: o}
	if o.to != "" && o.to != c.KubernetesVersion {
		if u.content, err = withVersion(o.file, o.to); err != nil {
			return nil, err
		}
		c.KubernetesVersion = o.to
	}
	dir, err := clusterdir.Of(a.stateRoot, c.Name)
	if err != nil {
		return nil, usageError{err}
	}
	if u.known, err = dir.Inventory(); err != nil {
		return nil, err
	}
	switch known := u.known; {
	case known.IsRecovered():
		return nil, usage("cluster %s was recovered, and no management plane has it yet: kubexm create cluster -f %s, with spec.kubernetes.version: %s",
			c.Name, o.file, known.KubernetesVersion)
	case known == nil || !managed(dir) || known.ReadyTime.IsZero():
		return nil, usage("there is no cluster %s in %s that has ever been ready: bring it up first: kubexm create cluster -f %s", c.Name, a.stateRoot, o.file)
	case known.Upgrading != "" && known.Upgrading != c.KubernetesVersion:
		return nil, usage("spec.kubernetes.version: %s is being upgraded to %s, and some of its hosts may have that already: finish it first, with --to %s",
			c.Name, known.Upgrading, known.Upgrading)
	case known.KubernetesVersion != c.KubernetesVersion:
		if errs := spec.ValidateUpgrade(known.KubernetesVersion, c.KubernetesVersion, field.NewPath("spec", "kubernetes", "version")); len(errs) > 0 {
			return nil, usageError{errs.ToAggregate()}
		}
	}
	if err := sameHosts(u.known, c); err != nil {
		return nil, err
	}
	if u.declared, err = a.declareCluster(ctx, &o.source, c); err != nil {
		return nil, err
	}
	if err := u.sameCluster(); err != nil {
		return nil, err
	}
	if o.canary != "" && !slices.Contains(u.workers(), o.canary) {
		return nil, usage("--canary: %s is none of the workers %s", o.canary, strings.Join(u.workers(), ", "))
	}
	u.previous, err = a.previousBundle(ctx, &o.source, c, u.known)
	return u, err
}

// withVersion is what a config file is to be.
func withVersion(path, version string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, err = config.SetKubernetesVersion(content, version)
	if err != nil {
		return nil, usage("%s: set spec.kubernetes.version: %s: %w", path, version, err)
	}
	return content, nil
}

// begin notes down what is about to be done, before anything is: who is interrupted goes on with what is declared.
func (u *upgrade) begin() error {
	if err := u.declareVersion(); err != nil {
		return err
	}
	u.known.Upgrading = u.KubernetesVersion
	return u.dir.WriteInventory(u.known)
}

// begun reports whether the upgrade was begun before.
func (u *upgrade) begun() bool { return u.known.Upgrading == u.KubernetesVersion }

// inWindow refuses to begin outside of the maintenance windows. What has begun is finished.
func (u *upgrade) inWindow(now time.Time) error {
	if u.anyTime || u.begun() {
		return nil
	}
	windows := spec.Disruption{MaintenanceWindows: u.Spec.Disruption.MaintenanceWindows}
	if wait := windows.Awaits("", "", now); wait != nil {
		return usage("spec.disruption.maintenanceWindows: the upgrade %s: call it again then, or give --any-time", wait)
	}
	return nil
}

// declareVersion makes the config file declare the version.
func (u *upgrade) declareVersion() error {
	if u.content == nil {
		return nil
	}
	if err := replaceFile(u.file, u.content); err != nil {
		return fmt.Errorf("set spec.kubernetes.version: %s in %s: %w", u.KubernetesVersion, u.file, err)
	}
	return nil
}

// sameHosts refuses to change a cluster's hosts in passing.
func sameHosts(known *clusterdir.Inventory, c *config.Cluster) error {
	was, is := map[string]spec.Role{}, map[string]spec.Role{}
	for _, h := range known.Hosts {
		was[h.Name] = h.Role
	}
	var other []string
	for i := range c.Hosts {
		h := c.Hosts[i].Spec()
		if is[h.Name] = h.Role; was[h.Name] != h.Role {
			other = append(other, h.Name)
		}
	}
	for name := range was {
		if _, declared := is[name]; !declared {
			other = append(other, name)
		}
	}
	if len(other) == 0 {
		return nil
	}
	slices.Sort(other)
	return usage("spec.hosts, spec.roleGroups: %s: an upgrade changes no hosts: bring them in or out first, with spec.kubernetes.version: %s: kubexm create cluster",
		strings.Join(other, ", "), known.KubernetesVersion)
}

// sameVersion refuses to change the version of a cluster that runs in passing.
func (d *declared) sameVersion(file string) error {
	known, err := d.dir.Inventory()
	if err != nil || known == nil {
		return err
	}
	path := field.NewPath("spec", "kubernetes", "version")
	if known.ReadyTime.IsZero() && !known.IsRecovered() {
		// What plans have made, plans upgrade.
		if was := known.Running; was != nil && len(known.Applied()) > 0 && was.KubernetesVersion != d.KubernetesVersion {
			if errs := spec.ValidateUpgrade(was.KubernetesVersion, d.KubernetesVersion, path); len(errs) > 0 {
				return usageError{errs.ToAggregate()}
			}
		}
		return nil
	}
	if to := known.Upgrading; to != "" {
		return usage("%s: %s is being upgraded to %s: kubexm upgrade cluster -f %s --to %s", path, d.Name, to, file, to)
	}
	if known.KubernetesVersion == d.KubernetesVersion {
		return nil
	}
	if errs := spec.ValidateUpgrade(known.KubernetesVersion, d.KubernetesVersion, path); len(errs) > 0 {
		return usageError{errs.ToAggregate()}
	}
	return usage("%s: %s has %s, and %s is declared: kubexm upgrade cluster -f %s", path, d.Name, known.KubernetesVersion, d.KubernetesVersion, file)
}

// workers are the names of all workers, in the order of the file.
func (d *declared) workers() []string {
	var names []string
	for _, t := range d.targets {
		if t.Host.Role == spec.RoleWorker {
			names = append(names, t.Host.Name)
		}
	}
	return names
}

// previousBundle opens the bundle of the version that the cluster has: its hosts are kept as they are until their turn comes.
func (a *app) previousBundle(ctx context.Context, s *source, c *config.Cluster, known *clusterdir.Inventory) (*artifact.Bundle, error) {
	version := known.KubernetesVersion
	var tried []string
	var why []error
	for _, path := range []string{s.bundle, c.Spec.Artifacts.Bundle.Path, known.Bundle, a.defaultBundle(version)} {
		if path == "" || slices.Contains(tried, path) {
			continue
		}
		b, err := a.openBundle(ctx, path, version)
		if err == nil {
			return b, nil
		}
		tried, why = append(tried, path), append(why, err)
	}
	return nil, fmt.Errorf("%s has %s, and the bundle of that is needed until all hosts are upgraded: make it with: "+
		"kubexm bundle create --kubernetes-version %s\n%w", c.Name, version, version, errors.Join(why...))
}

// tools look at hosts and plan them for the version that they are to have.
func (u *upgrade) tools() planner.Tools {
	return planner.Tools{Hosts: u.hosts, Owners: u.owners(), Bundle: u.bundle}
}
