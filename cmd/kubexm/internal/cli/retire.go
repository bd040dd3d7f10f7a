// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// pools are the pools of declared hosts.
func (d *declared) pools() map[string]string {
	pools := make(map[string]string, len(d.Hosts))
	for i := range d.Hosts {
		pools[d.Hosts[i].Name] = objects.PoolOf(&d.Hosts[i])
	}
	return pools
}

// retire prepares that hosts which the config file has no more, or has elsewhere, leave the cluster. The user is asked. It
// returns what there was before. A cluster that was begun with another version is refused, and so are hosts that would be forgotten.
func (a *app) retire(
	ctx context.Context, c client.Client, d *declared, known *clusterdir.Inventory, yes bool,
) (*rollout.Snapshot, error) {
	s, err := rollout.Read(ctx, c, client.ObjectKey{Namespace: planner.Namespace, Name: d.Name})
	if err != nil {
		return nil, err
	}
	if has := s.Versions(); len(has) > 0 && !slices.Equal(has, []string{d.KubernetesVersion}) {
		return nil, usage("spec.kubernetes.version: %s is being made with %s: set it back, and upgrade the cluster when it is ready: kubexm upgrade cluster",
			d.Name, strings.Join(has, " and "))
	}
	if forgotten := d.forgotten(known, s); len(forgotten) > 0 {
		return nil, usage("spec.hosts: a plan was applied to %s, and no management plane has it, so nobody would reset it: declare it again, or reset it "+
			"first: kubexm reset host %s --cluster %s", strings.Join(forgotten, ", "), strings.Join(forgotten, " "), d.Name)
	}
	leaving := s.Leaving(d.pools())
	var names, controlPlane []string
	for i := range leaving {
		if objects.IsControlPlane(leaving[i].Labels[objects.PoolLabel]) {
			controlPlane = append(controlPlane, leaving[i].Name)
		}
		names = append(names, leaving[i].Name)
	}
	if len(controlPlane) > 0 && len(controlPlane) == s.ControlPlanes() {
		return nil, usage("spec.roleGroups.master: %s has all that the cluster knows, and no other control plane host has it yet: name it again beside others, "+
			"or delete the cluster first", strings.Join(controlPlane, ", "))
	}
	if len(names) > 0 && !yes {
		if err := a.confirm(ctx, fmt.Sprintf("%s: %s will be drained, leave the cluster and be reset.", d.Name, strings.Join(names, ", "))); err != nil {
			return nil, err
		}
	}
	return s, s.Release(ctx, c, leaving)
}

// deferred keeps what happens until it is to be shown: bars that are drawn would remove a question from the terminal.
type deferred struct {
	next event.Reader

	mu    sync.Mutex
	kept  []event.Event
	shown bool
}

// Read takes in an event.
func (d *deferred) Read(e event.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shown {
		d.kept = append(d.kept, e)
		return
	}
	d.next.Read(e)
}

// show has all that was kept be read, and all that follows.
func (d *deferred) show() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.kept {
		d.next.Read(e)
	}
	d.kept, d.shown = nil, true
}

// forgotten are the hosts that a plan was applied to, and that neither the config file nor the management plane has.
func (d *declared) forgotten(known *clusterdir.Inventory, s *rollout.Snapshot) []string {
	pools, inUse := d.pools(), s.InUse()
	return slices.DeleteFunc(known.Applied(), func(name string) bool {
		_, declared := pools[name]
		return declared || slices.Contains(inUse, name)
	})
}

// confirm asks the user, and refuses where nobody can be asked.
func (a *app) confirm(ctx context.Context, what string) error {
	if !a.Interactive {
		return usage("%s Give --yes to say that this is meant", what)
	}
	fmt.Fprint(a.Err, what+" Continue? [y/N] ")
	var answer string
	var err error
	read := make(chan struct{})
	go func() { // nothing ends a terminal's read but the process
		defer close(read)
		answer, err = bufio.NewReader(a.In).ReadString('\n')
	}()
	select {
	case <-read:
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // whatever was answered as well
		fmt.Fprintln(a.Err)
		return context.Cause(ctx)
	}
	if err != nil {
		return usage("no answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return usage("not confirmed: nothing was changed")
}
