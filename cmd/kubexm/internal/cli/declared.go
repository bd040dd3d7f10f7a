// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// source are the flags of commands that read a config file.
type source struct {
	file          string
	bundle        string
	knownHosts    []string
	acceptNewKeys bool
	// adopt names, by host, the owner from whom the host is taken over.
	adopt map[string]string
	// stateIsCurrent takes the state for the truth, though hosts say that there is a newer copy.
	stateIsCurrent bool
}

func (s *source) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "file", "f", "", "the config file that declares the cluster")
	flags.StringVar(&s.bundle, "bundle", "", "bundle with the artifacts: a directory, or a .tar, .tar.gz or .tar.zst, or a directory with bundles of several versions (default: that of the config file, or what \"kubexm bundle create\" made)")
	s.addKeyFlags(cmd)
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
}

func (s *source) addKeyFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.knownHosts, "known-hosts", nil, "files with the keys of hosts whose hostKey is not in the config file (default those that ssh asks: ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts)")
	flags.BoolVar(&s.acceptNewKeys, "accept-new-host-keys", false, "trust the key that an unknown host shows, and remember it; a known host that shows another is refused all the same")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		for _, file := range s.knownHosts { // with one that is not there, all hosts would be unknown, and any key might be accepted
			if _, err := os.Stat(file); err != nil {
				return usage("--known-hosts: %w", err)
			}
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
}

// declared is a cluster as a config file declares it, with what is at hand to make it.
type declared struct {
	*config.Cluster
	dir     clusterdir.Dir
	managed bool
	hosts   *access.Hosts
	bundle  *artifact.Bundle
	targets []spec.Target
	// desired are the targets that a management plane has.
	desired []spec.Target
	// systems is what was last seen of the hosts.
	systems map[string]host.System
	// owned are the hosts that were the cluster's before this command changed any.
	owned []string
	// adopt is that of the flags.
	adopt map[string]string
}

// declare reads the config file, and opens what it names. Nothing is touched but this machine.
func (a *app) declare(ctx context.Context, s *source) (*declared, error) {
	c, err := a.load(s)
	if err != nil {
		return nil, err
	}
	return a.declareCluster(ctx, s, c)
}

// load reads the config file.
func (a *app) load(s *source) (*config.Cluster, error) {
	if s.file == "" {
		return nil, usage("give the config file that declares the cluster: -f config.yaml")
	}
	c, warnings, err := config.Load(s.file, a.openSSH.Check)
	for _, w := range warnings {
		a.warn(w.String())
	}
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// declareCluster opens what a config that was read names.
func (a *app) declareCluster(ctx context.Context, s *source, c *config.Cluster) (*declared, error) {
	d := &declared{Cluster: c, systems: map[string]host.System{}, adopt: s.adopt}
	var err error
	if d.dir, err = clusterdir.Of(a.stateRoot, c.Name); err != nil {
		return nil, usageError{err}
	}
	d.managed = managed(d.dir)
	if d.hosts, err = access.New(c.Hosts, a.trusting(s, d.dir)); err != nil {
		return nil, err
	}
	if d.bundle, err = a.bundleFor(ctx, s.bundle, c); err != nil {
		return nil, err
	}
	if d.desired, err = planner.Targets(c); err != nil {
		return nil, usageError{err}
	}
	if d.targets = d.desired; !d.managed {
		if d.targets, err = d.unmanaged(); err != nil {
			return nil, err
		}
	}
	return d, s.checkAdopt(slices.Collect(maps.Keys(rolesOf(d.targets))))
}

// unmanaged are the targets where no management plane has the cluster. Hosts that were recovered are what the one that is lost has made
// of them.
func (d *declared) unmanaged() ([]spec.Target, error) {
	targets := target.Unmanaged(d.desired)
	known, err := d.dir.Inventory()
	if err != nil || known == nil || !known.Managed {
		return targets, err
	}
	for i := range targets {
		if slices.ContainsFunc(known.Hosts, func(h clusterdir.Host) bool { return h.Name == targets[i].Host.Name }) {
			targets[i] = d.desired[i]
		}
	}
	return targets, nil
}

// trusting says which host keys are trusted.
func (a *app) trusting(s *source, dir clusterdir.Dir) access.Options {
	files := s.knownHosts
	if files == nil {
		files = access.DefaultKnownHosts()
	}
	o := access.Options{KnownHosts: append([]string{dir.KnownHosts()}, files...), OpenSSH: &a.openSSH}
	if s.acceptNewKeys {
		o.AcceptNew = dir.KnownHosts()
	}
	return o
}

// about says what a host is.
func (d *declared) about(name string) string {
	for _, t := range d.targets {
		if t.Host.Name == name {
			return roleName(t.Host.Role)
		}
	}
	return ""
}

// roleName is a role in words.
func roleName(r spec.Role) string {
	switch r {
	case spec.RoleControlPlane:
		return "control plane"
	case spec.RoleLoadBalancer:
		return "load balancer"
	case spec.RoleWorker, spec.RoleEtcd:
	}
	return strings.ToLower(string(r))
}

// summary is what is declared, in one line.
func (d *declared) summary() string {
	counts := map[spec.Role]int{}
	for _, t := range d.targets {
		counts[t.Host.Role]++
	}
	parts := []string{count(counts[spec.RoleControlPlane], "control plane")}
	for _, other := range []struct {
		role spec.Role
		word string
	}{{spec.RoleWorker, "worker"}, {spec.RoleEtcd, "etcd host"}, {spec.RoleLoadBalancer, "load balancer"}} {
		if n := counts[other.role]; n > 0 {
			parts = append(parts, count(n, other.word))
		}
	}
	etcd := config.Word(d.Spec.Etcd.Type) + " etcd"
	members := 0
	for _, t := range d.targets {
		if t.HasEtcdMember() {
			members++
		}
	}
	if members > 1 {
		etcd += fmt.Sprintf(" (%d)", members)
	}
	parts = append(parts, config.Word(d.Spec.ContainerRuntime.Type), etcd)
	return fmt.Sprintf("%s  %s  %s", d.Name, d.KubernetesVersion, strings.Join(parts, " · "))
}

// nodes is how many hosts become Nodes, and how many do not.
func (d *declared) nodes() (nodes, others int) {
	for _, t := range d.targets {
		if t.Host.Role.IsNode() {
			nodes++
		}
	}
	return nodes, len(d.targets) - nodes
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// examine reads the whole bundle and observes all hosts, both at once, and stops at what preflight refuses.
func (a *app) examine(ctx context.Context, d *declared, tools planner.Tools) (map[string]*host.Facts, error) {
	var facts map[string]*host.Facts
	var unverified, unreached error
	var both errgroup.Group
	both.Go(func() error { unverified = verify(ctx, d.bundle); return nil })
	both.Go(func() error { facts, unreached = tools.Observe(ctx, d.targets); return nil })
	_ = both.Wait() // both errors are wanted
	if unverified != nil {
		return nil, unverified
	}
	a.note(d.summary() + "   " + describeBundle(d.bundle))
	problems, err := tools.Preflight(ctx, d.targets, facts)
	if err != nil {
		return nil, err
	}
	problems = append(problems, d.orphans(facts)...)
	problems = append(problems, sharedKeys(d.hosts)...)
	a.showPreflight(problems, len(facts), len(d.targets))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if unreached != nil || preflight.Failed(problems) {
		return nil, &unfit{problems: problems, unreached: unreached, hint: d.lost(unreached)}
	}
	return facts, nil
}

// lost says what to do if hosts are refused because the cluster's state is lost; "" if it is here.
func (d *declared) lost(unreached error) string {
	var failed *engine.Error
	if d.dir.HasAuthorities() || !errors.As(unreached, &failed) ||
		!slices.ContainsFunc(failed.Failures, func(f engine.Failure) bool { return host.KindOf(f.Err) == host.KindForeign }) {
		return ""
	}
	return fmt.Sprintf("There is no state of %s in %s. If it is lost, and these hosts are the cluster's, read it back from them: kubexm recover -f config.yaml",
		d.Name, d.dir.Path())
}

// orphans are hosts that were made a part of a cluster whose state is not here: to go on would make another cluster, with
// other certificate authorities, over one that may be running.
func (d *declared) orphans(facts map[string]*host.Facts) []preflight.Problem {
	if d.dir.HasAuthorities() {
		return nil
	}
	var problems []preflight.Problem
	for _, t := range d.targets {
		if f := facts[t.Host.Name]; f != nil && f.Changed() && d.adopt[t.Host.Name] == "" {
			problems = append(problems, preflight.Problem{
				Host: t.Host.Name, Check: "state", Severity: preflight.Error,
				Cause: fmt.Sprintf("kubexm has made this host a part of a cluster already, and key pairs of the cluster %s are not in %s", d.Name, d.dir.Path()),
				Remedy: "run kubexm where that state is, or restore it from a backup, or read it back from the hosts " +
					"(kubexm recover -f config.yaml); to give the host up as it was before, run kubexm delete cluster there",
			})
		}
	}
	return problems
}

// showPreflight tells how many hosts are fit, and of the warnings.
func (a *app) showPreflight(problems []preflight.Problem, reached, hosts int) {
	var bad []string
	var warnings []preflight.Problem
	for _, p := range problems {
		if p.Severity == preflight.Warning {
			warnings = append(warnings, p)
		} else if !slices.Contains(bad, p.Host) {
			bad = append(bad, p.Host)
		}
	}
	line := fmt.Sprintf(" preflight   %d/%d hosts ok", reached-len(bad), hosts)
	if len(warnings) > 0 {
		line += "   " + count(len(warnings), "warning") + ":"
	}
	a.note(line)
	for _, w := range alike(warnings) {
		if !a.quiet {
			a.say(levelWarn, fmt.Sprintf("   %s: %s: %s (%s)", w.Host, w.Check, w.Cause, w.Remedy))
		}
	}
}

// alike puts together what is the same on several hosts.
func alike(problems []preflight.Problem) []preflight.Problem {
	var all []preflight.Problem
	for _, p := range problems {
		at := slices.IndexFunc(all, func(q preflight.Problem) bool {
			return q.Check == p.Check && q.Severity == p.Severity && q.Cause == p.Cause && q.Remedy == p.Remedy
		})
		if at < 0 {
			all = append(all, p)
			continue
		}
		all[at].Host += ", " + p.Host
	}
	return all
}

// trust is what the cluster's trust rests on. For a cluster of which nothing is known it is made and, if keep, kept; see
// clusterdir.Dir.EnsureAuthorities. With keep it is called with the lock held.
func (d *declared) trust(keep bool) (*planner.Trust, error) {
	t := &planner.Trust{Cluster: d.Name, Server: planner.Server(d.Cluster)}
	ca := pki.CARequest{Key: pki.Algorithm(d.Spec.Certificates.CAAlgorithm), Validity: d.Spec.Certificates.CAValidity()}
	var err error
	if t.Secrets, err = planner.EtcdSecrets(d.EtcdSecret(), d.EtcdFiles); err != nil {
		return nil, usageError{err}
	}
	known, err := d.dir.Known()
	switch {
	case err != nil:
	case keep:
		t.Authorities, err = d.dir.EnsureAuthorities(ca, d.encrypted())
	case known:
		t.Authorities, err = d.dir.Authorities(d.encrypted())
	default:
		if t.Authorities, err = pki.NewAuthorities(ca); d.encrypted() {
			t.CompleteEncryption()
		}
	}
	return t, err
}

// encrypted reports whether the cluster is declared to have an encryption key.
func (d *declared) encrypted() bool { return d.Spec.Kubernetes.EncryptionAtRest.IsOn() }

// sameCluster refuses what no cluster can follow, before anything is asked: a plan that is applied meets no webhook, nor do objects
// that are new to a management plane.
func (d *declared) sameCluster() error {
	known, err := d.dir.Inventory()
	if err != nil {
		return err
	}
	if err := d.sameEncryption(known); err != nil || known == nil || known.Running == nil {
		return err
	}
	was, path := known.Running, field.NewPath("spec")
	if len(known.Applied()) == 0 && !d.managed {
		return nil // its hosts were reset
	}
	var controlPlanes int32
	for _, h := range known.Hosts {
		if h.Role == spec.RoleControlPlane {
			controlPlanes++
		}
	}
	errs := spec.ValidateUpdate(&was.Spec, &d.Spec, controlPlanes, path)
	if was.Reached {
		errs = append(errs, spec.ValidateSharedUpdate(&was.Spec, &d.Spec, path)...)
	}
	if len(errs) > 0 {
		return usageError{errs.ToAggregate()}
	}
	return nil
}

func (d *declared) sameEncryption(known *clusterdir.Inventory) error {
	path := field.NewPath("spec", "kubernetes", "encryptionAtRest")
	if known == nil {
		left, _, err := d.dir.ReadAuthorities()
		if err == nil && !left.Encryption.IsZero() && !d.encrypted() {
			err = usage("%s: %s has an encryption key in %s, and is declared to encrypt nothing: declare what its API servers encrypt",
				path, d.Name, d.dir.Path("secrets"))
		}
		return err
	}
	errs := spec.ValidateEncryptionUpdate(&known.Encryption, &d.Spec.Kubernetes.EncryptionAtRest, path)
	if len(errs) > 0 {
		return usageError{errs.ToAggregate()}
	}
	return nil
}

// inventory is what other commands need to know of the cluster.
func (d *declared) inventory() *clusterdir.Inventory {
	i := &clusterdir.Inventory{
		Cluster: d.Name, KubernetesVersion: d.KubernetesVersion, Server: planner.Server(d.Cluster), Bundle: d.bundle.Dir(),
		Encryption: d.Spec.Kubernetes.EncryptionAtRest, OnFailure: d.Spec.OnFailure,
		Declared: &clusterdir.Declaration{KubernetesVersion: d.KubernetesVersion, Spec: d.Spec},
	}
	if d.EtcdFiles != (config.EtcdFiles{}) {
		i.EtcdSecret, i.EtcdFiles = d.EtcdSecret(), d.EtcdFiles
	}
	known, err := d.dir.Inventory()
	if err != nil || known == nil {
		known = &clusterdir.Inventory{}
	}
	i.Running = known.Running
	for n := range d.Hosts {
		h := &d.Hosts[n]
		remembered := clusterdir.Host{
			Name: h.Name, Role: h.Spec().Role, Address: h.Address, Port: h.Port, User: h.User, PrivateKeyPath: h.PrivateKeyPath,
			NeedsPassword: !h.Password.IsZero(), HostKey: d.hosts.HostKey(h.Name),
		}
		if was := known.Host(h.Name); was != nil {
			remembered.Adopted, remembered.Applied = was.Adopted, was.Applied
		}
		if j := h.ProxyJump; !j.IsZero() {
			remembered.ProxyJump = &clusterdir.ProxyJump{
				Host: j.Host, Port: j.Port, User: j.User, PrivateKeyPath: j.PrivateKeyPath, NeedsPassword: !j.Password.IsZero(),
				HostKey: d.hosts.JumpHostKey(h.Name),
			}
		}
		if seen, found := d.systems[h.Name]; found {
			remembered.System = &seen
		}
		i.Hosts = append(i.Hosts, remembered)
	}
	// One that a plan was applied to is not forgotten because it is declared no more: nobody else knows it. One that a management plane
	// has stays until it has left.
	for _, h := range known.Hosts {
		if (h.Applied || d.managed) && i.Host(h.Name) == nil {
			i.Hosts = append(i.Hosts, h)
		}
	}
	return i
}

// seconds is a duration as people read it.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}
