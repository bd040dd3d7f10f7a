// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/plane"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

func (a *app) runPlane() *cobra.Command {
	bundle, s := "", &source{}
	cmd := &cobra.Command{
		Use:   "plane [CLUSTER]",
		Short: "Run a cluster's management plane until interrupted, for kubectl and clusterctl",
		Long: `Runs the management plane that has the objects of a cluster (of the only one if none is named), and shows where its
kubeconfig is. While it runs, hosts are kept up to date, kubectl shows the objects, and clusterctl move takes them to another
management cluster, or brings them back. No other command works on the cluster in that time.`,
		Example: `  kubexm run plane prod
  clusterctl move --kubeconfig .kubexm/prod/plane/kubeconfig --to-kubeconfig management.kubeconfig --namespace default`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.onlyCluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			return a.keepPlane(cmd.Context(), s, name, bundle)
		},
	}
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "the config file, for hosts that need a password")
	s.addKeyFlags(cmd)
	s.addSerialFlag(cmd)
	cmd.Flags().StringVar(&bundle, "bundle", "", "the bundle that the cluster is made from (default the one that it was made from last)")
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}

// keepPlane runs a cluster's management plane until it is asked to end.
func (a *app) keepPlane(ctx context.Context, s *source, name, path string) error {
	dir, known, err := a.known(name)
	if err != nil {
		return err
	}
	switch {
	case !managed(dir), known.IsRecovered():
		return usage("cluster %s has no management plane: kubexm create cluster makes one", name)
	case known.Upgrading != "":
		return usage("cluster %s is being upgraded to %s: finish that first: kubexm upgrade cluster", name, known.Upgrading)
	}
	bundle, err := a.openBundle(ctx, cmp.Or(path, known.Bundle), known.KubernetesVersion)
	if errors.Is(err, os.ErrNotExist) {
		return usage("%w\nRemedy: the management plane's programs are in the bundle: give its place with --bundle", err)
	}
	if err != nil {
		return err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	_, hosts, err := a.reach(s, dir)
	if err != nil {
		return err
	}
	tools := planner.Tools{Hosts: hosts, Owners: inventory{known}.owners(dir, nil)}
	if err := a.guard(dir, tools, s.stateIsCurrent).Begin(ctx, nil); err != nil {
		return err
	}
	return a.showing(inventory{known}.about, func(reader event.Reader) (string, error) {
		p, err := plane.Start(ctx, plane.Options{
			Dir: dir.Plane(), Namespace: planner.Namespace, Hosts: len(known.Hosts), Bundle: bundle, Reader: reader,
			Holder: planner.Holder(), OpenSSH: &a.openSSH,
		})
		if err != nil {
			return "", err
		}
		defer a.stop(ctx, p)
		a.note(fmt.Sprintf("The management plane of %s runs until it is interrupted.   export KUBECONFIG=%s", name, filepath.Join(dir.Plane(), "kubeconfig")))
		if unmovable, err := withoutCredentials(ctx, p.Client()); err != nil {
			return "", err
		} else if len(unmovable) > 0 {
			a.warn(fmt.Sprintf("another management cluster reaches no host by these Secrets, as it has neither your SSH agent nor your keys: %s. "+
				"Before clusterctl move, set ssh-privatekey or password in each.", strings.Join(unmovable, ", ")))
		}
		select {
		case <-p.Done():
			return "", p.Err()
		case <-ctx.Done(): // as it was asked to
			return fmt.Sprintf("The management plane of %s has ended.", name), nil
		}
	})
}

// withoutCredentials are the Secrets of hosts and jump hosts that are logged in to with what OpenSSH has here.
func withoutCredentials(ctx context.Context, c client.Client) ([]string, error) {
	secrets := &corev1.SecretList{}
	if err := c.List(ctx, secrets, client.InNamespace(planner.Namespace)); err != nil {
		return nil, fmt.Errorf("Secrets of the management plane: %w", err)
	}
	var names []string
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if s.Data[infra.KeyAgent] != nil && len(s.Data[infra.KeyPrivateKey])+len(s.Data[infra.KeyPassword]) == 0 {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// requireHere refuses to go on with a cluster that was moved to another management cluster. Who has not been ready yet, or was
// recovered, may have no objects for other reasons.
func requireHere(ctx context.Context, c client.Client, dir clusterdir.Dir, known *clusterdir.Inventory) error {
	if known == nil || known.ReadyTime.IsZero() || known.IsRecovered() {
		return nil
	}
	s, err := rollout.Read(ctx, c, client.ObjectKey{Namespace: planner.Namespace, Name: dir.Cluster})
	if err != nil || !s.Elsewhere() {
		return err
	}
	return usage("cluster %s is not in its management plane: another management cluster has it and its hosts now (clusterctl move). "+
		"Go on there, or move it back while this runs: kubexm run plane %s", dir.Cluster, dir.Cluster)
}
