// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/recovered"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/serial"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func (a *app) recoverState() *cobra.Command {
	s := &source{}
	dryRun := false
	cmd := &cobra.Command{
		Use:   "recover -f config.yaml",
		Short: "Read a cluster's lost state back from its hosts",
		Long: `For a cluster that this command has made, whose state (.kubexm/<cluster>) is lost, and whose config file is at hand. Reads the hosts'
records of whose they are, the key pairs of control plane hosts, the API's Nodes and etcd's members, and compares all hosts with what is
declared. Then it shows what it has found and writes the state, all of it or none. No host is changed.

It refuses where a state is there already, where a host is another cluster's, differs from what is declared or does not answer, and where the
cluster has a Node or a member of etcd that is not declared: that would be forgotten.

The objects of the management plane are not recovered. "kubexm create cluster" declares them anew, and finds the hosts as they are.`,
		Example: "  kubexm recover -f config.yaml --dry-run\n  kubexm recover -f config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.recoverCluster(cmd.Context(), s, dryRun)
		},
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is found and what would be written, and write nothing")
	return cmd
}

// unrecovered is why a state is not written.
type unrecovered struct {
	// done is what was not done to the cluster.
	cluster, done string
	problems      []preflight.Problem
}

func (u *unrecovered) Error() string {
	lines := []string{fmt.Sprintf("%s is not %s, and nothing was written:", u.cluster, u.done)}
	for _, p := range alike(u.problems) {
		lines = append(lines, fmt.Sprintf("  %s: %s: %s\n    Remedy: %s", p.Host, p.Check, p.Cause, p.Remedy))
	}
	return strings.Join(lines, "\n")
}

// refuse is an error if there are problems.
func (r *recovering) refuse(problems []preflight.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &unrecovered{cluster: r.Name, done: r.done(), problems: problems}
}

// recovering is a cluster whose state is read back.
type recovering struct {
	*declared
	state *clusterdir.Recovery
	seen  recovered.Seen
	trust *planner.Trust
	// serial is that of the newest state that the hosts were changed with, nil if they do not say.
	serial *clusterdir.Serial
	// read are the control plane hosts that have the key pairs, and unread is why others were passed over.
	read   []string
	unread []error
	// adopts says that somebody else has made the cluster: it is adopted, not recovered.
	adopts bool
	// etcdApart says that hosts have the pair of etcd's authority elsewhere than kubexm and kubeadm have it, or have none.
	etcdApart bool
	// managed is whether the hosts are as a management plane makes them.
	managed bool
	// plan is what would be changed on hosts, and checks what differs.
	plan   *plan.Plan
	checks []plan.Check
}

// done is what is done to the cluster, in a word.
func (r *recovering) done() string {
	if r.adopts {
		return "adopted"
	}
	return "recovered"
}

func (a *app) recoverCluster(ctx context.Context, s *source, dryRun bool) error {
	d, err := a.declare(ctx, s)
	if err != nil {
		return err
	}
	if err := d.dir.CheckUnknown(); err != nil {
		return usageError{err}
	}
	r := &recovering{declared: d}
	if r.state, err = d.dir.BeginRecovery(); err != nil {
		return err
	}
	defer r.state.End()
	// Keys that are accepted are kept with what is gathered; it has those that were accepted before.
	if d.hosts, err = access.New(d.Hosts, a.trusting(s, r.state.Dir)); err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{r.owners, r.authorities, r.cluster, r.compare} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	a.warnUnread(r.unread)
	if err := a.showRecovered(r); err != nil || dryRun {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	a.note(fmt.Sprintf("%s is recovered in %s.   export KUBECONFIG=%s", d.Name, d.dir.Path(), d.dir.Kubeconfig()))
	return nil
}

// names are the declared hosts'.
func (r *recovering) names() []string {
	names := make([]string, 0, len(r.targets))
	for _, t := range r.targets {
		names = append(names, t.Host.Name)
	}
	return names
}

// tools claim the hosts for an authority. Without one, hosts are asked whose they are.
func (r *recovering) tools(authority string) planner.Tools {
	return planner.Tools{Hosts: r.hosts, Bundle: r.bundle, Owners: planner.Owners{
		Cluster: r.Name, Authority: func() (string, error) { return authority, nil }, Roles: rolesOf(r.targets),
	}}
}

// owners asks all hosts whose they are.
func (r *recovering) owners(ctx context.Context) error {
	if err := r.look(ctx); err != nil {
		return err
	}
	authority, problems := recovered.Owners(r.Name, planner.Namespace, r.seen.Hosts)
	r.seen.Authority = authority
	return r.refuse(problems)
}

// look asks all hosts for the records of their owners, and judges nothing.
func (r *recovering) look(ctx context.Context) error {
	facts, err := r.tools("").Engine().Look(ctx, r.names(), func(string) host.Query { return host.Query{} })
	var failed *engine.Error
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		return err
	}
	var unanswered []engine.Failure
	if failed != nil {
		for _, f := range failed.Failures {
			if host.KindOf(f.Err) != host.KindForeign { // all that have an owner refuse who has no authority
				unanswered = append(unanswered, f)
			}
		}
	}
	if len(unanswered) > 0 {
		return fmt.Errorf("%s is not %s, and nothing was written: %w", r.Name, r.done(), &unfit{unreached: &engine.Error{
			Intent: failed.Intent, Cluster: r.Name, Failures: unanswered, Cause: failed.Cause,
		}})
	}
	r.seen = recovered.Seen{
		Cluster: r.Name, Version: r.KubernetesVersion, Encryption: r.Spec.Kubernetes.EncryptionAtRest, Gone: r.Spec.Etcd.GoneMembers,
	}
	for _, t := range r.targets {
		r.seen.Hosts = append(r.seen.Hosts, recovered.Host{Host: t.Host, Facts: facts[t.Host.Name]})
	}
	return nil
}

// authorities reads the key pairs from control plane hosts.
func (r *recovering) authorities(ctx context.Context) error {
	from := &recoverySource{dial: r.hosts.Dial, names: pki.AllNames(), externalEtcd: r.Spec.Etcd.IsExternal()}
	if from.externalEtcd || r.etcdApart {
		from.names = slices.DeleteFunc(from.names, func(name string) bool { return name == pki.EtcdName })
	}
	for _, t := range r.targets {
		if t.Host.Role == spec.RoleControlPlane {
			from.from = append(from.from, t.Host.Name)
		}
	}
	var err error
	r.seen.Found, r.read, err = from.read(ctx)
	r.unread = from.unread
	if err != nil && r.adopts && ctx.Err() == nil {
		return r.refuse([]preflight.Problem{{
			Host: r.Name, Check: "key pairs", Severity: preflight.Error, Cause: err.Error(),
			Remedy: "a cluster is adopted with the keys of its authorities: put them below /etc/kubernetes/pki on a control plane host",
		}})
	} else if err != nil {
		return fmt.Errorf("%s is not %s, and nothing was written: %w", r.Name, r.done(), err)
	}
	if from.externalEtcd || r.etcdApart {
		// Of an external one it signs nothing here; what reads the state wants it whole. One that is elsewhere takes its place.
		made, err := pki.NewAuthorities(pki.CARequest{})
		if err != nil {
			return err
		}
		r.seen.Found.Etcd = made.Etcd
	}
	r.trust = &planner.Trust{Cluster: r.Name, Server: planner.Server(r.declared.Cluster), Authorities: r.seen.Found}
	if r.trust.Secrets, err = planner.EtcdSecrets(r.EtcdSecret(), r.EtcdFiles); err != nil {
		return usageError{err}
	}
	return nil
}

// cluster asks the API for its Nodes, and etcd for its members, and the hosts for what plans are made from.
func (r *recovering) cluster(ctx context.Context) error {
	facts, err := r.tools(r.seen.Authority).Engine().Look(ctx, r.names(), func(name string) host.Query {
		var q host.Query
		for _, t := range r.targets {
			if t.Host.Name == name {
				q = preflight.Query(t)
				if t.HasEtcdMember() {
					q.Merge(quorum.Query(t.Host.Name, t.Host.NodeAddress()))
				}
			}
		}
		return q
	})
	if err != nil {
		return fmt.Errorf("%s is not %s, and nothing was written: %w", r.Name, r.done(), &unfit{unreached: err})
	}
	r.systems = planner.Systems(facts)
	r.serial = serial.Highest(serial.Hosts(rolesOf(r.targets)), facts, r.seen.Authority)
	if err := r.members(facts); err != nil {
		return err
	}
	if r.seen.Nodes, err = inspect.NodesOf(ctx, r.trust); err != nil {
		return fmt.Errorf("%s is not "+r.done()+", and nothing was written: its API at %s does not say which Nodes there are: %w\n"+
			"Remedy: bring the API back. Where etcd must be restored for that, read the key pairs back first: kubexm certs recover -f config.yaml, then "+
			"kubexm etcd restore", r.Name, r.trust.Server, err)
	}
	return r.refuse(recovered.Cluster(r.seen))
}

// members takes in what etcd says, as the first host tells it on which etcd answers.
func (r *recovering) members(facts map[string]*host.Facts) error {
	var failed []error
	asked := false
	for _, t := range r.targets {
		if !t.HasEtcdMember() {
			continue
		}
		asked = true
		r.seen.Addresses = append(r.seen.Addresses, t.Host.NodeAddress())
		view, err := quorum.In(facts[t.Host.Name])
		if err != nil {
			failed = append(failed, fmt.Errorf("host %s: %w", t.Host.Name, err))
			continue
		}
		if r.seen.Members == nil {
			r.seen.Members = view.Members
		}
	}
	if asked && r.seen.Members == nil {
		return fmt.Errorf("%s is not "+r.done()+", and nothing was written: etcd does not say who its members are: %w\n"+
			"Remedy: bring etcd back. Where it must be restored for that, read the key pairs back first: kubexm certs recover -f config.yaml, then "+
			"kubexm etcd restore", r.Name, errors.Join(failed...))
	}
	return nil
}

// compare compares the hosts with what is declared: as a management plane makes them, and as one without makes them. The hosts are taken
// for what they differ from less.
func (r *recovering) compare(ctx context.Context) error {
	for _, managed := range []bool{true, false} {
		targets := r.desired
		if !managed {
			targets = target.Unmanaged(r.desired)
		}
		tools := r.tools(r.seen.Authority)
		tools.Trust = r.trust
		report, err := tools.Compare(ctx, targets, r.systems)
		if err != nil && !engine.Undecided(err) {
			return fmt.Errorf("%s is not %s, and nothing was written: %w", r.Name, r.done(), err)
		}
		if managed || len(report.Checks) < len(r.checks) {
			r.managed, r.targets, r.checks = managed, targets, report.Checks
		}
		if len(r.checks) == 0 {
			break
		}
	}
	var err error
	if r.plan, err = planner.Plan(r.targets, r.systems, r.bundle); err != nil {
		return err
	}
	var differing []string
	for _, c := range r.checks {
		if len(c.Diff) > 0 {
			differing = append(differing, c.Node)
		}
	}
	return r.refuse(recovered.Encryption(r.Name, r.read, differing))
}

// inventory is what commands will know of the cluster.
func (r *recovering) inventory() *clusterdir.Inventory {
	i := r.declared.inventory()
	i.Recovered, i.Managed = time.Now().UTC(), r.managed
	if len(r.checks) == 0 {
		i.ReadyTime = i.Recovered
	}
	for n := range i.Hosts {
		i.Hosts[n].Adopted = r.adopts
	}
	return i
}

// write writes the state, all of it or none.
func (r *recovering) write() error {
	kubeconfig, err := r.trust.Kubeconfig(kubeconfigValidity)
	if err != nil {
		return err
	}
	for _, write := range []func() error{
		func() error { return r.state.WriteAuthorities(r.seen.Found) },
		func() error { return r.state.Write(kubeconfig.Reveal(), "kubeconfig") },
		func() error { return r.state.WriteSerial(r.serial) },
		func() error { return r.state.WriteInventory(r.inventory()) },
		r.state.Move,
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// recoveredHost is a line of what is shown.
type recoveredHost struct {
	recovered.Host
	address, key string
}

// showRecovered shows what was found, and what comes of it.
func (a *app) showRecovered(r *recovering) error {
	var hosts []recoveredHost
	for _, h := range r.seen.Hosts {
		hosts = append(hosts, recoveredHost{h, r.hosts.Address(h.Name), access.Fingerprint(r.hosts.HostKey(h.Name))})
	}
	if err := list(a.Out, newFormat(), hosts, table[recoveredHost]{
		{name: "HOST", value: func(h recoveredHost) string { return h.Name }},
		{name: "ROLE", value: func(h recoveredHost) string { return string(h.Role) }},
		{name: "ADDRESS", value: func(h recoveredHost) string { return h.address }},
		{name: "HOST KEY", value: func(h recoveredHost) string { return h.key }},
		{name: "OWNER", value: func(h recoveredHost) string { return h.Facts.Owner.Cluster }},
	}); err != nil {
		return err
	}
	encryption := "none"
	if !r.seen.Found.Encryption.IsZero() {
		encryption = string(r.Spec.Kubernetes.EncryptionAtRest.Provider)
	}
	fmt.Fprintf(a.Out, "\nAuthority:   %s\n", r.seen.Authority)
	fmt.Fprintf(a.Out, "Key pairs:   those of %s\n", strings.Join(r.read, ", "))
	fmt.Fprintf(a.Out, "Encryption:  %s\n", encryption)
	fmt.Fprintf(a.Out, "Kubernetes:  %s, %s\n", r.KubernetesVersion, count(len(r.seen.Nodes), "Node"))
	if len(r.seen.Addresses) > 0 {
		fmt.Fprintf(a.Out, "etcd:        %s\n", count(len(r.seen.Members), "member"))
	}
	if r.serial != nil {
		fmt.Fprintf(a.Out, "Serial:      %s\n", r.serial)
	}
	fmt.Fprintln(a.Out, "\nWhat is declared changes on the hosts:")
	if err := r.plan.Render(a.Out, r.checks); err != nil {
		return err
	}
	files := []string{r.dir.Path("inventory.json"), r.dir.Path("secrets"), r.dir.Kubeconfig()}
	if _, err := os.Stat(r.state.KnownHosts()); err == nil { // keys were accepted, now or before
		files = append(files, r.dir.KnownHosts())
	}
	fmt.Fprintf(a.Out, "\nThe state:   %s\n", strings.Join(files, ", "))
	fmt.Fprintln(a.Out, "Not in it:   the objects of the management plane, which kubexm create cluster declares anew; backups of etcd that were fetched; logs")
	return nil
}
