// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/certs"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// renewOptions are the flags of "certs renew".
type renewOptions struct {
	source
	dryRun, yes bool
}

func (a *app) certsRenew() *cobra.Command {
	o := &renewOptions{}
	cmd := &cobra.Command{
		Use:   "renew [all | NAME...] -f config.yaml",
		Short: "Renew certificates now, however long they last",
		Long: `Makes certificates anew on one host after the other: etcd's, then the control plane's, then the workers'. Those who use
them read them anew; of what must be restarted for that, one component at a time is, and the next waits until it is well.
The cluster's authorities are not renewed.

Certificates that expire soon are renewed without being asked, unless the config file says that somebody does it by hand
(spec.certificates). --dry-run shows the names that there are.`,
		Example: "  kubexm certs renew all -f config.yaml --dry-run\n  kubexm certs renew apiserver etcd-member -f config.yaml",
		RunE:    func(cmd *cobra.Command, names []string) error { return a.renewCertificates(cmd.Context(), o, names) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file that declares the cluster")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
	o.addKeyFlags(cmd)
	o.addSerialFlag(cmd)
	flags.BoolVar(&o.dryRun, "dry-run", false,
		"show which certificates would be renewed and what would be restarted, and change nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

// renewal is a cluster some of whose certificates are renewed.
type renewal struct {
	*config.Cluster
	dir   clusterdir.Dir
	hosts *access.Hosts
	// all are the cluster's targets, and targets those of which certificates are renewed.
	all, targets []spec.Target
	// wanted are the certificates, in the order in which they are renewed.
	wanted []pipeline.Renewal
}

func (a *app) renewCertificates(ctx context.Context, o *renewOptions, names []string) error {
	r, err := a.renewal(o, names)
	if err != nil {
		return err
	}
	unlock, err := r.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.showRenewals(ctx, r); err != nil || o.dryRun {
		return err
	}
	if !o.yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s: %s will be renewed.", r.Name, count(len(r.wanted), "certificate"))); err != nil {
			return err
		}
	}
	facts, err := r.tools().Observe(ctx, r.targets)
	if err != nil {
		return err
	}
	p, err := pipeline.RenewCertificates(r.Name, r.targets, planner.Systems(facts), names, time.Now())
	if err != nil {
		return err
	}
	trust := &planner.Trust{Cluster: r.Name, Server: planner.Server(r.Cluster)}
	if trust.Authorities, err = r.dir.Authorities(false); err != nil {
		return err
	}
	err = a.showing(r.about, func(reader event.Reader) (string, error) {
		tools := planner.Tools{Hosts: r.hosts, Owners: owners(r.dir, rolesOf(r.all), nil), Trust: trust, Reader: reader}
		if err := a.guard(r.dir, tools, o.stateIsCurrent).Begin(ctx, nil); err != nil {
			return "", err
		}
		report, err := tools.Engine().Run(ctx, p)
		if err != nil {
			return "", err
		}
		kubeconfig, err := trust.Kubeconfig(kubeconfigValidity)
		if err != nil {
			return "", err
		}
		if err := r.dir.Write(kubeconfig.Reveal(), "kubeconfig"); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s of %s on %s renewed in %s.   export KUBECONFIG=%s", count(len(r.wanted), "certificate"), r.Name,
			count(len(p.Hosts), "host"), seconds(report.Duration), r.dir.Kubeconfig()), nil
	})
	if err != nil {
		return err
	}
	return a.showRenewals(ctx, r)
}

// renewal reads the config file, and finds the certificates with these names. Nothing is touched.
func (a *app) renewal(o *renewOptions, names []string) (*renewal, error) {
	c, err := a.load(&o.source)
	if err != nil {
		return nil, err
	}
	r := &renewal{Cluster: c}
	if r.dir, err = clusterdir.Of(a.stateRoot, c.Name); err != nil {
		return nil, usageError{err}
	}
	if known, err := r.dir.Known(); err != nil {
		return nil, err
	} else if !known {
		return nil, usage("nothing is known of cluster %s in %s: its certificates are renewed where it was made", c.Name, a.stateRoot)
	}
	if r.all, err = planner.Targets(c); err != nil {
		return nil, usageError{err}
	}
	r.targets = slices.Clone(r.all)
	if r.wanted, err = pipeline.Renewals(r.targets, names); err != nil {
		return nil, usageError{err}
	}
	r.hosts, err = access.New(c.Hosts, a.trusting(&o.source, r.dir))
	return r, err
}

// tools observe hosts, and change none.
func (r *renewal) tools() planner.Tools {
	return planner.Tools{Hosts: r.hosts, Owners: owners(r.dir, rolesOf(r.targets), nil)}
}

// about says what a host is.
func (r *renewal) about(name string) string {
	for _, t := range r.targets {
		if t.Host.Name == name {
			return roleName(t.Host.Role)
		}
	}
	return ""
}

// renewed is a certificate that is renewed, as it is now.
type renewed struct {
	certs.Certificate
	Name     string
	Restarts string
}

// showRenewals observes the hosts, and lists those of the certificates that are there with when they end, and what is restarted.
func (a *app) showRenewals(ctx context.Context, r *renewal) error {
	var names []string
	for _, w := range r.wanted {
		if !slices.Contains(names, w.Host) {
			names = append(names, w.Host)
		}
	}
	found, err := certs.Of(ctx, r.tools().Engine(), r.Name, names, time.Now(), warnDays*24*time.Hour)
	if err != nil {
		return err
	}
	var rows []renewed
	r.wanted = slices.DeleteFunc(r.wanted, func(w pipeline.Renewal) bool {
		at := slices.IndexFunc(found, func(c certs.Certificate) bool { return c.Host == w.Host && c.Path == w.Path })
		if at >= 0 {
			rows = append(rows, renewed{found[at], w.Name, cmp.Or(w.Restarts, "-")})
		}
		return at < 0
	})
	if len(rows) == 0 {
		return fmt.Errorf("%s has none of these certificates on its hosts (%s): bring it up first", r.Name, strings.Join(names, ", "))
	}
	// A host that is not what it must be yet is not made so in passing.
	r.targets = slices.DeleteFunc(r.targets, func(t spec.Target) bool {
		return !slices.ContainsFunc(rows, func(c renewed) bool { return c.Host == t.Host.Name })
	})
	return list(a.Out, newFormat(), rows, table[renewed]{
		{name: "HOST", value: func(c renewed) string { return c.Host }},
		{name: "NAME", value: func(c renewed) string { return c.Name }},
		{name: "CERTIFICATE", value: func(c renewed) string { return c.Path }},
		{name: "EXPIRES", value: func(c renewed) string { return date(c.NotAfter) }},
		{name: "DAYS LEFT", value: func(c renewed) string { return daysLeft(c.Certificate) }},
		{name: "RESTARTS", value: func(c renewed) string { return c.Restarts }},
	})
}
