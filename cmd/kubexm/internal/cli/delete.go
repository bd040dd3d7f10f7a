// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/plane"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// deleteOptions are the flags of "delete cluster".
type deleteOptions struct {
	source
	yes  bool
	wait time.Duration
}

func (a *app) deleteCluster() *cobra.Command {
	o := &deleteOptions{}
	cmd := &cobra.Command{
		Use:   "cluster [NAME] [-f config.yaml]",
		Short: "Delete a cluster and reset its hosts",
		Long: `Deletes the cluster with all that runs in it. Each host is reset to what it was before kubexm first changed it: files,
units, kernel settings, swap, packages. The cluster's API need not answer for that; its hosts must.

With the config file hosts are reached as that says. It takes the place of an inventory that is lost, too.

A cluster that is gone already is no error.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := clusterName(args, o.file)
			if err != nil {
				return err
			}
			return a.delete(cmd.Context(), o, name)
		},
	}
	o.addFlags(cmd)
	o.addAdoptFlag(cmd)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&o.wait, "wait-timeout", 15*time.Minute, "how long it may take until all hosts are reset")
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

// clusterName is the cluster that a command line names, itself or by a config file. Who names it by both means one cluster.
func clusterName(args []string, file string) (string, error) {
	switch {
	case file == "" && len(args) == 1:
		return args[0], nil
	case file == "":
		return "", usage("give the cluster's name, or its config file (-f)")
	}
	c, _, err := config.Load(file, nil)
	if err != nil {
		return "", usageError{err}
	}
	if len(args) == 1 && args[0] != c.Name {
		return "", usage("%s: metadata.name: it declares the cluster %s, not %s: name one of them", file, c.Name, args[0])
	}
	return c.Name, nil
}

func (a *app) delete(ctx context.Context, o *deleteOptions, name string) error {
	began := time.Now()
	dir, err := clusterdir.Of(a.stateRoot, name)
	if err != nil {
		return usageError{err}
	}
	known, err := a.deletable(ctx, &o.source, dir)
	if err != nil {
		return err
	}
	if known == nil {
		fmt.Fprintf(a.Out, "%s is not there: nothing to delete.\n", name)
		return nil
	}
	if err := o.checkAdopt(inventory{known}.names()); err != nil {
		return err
	}
	a.warnOfCopy(ctx, &o.source, dir)
	adopted := inventory{known}.wasAdopted()
	if !o.yes {
		if err := a.confirm(ctx, fmt.Sprintf("Cluster %s will be deleted, and %s reset.%s", name, count(len(known.Hosts), "host"), adopted)); err != nil {
			return err
		}
	} else if adopted != "" {
		a.note(strings.TrimSpace(adopted))
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Somebody was asked, and the lock was free meanwhile.
	if now, err := dir.Inventory(); err != nil {
		return err
	} else if now != nil {
		known = now
	}
	return a.showing(inventory{known}.about, func(reader event.Reader) (string, error) {
		reset := inventory{known}.names()
		// What a plane has that was to take in a recovered cluster, and was cut, is not all of it.
		if managed(dir) && !known.IsRecovered() {
			if err := a.deleteObjects(ctx, o, dir, known, reader); err != nil {
				return "", err
			}
			reset = known.Applied()
		}
		if err := a.undo(ctx, &o.source, dir, known, reset, reader); err != nil {
			return "", err
		}
		kept, err := dir.Remove()
		if err != nil {
			return "", err
		}
		if kept {
			a.note("backups of etcd stay in " + dir.Backups())
		}
		return fmt.Sprintf("%s is deleted: %s reset in %s.", name, count(len(known.Hosts), "host"), seconds(time.Since(began))), nil
	})
}

// deletable is what is known of a cluster that is to be deleted, nil if there is none. Where the inventory is lost, and other parts of the
// state are not, it is what the config file says.
func (a *app) deletable(ctx context.Context, s *source, dir clusterdir.Dir) (*clusterdir.Inventory, error) {
	known, err := dir.Inventory()
	if err != nil || known != nil {
		return known, err
	}
	left, err := dir.Known()
	switch {
	case err != nil || !left && s.file == "":
		return nil, err
	case s.file == "":
		return nil, a.unknown(dir)
	}
	c, err := a.load(s)
	if err != nil {
		return nil, err
	}
	d := &declared{Cluster: c, dir: dir, bundle: &artifact.Bundle{}}
	if d.hosts, err = access.New(c.Hosts, a.trusting(s, dir)); err != nil {
		return nil, err
	}
	if !left {
		return nil, a.refuseStrays(ctx, s, d)
	}
	// By them hosts know whose they are.
	if authority, err := dir.Authority(); err != nil || authority == "" {
		return nil, errors.Join(err, dir.CheckAuthorities(d.encrypted()))
	}
	known = d.inventory()
	known.SetApplied(inventory{known}.names(), true) // whatever the plane knows of them
	if managed(dir) {
		known.Bundle, err = a.bundlePath(s.bundle, c.Spec.Artifacts.Bundle.Path, c.KubernetesVersion)
	}
	return known, err
}

// refuseStrays is an error where hosts of a cluster of which there is no state say that they are a part of it. Of those that do not answer
// nobody can tell.
func (a *app) refuseStrays(ctx context.Context, s *source, d *declared) error {
	var names []string
	for i := range d.Hosts {
		names = append(names, d.Hosts[i].Name)
	}
	// Without an authority all that have an owner are refused, and their records are read all the same.
	tools := planner.Tools{Hosts: d.hosts, Owners: owners(d.dir, nil, nil)}
	facts, err := tools.Engine().Look(ctx, names, func(string) host.Query { return host.Query{} })
	var failed *engine.Error
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		return err
	}
	for _, name := range names {
		if facts[name] == nil {
			a.warn("host " + name + " does not say whether it is a part of " + d.Name)
		}
	}
	strays := d.strays(facts)
	if len(strays) == 0 {
		return nil
	}
	return usage("there is no state of cluster %s in %s, and these hosts are a part of it: %s. Read the state back from them first: kubexm recover -f %s",
		d.Name, d.dir.Path(), strings.Join(strays, ", "), s.file)
}

// strays are the hosts that say that they are a part of a cluster with this name.
func (d *declared) strays(facts map[string]*host.Facts) []string {
	var strays []string
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if f := facts[name]; f != nil && f.Owner != nil && (f.Owner.Cluster == d.Name || f.Owner.Cluster == planner.Namespace+"/"+d.Name) {
			strays = append(strays, name)
		}
	}
	return strays
}

// undo resets hosts without a management plane.
func (a *app) undo(
	ctx context.Context, s *source, dir clusterdir.Dir, known *clusterdir.Inventory, names []string, reader event.Reader,
) error {
	if len(names) == 0 {
		return nil
	}
	hosts, err := a.reachKnown(s, dir, known)
	if err != nil {
		return err
	}
	tools := planner.Tools{Hosts: hosts, Owners: inventory{known}.owners(dir, s.adopt), Reader: reader}
	_, err = tools.Engine().Undo(ctx, engine.Undo{
		Intent: "ResetNode", Cluster: dir.Cluster, Hosts: names,
	})
	return err
}

// deleteObjects deletes the cluster's objects in its management plane, and waits until all hosts are reset.
func (a *app) deleteObjects(
	ctx context.Context, o *deleteOptions, dir clusterdir.Dir, known *clusterdir.Inventory, reader event.Reader,
) error {
	bundle, err := a.openBundle(ctx, cmp.Or(o.bundle, known.Bundle), "")
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w\nRemedy: the management plane's programs are in the bundle: give its place with --bundle", err)
	}
	if err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Options{
		Dir: dir.Plane(), Namespace: planner.Namespace, Hosts: len(known.Hosts), Bundle: bundle, Reader: reader, Holder: planner.Holder(),
		OpenSSH: &a.openSSH,
	})
	if err != nil {
		return err
	}
	defer a.stop(ctx, p)
	ctx, cancel := context.WithTimeoutCause(ctx, o.wait, errNotReady)
	defer cancel()
	if err := requireHere(ctx, p.Client(), dir, known); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: planner.Namespace, Name: dir.Cluster}
	s, err := rollout.Read(ctx, p.Client(), key)
	if err != nil {
		return err
	}
	// What the plane has, it resets.
	known.SetApplied(s.InUse(), false)
	if err := dir.WriteInventory(known); err != nil {
		return err
	}
	if err := a.declareAccess(ctx, p.Client(), s, &o.source, dir); err != nil {
		return err
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := p.Client().Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return err
	}
	return awaitGone(ctx, p, key, o.adopt)
}

// declareAccess has the plane reach its hosts as the config file says, if one is given.
func (a *app) declareAccess(ctx context.Context, c client.Client, s *rollout.Snapshot, from *source, dir clusterdir.Dir) error {
	if from.file == "" {
		return nil
	}
	cluster, err := a.load(from)
	if err != nil {
		return err
	}
	hosts, err := access.New(cluster.Hosts, a.trusting(from, dir))
	if err != nil {
		return err
	}
	// One whose key nobody knows is reached as before, if at all.
	cluster.Hosts = slices.DeleteFunc(cluster.Hosts, func(h config.Host) bool { return !s.HasHost(h.Name) || hosts.HostKey(h.Name) == "" })
	_, err = rollout.Apply(ctx, c, objects.AccessOf(cluster, objects.Inputs{
		Namespace: planner.Namespace,
		HostKey:   hosts.HostKey, PrivateKey: hosts.PrivateKey, JumpHostKey: hosts.JumpHostKey, JumpPrivateKey: hosts.JumpPrivateKey,
	}))
	return err
}

// awaitGone waits until a deleted cluster is gone and has given its hosts back.
func awaitGone(ctx context.Context, p *embedded.Plane, key client.ObjectKey, adopt map[string]string) error {
	var s *rollout.Snapshot
	for {
		seen, err := rollout.Read(ctx, p.Client(), key)
		if err == nil {
			err = seen.Adopt(ctx, p.Client(), adopt)
		}
		if err == nil {
			s = seen
			if s.Gone() {
				return s.Unclean()
			}
		}
		select {
		case <-p.Done():
			return p.Err()
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errNotReady) {
				return context.Cause(ctx)
			}
			return notGone(key.Name, s)
		case <-time.After(pollObjects):
		}
	}
}

// notGone says what the deletion of a cluster still waits for.
func notGone(name string, s *rollout.Snapshot) error {
	lines := []string{fmt.Sprintf("%s is not deleted: %v", name, errNotReady)}
	if s != nil {
		for _, w := range s.Resets() {
			lines = append(lines, fmt.Sprintf("  %s  %s\n    %s", w.On, w.Reason, strings.ReplaceAll(strings.TrimSpace(w.Message), "\n", "\n    ")))
		}
	}
	return errors.New(strings.Join(append(lines, "Completed steps are kept; the next run resumes."), "\n"))
}
