// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/recovered"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/serial"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan/adoption"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func (a *app) adoptCluster() *cobra.Command {
	s := &source{}
	dryRun, yes := false, false
	cmd := &cobra.Command{
		Use:   "adopt -f config.yaml",
		Short: "Take over a running cluster that somebody else has made with kubeadm",
		Long: `For a cluster that kubeadm has made, with etcd in its static pods, as etcd.service on its control plane hosts, or external; containerd; and
flannel or a network that stays as it is. The config file declares all its hosts. Reads everything first: versions, flags, key pairs, Nodes,
members of etcd; refuses what it does not understand, all reasons at once; and shows what the first "kubexm create cluster" would change.

Then each host gets a record of its owner, each Node its provider ID, and the state is written. Nothing is restarted. A reset of a host
that was adopted (reset host, delete cluster) removes all that Kubernetes has put there, no matter who did so: it does not come back.
Packages stay.`,
		Example: "  kubexm adopt -f config.yaml --dry-run\n  kubexm adopt -f config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.adopt(cmd.Context(), s, dryRun, yes)
		},
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what is found and what would be changed, and change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// adopting is a cluster that is taken over.
type adopting struct {
	*recovering
	slots   component.Slots
	foreign *inspect.Foreign
	// nodes are the plan's steps, and facts what was seen, by host.
	nodes map[string][]plan.Node
	facts map[string]*host.Facts
	// etcd is how etcd runs that is a unit of others, by control plane host.
	etcd map[string]component.TheirEtcd
	// packages are what packages own of the paths that a reset clears, by host.
	packages map[string]map[string][]adoption.Owned
	// lines are what differs inside of what is rendered, by host.
	lines    map[string][]string
	problems []preflight.Problem
}

func (a *app) adopt(ctx context.Context, s *source, dryRun, yes bool) error {
	d, err := a.declare(ctx, s)
	if err != nil {
		return err
	}
	var known *clusterdir.KnownError
	if err := d.dir.CheckUnknown(); errors.As(err, &known) && len(known.Missing) == 0 {
		a.note(fmt.Sprintf("%s has a state in %s already: there is nothing to adopt.", d.Name, d.dir.Path()))
		return nil
	} else if err != nil {
		return usageError{err}
	}
	r := &adopting{recovering: &recovering{declared: d, adopts: true, managed: true}}
	d.targets = d.desired // as the management plane of the first create makes them
	if r.state, err = d.dir.BeginRecovery(); err != nil {
		return err
	}
	defer r.state.End()
	if d.hosts, err = access.New(d.Hosts, a.trusting(s, r.state.Dir)); err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{r.whose, r.keys, r.observe, r.ask, r.compare} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if err := a.showAdopted(r); err != nil || dryRun {
		return err
	}
	if !yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s of %s will be kubexm's.", count(len(d.targets), "host"), d.Name)); err != nil {
			return err
		}
	}
	for _, t := range d.targets {
		if err := r.take(ctx, t.Host); err != nil {
			return fmt.Errorf("host %s: %w\nNothing was restarted. Run this again: it resumes", t.Host.Name, err)
		}
	}
	if err := r.write(); err != nil {
		return err
	}
	a.note(fmt.Sprintf("%s is adopted: %s in %s. What is shown above is changed by: kubexm create cluster -f %s", d.Name,
		count(len(d.targets), "host"),
		d.dir.Path(), s.file))
	return nil
}

// whose asks the hosts whose they are, and refuses what the config file has that cannot be adopted.
func (r *adopting) whose(ctx context.Context) error {
	problems := adopted.Declared(r.Name, &r.Spec, rolesOf(r.targets))
	var err error
	if r.slots, err = tables.Slots(r.Spec); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return errors.Join(r.refuse(problems), err)
	}
	r.systems = map[string]host.System{}
	for _, h := range r.seen.Hosts {
		r.systems[h.Name] = h.Facts.System
	}
	return r.refuse(append(problems, adopted.Owners(r.Name, planner.Namespace, "", r.records())...))
}

// keys reads the key pairs. Where etcd is external, hosts have none of its authority, which is then not asked for; where it is units of
// others, its settings say where.
func (r *adopting) keys(ctx context.Context) error {
	r.etcdApart = r.etcdUnits() != nil
	err := r.authorities(ctx)
	if r.etcdApart && err == nil {
		return r.theirEtcd(ctx)
	}
	var refused *unrecovered
	if errors.As(err, &refused) && !r.Spec.Etcd.IsExternal() && !r.etcdApart {
		refused.problems[0].Remedy += "; if etcd's alone is missing because kubeadm does not run it, declare that: " +
			"spec.etcd.type: external, or kubexm where it is etcd.service on the control plane hosts"
	}
	return err
}

// records are the hosts as they were asked whose they are.
func (r *adopting) records() []adopted.Host {
	var all []adopted.Host
	for _, h := range r.seen.Hosts {
		all = append(all, adopted.Host{Host: h.Host, Facts: h.Facts})
	}
	return all
}

// observe reads everything of the hosts.
func (r *adopting) observe(ctx context.Context) error {
	var err error
	if r.seen.Authority, err = pki.Fingerprint(r.seen.Found.Cluster.Cert); err != nil {
		return err
	}
	if err := r.refuse(adopted.Owners(r.Name, planner.Namespace, r.seen.Authority, r.records())); err != nil {
		return err
	}
	if r.plan, err = planner.Plan(r.targets, r.systems, r.bundle); err != nil {
		return fmt.Errorf("%s is not adopted, and nothing was written: %w", r.Name, err)
	}
	queries := map[string]host.Query{}
	r.nodes = map[string][]plan.Node{}
	for _, t := range r.targets {
		nodes := adoption.Nodes(r.plan, t.Host.Name)
		q := adopted.HostQuery(t.Host.Role, r.slots.Runtime.Endpoint(), r.alsoOn(t.Host.Role)...)
		q.Merge(adoption.Query(nodes))
		q.Merge(adoption.PackagedQuery(nodes, r.ownEtcd(t.Host.Name)...))
		if t.HasEtcdMember() && r.etcdUnits() == nil {
			q.Merge(adopted.MembersQuery(r.slots.Runtime.Endpoint()))
		}
		for _, rendering := range renderings(nodes) {
			q.Commands = append(q.Commands, rendering.Query())
		}
		r.nodes[t.Host.Name], queries[t.Host.Name] = nodes, q
	}
	r.facts, err = r.tools(r.seen.Authority).Engine().Look(ctx, r.names(), func(name string) host.Query { return queries[name] })
	if err != nil {
		return fmt.Errorf("%s is not adopted, and nothing was written: %w", r.Name, &unfit{unreached: err})
	}
	r.serial = serial.Highest(serial.Hosts(rolesOf(r.targets)), r.facts, r.seen.Authority)
	return r.judge()
}

func renderings(nodes []plan.Node) []adoption.Rendering {
	var all []adoption.Rendering
	for _, n := range nodes {
		all = append(all, adoption.Renderings(n.Step)...)
	}
	return all
}

// judge judges what was read of hosts.
func (r *adopting) judge() error {
	r.packages, r.lines = map[string]map[string][]adoption.Owned{}, map[string][]string{}
	var unasked []error
	for i, t := range r.targets {
		name, seen := t.Host.Name, r.facts[t.Host.Name]
		r.seen.Hosts[i].Facts = seen
		h := adopted.Host{
			Host: t.Host, Facts: seen, Runtime: r.slots.Runtime.Endpoint(), Also: r.alsoOn(t.Host.Role),
			Writes: adoption.Writes(r.nodes[name], seen),
		}
		for _, rendering := range renderings(r.nodes[name]) {
			lines, driver, why := renderedLines(rendering, seen)
			if why != "" {
				h.Kubeadm = rendering.Component + ": " + why
			}
			if driver != "" {
				h.CgroupDriver = driver
			}
			for _, l := range lines {
				r.lines[name] = append(r.lines[name], rendering.Component+"  "+l)
			}
		}
		r.problems = append(r.problems, h.Problems(r.seen.Found.Cluster.Cert)...)
		if err := r.unitLines(h); err != nil {
			return fmt.Errorf("%s is not adopted, and nothing was written: host %s: %w", r.Name, name, err)
		}
		var err error
		if r.packages[name], err = adoption.Packaged(seen, r.nodes[name], r.ownEtcd(name)...); err != nil {
			return fmt.Errorf("%s is not adopted, and nothing was written: host %s: %w", r.Name, name, err)
		}
		if t.Host.Role != spec.RoleControlPlane {
			continue
		}
		if err := r.lostNames(t, seen); err != nil {
			return fmt.Errorf("%s is not adopted, and nothing was written: host %s: %w", r.Name, name, err)
		}
		if !t.HasEtcdMember() || r.etcdUnits() != nil {
			continue
		}
		r.seen.Addresses = append(r.seen.Addresses, t.Host.NodeAddress())
		if members, err := adopted.Members(seen); err != nil {
			unasked = append(unasked, fmt.Errorf("host %s: %w", name, err))
		} else if r.seen.Members == nil {
			r.seen.Members = members
		}
	}
	if len(unasked) > 0 && r.seen.Members == nil {
		r.problems = append(r.problems, preflight.Problem{Host: r.Name, Check: "etcd", Severity: preflight.Error,
			Cause: errors.Join(unasked...).Error(), Remedy: "bring etcd back: a cluster is adopted while it runs"})
	}
	return nil
}

// renderedLines are what differs between what a host has and what its kubeadm makes of what is declared; of the kubelet's, driver is that
// of cgroups.
func renderedLines(r adoption.Rendering, seen *host.Facts) (lines []string, driver, why string) {
	said := seen.Commands[r.Query().ID]
	if said.ExitCode != 0 || said.Stopped > 0 {
		return nil, "", strings.TrimSpace(string(said.Stdout) + string(said.Stderr))
	}
	have := seen.Paths[adopted.Manifest(r.Component)].Content
	if r.Component == adoption.Kubelet {
		have = slices.Clone(seen.Paths[adopted.KubeletConfig].Content)
		// As it runs: a package's drop-in has flags of other files, too.
		have = fmt.Appendf(have, "\nkubeadmArgs: %q\n", strings.Join(adopted.KubeletFlags(seen), " "))
		for line := range strings.Lines(string(said.Stdout)) {
			if value, found := strings.CutPrefix(line, "cgroupDriver: "); found {
				driver = strings.TrimSpace(value)
			}
		}
	}
	lines, err := adopted.Differences(r.Component, have, said.Stdout)
	if err != nil {
		return nil, driver, err.Error()
	}
	return lines, driver, ""
}

// unitLines finds what the first converge would change of a host's units.
func (r *adopting) unitLines(h adopted.Host) error {
	for _, unit := range h.Units() {
		content, err := adoption.Text(r.nodes[h.Name], adopted.UnitDir+"/"+unit)
		if err != nil {
			return err
		}
		if slices.Contains(h.Also, unit) {
			r.lines[h.Name] = append(r.lines[h.Name], r.etcdLines(h.Name, content)...)
		}
		for _, l := range h.UnitLines(unit, content) {
			r.lines[h.Name] = append(r.lines[h.Name], unit+"  "+l)
		}
	}
	return nil
}

// lostNames finds names of the API server's certificate that the first converge would take away.
func (r *adopting) lostNames(t spec.Target, seen *host.Facts) error {
	own := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + r.Spec.DNS.ClusterDomain,
		t.Host.Name, t.Host.NodeAddress()}
	own = append(own, r.Spec.Network.APIAddresses()...)
	declared, err := adoption.ServingNames(r.nodes[t.Host.Name])
	if err != nil {
		return err
	}
	lost, err := adopted.LostNames(seen.Paths[adopted.Serving].Content, declared, own)
	for _, name := range lost {
		r.lines[t.Host.Name] = append(r.lines[t.Host.Name],
			"kube-apiserver  - name "+name+" of its certificate (spec.kubernetes.apiServer.certSANs keeps it)")
	}
	return err
}

// ask asks the API, and refuses all that is not understood.
func (r *adopting) ask(ctx context.Context) error {
	var err error
	releases, _ := r.slots.Network.Release()
	if r.foreign, err = inspect.ForeignOf(ctx, r.trust, releases); err != nil {
		return errors.Join(r.refuse(r.problems), fmt.Errorf("%s is not adopted, and nothing was written: its API at %s does not answer: %w\n"+
			"Remedy: a cluster is adopted while it runs: bring the API back, and see that spec.controlPlaneEndpoint leads to it", r.Name,
			r.trust.Server, err))
	}
	r.seen.Nodes = r.foreign.Nodes
	seen := adopted.Seen{
		Cluster: r.Name, Spec: &r.Spec, Nodes: r.foreign.Details, Configuration: r.foreign.Configuration, Network: r.slots.Network,
		DaemonSets: r.foreign.DaemonSets, Releases: r.foreign.Releases, EtcdUnits: r.etcdUnits() != nil,
	}
	for _, t := range r.targets {
		seen.Hosts = append(seen.Hosts, adopted.Host{Host: t.Host, Facts: r.facts[t.Host.Name], Runtime: r.slots.Runtime.Endpoint()})
	}
	return r.refuse(slices.Concat(r.problems, recovered.Cluster(r.seen), adopted.Cluster(seen)))
}

// compare finds what a converge would change once the hosts are adopted.
func (r *adopting) compare(ctx context.Context) error {
	tools := r.tools(r.seen.Authority)
	tools.Trust = r.trust
	tools.Assume = func(name string, seen *host.Facts) {
		owner := host.Owner{Cluster: r.Name, Authority: r.seen.Authority, Role: string(tools.Owners.Roles[name]), Host: name}
		adoption.Assume(seen, owner, r.nodes[name])
	}
	report, err := tools.Compare(ctx, r.targets, r.systems)
	if err != nil && !engine.Undecided(err) {
		return fmt.Errorf("%s is not adopted, and nothing was written: %w", r.Name, err)
	}
	r.checks = report.Checks
	return nil
}

// take makes a host the cluster's, in one session, and gives its Node the provider ID.
func (r *adopting) take(ctx context.Context, h spec.Host) (err error) {
	connection, err := r.hosts.Dial(ctx, h.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	claim, err := r.tools(r.seen.Authority).Owners.Of(ctx, h.Name)
	if err != nil {
		return err
	}
	session, err := connection.Begin(ctx, host.Run{ID: "adopt-" + uuid.NewString(), Holder: planner.Holder(), Ownership: claim})
	if err != nil {
		return err
	}
	if acts := adoption.Acts(r.nodes[h.Name], r.facts[h.Name], r.packages[h.Name], r.ownEtcd(h.Name)...); len(acts) > 0 {
		if _, err := session.Do(ctx, acts...); err != nil {
			return err
		}
	}
	if err := session.End(ctx, false); err != nil {
		return err
	}
	if h.ProviderID == "" {
		return nil
	}
	return inspect.GiveProviderID(ctx, r.trust, h.Name, h.ProviderID)
}

// showAdopted shows what was found, and what comes of it.
func (a *app) showAdopted(r *adopting) error {
	if err := list(a.Out, newFormat(), r.seen.Hosts, table[recovered.Host]{
		{name: "HOST", value: func(h recovered.Host) string { return h.Name }},
		{name: "ROLE", value: func(h recovered.Host) string { return string(h.Role) }},
		{name: "ADDRESS", value: func(h recovered.Host) string { return r.hosts.Address(h.Name) }},
		{name: "HOST KEY", value: func(h recovered.Host) string { return access.Fingerprint(r.hosts.HostKey(h.Name)) }},
		{name: "OWNER", value: func(h recovered.Host) string {
			if h.Facts.Owner == nil {
				return "none yet"
			}
			return h.Facts.Owner.Cluster
		}},
	}); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nAuthority:   %s\n", r.seen.Authority)
	fmt.Fprintf(a.Out, "Key pairs:   those of %s\n", strings.Join(r.read, ", "))
	fmt.Fprintf(a.Out, "Kubernetes:  %s, %s\n", r.KubernetesVersion, count(len(r.seen.Nodes), "Node"))
	etcd := count(len(r.seen.Members), "member")
	if r.Spec.Etcd.IsExternal() {
		etcd = "external, " + strings.Join(r.Spec.Etcd.External.Endpoints, ", ")
	}
	fmt.Fprintf(a.Out, "etcd:        %s\n", etcd)
	fmt.Fprintln(a.Out, "\nThe adoption writes a record of the owner on each host, and each Node's provider ID. It restarts nothing.")
	fmt.Fprintln(a.Out, "A reset of an adopted host removes what Kubernetes has put there, whoever did so: nothing of it comes back.")
	for _, t := range r.targets {
		for _, l := range left(r.packages[t.Host.Name]) {
			fmt.Fprintf(a.Out, "  %s: a reset leaves %s\n", t.Host.Name, l)
		}
		_, elsewhere := r.pathsOfEtcd(t.Host.Name)
		for _, path := range elsewhere {
			fmt.Fprintf(a.Out, "  %s: a reset leaves %s, which etcd reads now\n", t.Host.Name, path)
		}
	}
	fmt.Fprintln(a.Out, "\nThe first converge (kubexm create cluster) changes:")
	if err := r.plan.Render(a.Out, r.checks); err != nil {
		return err
	}
	for _, t := range r.targets {
		if lines := r.lines[t.Host.Name]; len(lines) > 0 {
			fmt.Fprintf(a.Out, "\nIn it, on %s, of flags and settings (-: goes; +: comes; =: stays):\n", t.Host.Name)
			for _, l := range lines {
				fmt.Fprintln(a.Out, "  "+host.Word(l, 200))
			}
		}
	}
	return nil
}

// left says what a reset leaves because packages own it: a file by its name, and of a directory whose it is.
func left(packages map[string][]adoption.Owned) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		var names []string
		for _, o := range packages[path] {
			if !slices.Contains(names, o.Package) {
				names = append(names, o.Package)
			}
		}
		if owned := packages[path]; len(owned) == 1 && owned[0].Path == path {
			all = append(all, fmt.Sprintf("%s, which is the package %s's", path, names[0]))
		} else {
			all = append(all, fmt.Sprintf("of %s what packages own: %s", path, strings.Join(names, ", ")))
		}
	}
	return all
}
