// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/plane"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
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
		Use:   "cluster NAME | -f config.yaml",
		Short: "Delete a cluster and reset its hosts",
		Long: `Deletes the cluster with all that runs in it. Each host is reset to what it was before kubexm first changed it: files,
units, kernel settings, swap, packages. The cluster's API need not answer for that; its hosts must.

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

// clusterName is the cluster that a command line names, itself or by a config file.
func clusterName(args []string, file string) (string, error) {
	switch {
	case len(args) == 1 && file != "":
		return "", usage("give the cluster's name or its config file, not both")
	case len(args) == 1:
		return args[0], nil
	case file == "":
		return "", usage("give the cluster's name, or its config file (-f)")
	}
	c, _, err := config.Load(file, nil)
	if err != nil {
		return "", usageError{err}
	}
	return c.Name, nil
}

func (a *app) delete(ctx context.Context, o *deleteOptions, name string) error {
	began := time.Now()
	dir, err := clusterdir.Of(a.stateRoot, name)
	if err != nil {
		return usageError{err}
	}
	known, err := dir.Inventory()
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
		if err := a.confirm(fmt.Sprintf("Cluster %s will be deleted, and %s reset.%s", name, count(len(known.Hosts), "host"), adopted)); err != nil {
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
	return a.showing(inventory{known}.about, func(reader event.Reader) (string, error) {
		// What a plane has that was to take in a recovered cluster, and was cut, is not all of it.
		if managed(dir) && !known.IsRecovered() {
			err = a.deleteObjects(ctx, o, dir, known, reader)
		} else {
			err = a.undo(ctx, &o.source, dir, nil, reader)
		}
		if err != nil {
			return "", err
		}
		if err := dir.Remove(); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is deleted: %s reset in %s.", name, count(len(known.Hosts), "host"), seconds(time.Since(began))), nil
	})
}

// undo resets hosts without a management plane: all, or those named.
func (a *app) undo(ctx context.Context, s *source, dir clusterdir.Dir, names []string, reader event.Reader) error {
	known, hosts, err := a.reach(s, dir)
	if err != nil {
		return err
	}
	if names == nil {
		for _, h := range known.Hosts {
			names = append(names, h.Name)
		}
	}
	_, err = planner.Tools{Hosts: hosts, Owners: known.owners(dir, s.adopt), Reader: reader}.Engine().Undo(ctx, engine.Undo{
		Intent: "ResetNode", Cluster: dir.Cluster, Hosts: names,
	})
	return err
}

// deleteObjects deletes the cluster's objects in its management plane, and waits until all hosts are reset.
func (a *app) deleteObjects(ctx context.Context, o *deleteOptions, dir clusterdir.Dir, known *clusterdir.Inventory, reader event.Reader) error {
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
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := p.Client().Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return err
	}
	return awaitGone(ctx, p, key, o.adopt)
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
