// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/plane"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// createOptions are the flags of "create cluster".
type createOptions struct {
	source
	dryRun bool
	yes    bool
	wait   time.Duration
	// onFailure is what becomes of a host's changes when a step fails, "" for what the config file says.
	onFailure onFailure
}

func (a *app) createCluster() *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:   "cluster -f config.yaml",
		Short: "Create or update a cluster from its config file",
		Long: `Checks the config file, the artifacts and all hosts, and stops before anything is changed if one of them is not fit. Then
it starts a management plane on this machine (state in .kubexm/<cluster>), declares the cluster to it, and shows how its
hosts become Nodes.

Run again, it observes all hosts and changes what is not up to date. Interrupted, it resumes. Another
version of Kubernetes is for "kubexm upgrade cluster".`,
		Example: "  kubexm create cluster -f config.yaml --dry-run\n  kubexm create cluster -f config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.onFailure.check(); err != nil {
				return err
			}
			if o.dryRun {
				_, _, err := a.showPlan(cmd.Context(), &o.source, false)
				return err
			}
			return a.create(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	o.addAdoptFlag(cmd)
	o.addSerialFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be changed, from what the hosts are now, and change nothing")
	o.onFailure.addFlag(flags)
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask before hosts are taken out of the cluster")
	flags.DurationVar(&o.wait, "wait-timeout", 30*time.Minute, "how long the cluster may take to become ready; failures are tried again until then")
	return cmd
}

func (a *app) create(ctx context.Context, o *createOptions) error {
	began := time.Now()
	d, err := a.declare(ctx, &o.source)
	if err != nil {
		return err
	}
	o.onFailure.declare(&d.Spec)
	unlock, err := d.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.sameCluster(); err != nil { // before it is looked for a key that there never was
		return err
	}
	if err := d.dir.CheckAuthorities(d.encrypted()); err != nil { // before a host is asked anything
		return err
	}
	if err := d.sameVersion(o.file); err != nil {
		return err
	}
	if err := d.forgetsNone(); err != nil {
		return err
	}
	if same, err := a.unchanged(ctx, d); err != nil {
		return err
	} else if same != "" {
		_, err = fmt.Fprintln(a.Out, same)
		return err
	}
	tools := planner.Tools{Hosts: d.hosts, Owners: d.owners(), Bundle: d.bundle}
	facts, err := a.examine(ctx, d, tools)
	if err != nil {
		return err
	}
	d.systems = planner.Systems(facts)
	if _, err := d.trust(true); err != nil { // before anything else is known of the cluster
		return err
	}
	copied := a.guard(d.dir, tools, o.stateIsCurrent)
	if err := copied.Begin(ctx, facts); err != nil {
		return err
	}
	if err := d.keepInventory(""); err != nil {
		return err
	}
	if err := d.findOwned(ctx, facts); err != nil {
		return err
	}
	d.manage()
	return a.showing(d.about, func(reader event.Reader) (string, error) {
		counted := &counter{next: reader}
		if err := a.converge(ctx, d, o, counted); err != nil {
			return "", err
		}
		if err := copied.End(ctx); err != nil {
			return "", err
		}
		if counted.changes.Load() == 0 {
			return d.asDeclared(time.Since(began)), nil
		}
		return fmt.Sprintf("%s is ready in %s.   export KUBECONFIG=%s", d.Name, seconds(time.Since(began)), d.dir.Kubeconfig()), nil
	})
}

// asDeclared is what is said when nothing had to be changed.
func (d *declared) asDeclared(took time.Duration) string {
	return fmt.Sprintf("%s is up to date: %s checked in %s, 0 changes.", d.Name, count(len(d.targets), "host"), seconds(took))
}

// manage says that from now on a management plane has the cluster.
func (d *declared) manage() { d.managed, d.targets = true, d.desired }

// findOwned finds the hosts that are the cluster's already, whoever has made them so.
func (d *declared) findOwned(ctx context.Context, facts map[string]*host.Facts) error {
	for _, t := range d.targets {
		claim, err := d.owners().Of(ctx, t.Host.Name)
		if err != nil {
			return err
		}
		if f := facts[t.Host.Name]; f != nil && claim.Owns(f) {
			d.owned = append(d.owned, t.Host.Name)
		}
	}
	return nil
}

// unchanged observes whether a cluster that was made of this very config is still so, and returns what is said then, else "". That needs no
// management plane: an exchange with each host and a few questions to the cluster's API.
func (a *app) unchanged(ctx context.Context, d *declared) (string, error) {
	known, err := d.dir.Inventory()
	if err != nil || known == nil || known.IsRecovered() {
		return "", err
	}
	if digest, err := d.digest(); err != nil || known.Ready != digest {
		return "", err
	}
	for _, h := range known.Hosts {
		if h.System != nil {
			d.systems[h.Name] = *h.System
		}
	}
	began := time.Now()
	differs, err := a.differences(ctx, d)
	if err != nil || len(differs) > 0 {
		return "", nil // the management plane finds out what is the matter, and says so
	}
	return d.asDeclared(time.Since(began)), nil
}

// differences observes every host, and the cluster, and returns what is not up to date.
func (a *app) differences(ctx context.Context, d *declared) ([]rollout.Wait, error) {
	trust, err := d.trust(true)
	if err != nil {
		return nil, err
	}
	report, err := planner.Tools{Hosts: d.hosts, Owners: d.owners(), Bundle: d.bundle, Trust: trust}.Compare(ctx, d.targets, d.systems)
	if err != nil {
		return nil, err
	}
	var differs []rollout.Wait
	for _, c := range report.Checks {
		on, step, _ := strings.Cut(c.Node, "/")
		w := rollout.Wait{On: on, Reason: "Differs", Message: step}
		if c.Unknown != "" {
			w.Message += ": " + c.Unknown
		}
		for _, delta := range c.Diff {
			w.Message += fmt.Sprintf("\n%s: %s → %s", delta.Subject, delta.From, delta.To)
		}
		differs = append(differs, w)
	}
	return differs, nil
}

// forgetsNone refuses to take hosts out of a cluster that was recovered or adopted before a management plane knows them: nobody would
// reset them.
func (d *declared) forgetsNone() error {
	known, err := d.dir.Inventory()
	if err != nil || !known.IsRecovered() {
		return err
	}
	roles := rolesOf(d.targets)
	var forgotten []string
	for _, h := range known.Hosts {
		if roles[h.Name] != h.Role {
			forgotten = append(forgotten, h.Name)
		}
	}
	if len(forgotten) == 0 {
		return nil
	}
	return usage("spec.hosts, spec.roleGroups: %s was recovered or adopted, and no management plane knows its hosts yet: declare %s as before, run this, and "+
		"take them out then", d.Name, strings.Join(forgotten, ", "))
}

// digest is of all that makes the cluster what it is, and of how its hosts are reached: a management plane logs in with what it was given.
// What is secret of that is hashed with a key of the cluster's, as the digest is no secret.
func (d *declared) digest() (string, error) {
	authorities, _, err := d.dir.ReadAuthorities()
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, authorities.ServiceAccount.Key.Reveal())
	// What the hosts must be, and what else the objects say: policies are no part of a target.
	_ = json.NewEncoder(h).Encode(d.desired) //nolint:errchkjson // plain data into a hash
	_ = json.NewEncoder(h).Encode(d.Spec)    //nolint:errchkjson // plain data into a hash
	for i := range d.Hosts {
		host := &d.Hosts[i]
		fmt.Fprintln(h, host.Name, host.User, host.Port, host.PrivateKeyPath, d.hosts.HostKey(host.Name))
		credentials := []secret.Value{host.Password, d.hosts.PrivateKey(host.Name)}
		if j := host.ProxyJump; !j.IsZero() {
			fmt.Fprintln(h, j.Host, j.User, j.Port, j.PrivateKeyPath, d.hosts.JumpHostKey(host.Name))
			credentials = append(credentials, j.Password, d.hosts.JumpPrivateKey(host.Name))
		}
		for _, c := range credentials {
			fmt.Fprintf(h, "%d %s\n", len(c.Reveal()), c.Reveal())
		}
	}
	fmt.Fprintln(h, d.bundle.Digest())
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// counter counts what is changed on hosts.
type counter struct {
	next    event.Reader
	changes atomic.Int64
}

func (c *counter) Read(e event.Event) {
	if e.Type == event.Changed {
		c.changes.Add(1)
	}
	c.next.Read(e)
}

// converge declares the cluster to a management plane, and waits until it is so.
func (a *app) converge(ctx context.Context, d *declared, o *createOptions, reader event.Reader) error {
	trust, err := d.trust(true)
	if err != nil {
		return err
	}
	shown := &deferred{next: reader}
	defer shown.show()
	p, err := plane.Start(ctx, plane.Options{
		Dir: d.dir.Plane(), Namespace: planner.Namespace, Hosts: len(d.Hosts), Bundle: d.bundle, Reader: shown, Holder: planner.Holder(),
		OpenSSH: &a.openSSH,
	})
	if err != nil {
		return err
	}
	defer a.stop(ctx, p)
	known, err := d.dir.Inventory()
	if err != nil {
		return err
	}
	if err := requireHere(ctx, p.Client(), d.dir, known); err != nil {
		return err
	}
	if err := again(ctx, p.Client(), d.Name); err != nil {
		return err
	}
	all := objects.Of(d.Cluster, objects.Inputs{
		Namespace: planner.Namespace, Endpoint: planner.Endpoint(d.Cluster), Authorities: trust.Authorities, Secrets: trust.Secrets,
		HostKey: d.hosts.HostKey, PrivateKey: d.hosts.PrivateKey, JumpHostKey: d.hosts.JumpHostKey, JumpPrivateKey: d.hosts.JumpPrivateKey,
	})
	if err := rollout.Try(ctx, p.Client(), all); err != nil {
		return usage("the management plane refuses what is declared; nothing was changed:\n%w", err)
	}
	before, err := a.retire(ctx, p.Client(), d, known, o.yes)
	if err != nil {
		return err
	}
	shown.show()
	ctx, cancel := context.WithTimeoutCause(ctx, o.wait, errNotReady) // not of a person who is asked
	defer cancel()
	if err := d.noteRunning(); err != nil {
		return err
	}
	if err := rollout.TakeIn(ctx, p.Client(), all, d.owned); err != nil {
		return err
	}
	if _, err := rollout.Apply(ctx, p.Client(), all); err != nil {
		return err
	}
	if err := before.Prune(ctx, p.Client(), all); err != nil {
		return err
	}
	after, err := a.awaitReady(ctx, d, p)
	if err != nil {
		return err
	}
	if err := after.PruneHosts(ctx, p.Client(), d.pools()); err != nil {
		return err
	}
	return d.finish(trust)
}

// noteRunning notes down what hosts are changed to, before any is.
func (d *declared) noteRunning() error {
	known, err := d.dir.Inventory()
	if err != nil || known == nil {
		return err
	}
	known.SetRunning("", false)
	return d.dir.WriteInventory(known)
}

// finish leaves what the user, and later commands, need.
func (d *declared) finish(trust *planner.Trust) error {
	kubeconfig, err := trust.Kubeconfig(kubeconfigValidity)
	if err != nil {
		return err
	}
	if err := d.dir.Write(kubeconfig.Reveal(), "kubeconfig"); err != nil {
		return err
	}
	i := d.inventory()
	// The plane has all of them, and those that are declared no more have left.
	i.Hosts = slices.DeleteFunc(i.Hosts, func(h clusterdir.Host) bool {
		return !slices.ContainsFunc(d.Hosts, func(declared config.Host) bool { return declared.Name == h.Name })
	})
	i.SetApplied(inventory{i}.names(), false)
	if i.Ready, err = d.digest(); err != nil {
		return err
	}
	i.ReadyTime = time.Now().UTC()
	i.SetRunning("", true)
	return d.dir.WriteInventory(i)
}

// Why waiting ends.
var (
	errNotReady  = errors.New("it took longer than --wait-timeout")
	errExhausted = errors.New("a host was rolled back from the same change three times, and is not tried again before this is called again")
)

// again asks for hosts that are not tried any more.
func again(ctx context.Context, c client.Client, name string) error {
	s, err := rollout.Read(ctx, c, client.ObjectKey{Namespace: planner.Namespace, Name: name})
	if err != nil {
		return err
	}
	return s.Again(ctx, c)
}

const (
	// pollObjects is how often the plane, which is on this machine, is asked.
	pollObjects = 500 * time.Millisecond
	// pollHosts is how often hosts are observed once all objects say that they are ready.
	pollHosts = 3 * time.Second
)

// awaitReady waits until all objects say that the cluster is ready, and a look at every host agrees.
func (a *app) awaitReady(ctx context.Context, d *declared, p *embedded.Plane) (*rollout.Snapshot, error) {
	var waits []rollout.Wait
	began := time.Now()
	for {
		s, err := rollout.Read(ctx, p.Client(), client.ObjectKey{Namespace: planner.Namespace, Name: d.Name})
		if err == nil {
			err = s.Adopt(ctx, p.Client(), d.adopt)
		}
		if err == nil {
			if waits = s.Waits(d.nodes()); s.Exhausted(began) {
				return nil, notReady(d.Name, waits, errExhausted)
			}
		}
		pause := pollObjects
		if err == nil && len(waits) == 0 {
			waits, err = a.differences(ctx, d)
			if err == nil && len(waits) == 0 {
				return s, nil
			}
			if err != nil {
				waits = []rollout.Wait{{On: "hosts", Reason: "NotSeen", Message: err.Error()}}
			}
			pause = pollHosts
		}
		select {
		case <-p.Done():
			return nil, p.Err()
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errNotReady) {
				return nil, context.Cause(ctx)
			}
			return nil, notReady(d.Name, waits, errNotReady)
		case <-time.After(pause):
		}
	}
}

// notReady says what a cluster still waits for.
func notReady(name string, waits []rollout.Wait, why error) error {
	lines := []string{fmt.Sprintf("%s is not ready: %v", name, why)}
	for _, w := range waits {
		lines = append(lines, fmt.Sprintf("  %s  %s\n    %s", w.On, w.Reason, strings.ReplaceAll(strings.TrimSpace(w.Message), "\n", "\n    ")))
	}
	return errors.New(strings.Join(append(lines, "Completed steps are kept; the next run resumes."), "\n"))
}
