// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// writers is how many copies are written at once.
const writers = 16

// Seed gives the fleet a worker on each of these hosts: copies of the one that has come up, with all that was written down of it, but
// that its host was brought anywhere by a run. Cluster API would make them one after the other, which takes seconds for each. It
// has the Cluster paused meanwhile, as for clusterctl move, and looks after all of them when Seed returns. No manager may run.
func (f *Fleet) Seed(ctx context.Context, hosts ...Host) error {
	if err := f.pause(ctx, true); err != nil {
		return err
	}
	o, err := f.original(ctx)
	if err != nil {
		return err
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, h := range hosts {
		group.Go(func() error {
			if err := f.copy(inGroup, o, h); err != nil {
				return fmt.Errorf("a worker on %s: %w", h.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	set := &clusterv1.MachineSet{}
	if err := f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.machineSet}, set); err != nil {
		return err
	}
	replicas := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, int(*set.Spec.Replicas)+len(hosts))
	// The set first: its MachineDeployment would scale it else.
	for _, scaled := range []client.Object{set, &clusterv1.MachineDeployment{ObjectMeta: named(workers)}} {
		if err := f.api.Patch(ctx, scaled, client.RawPatch(types.MergePatchType, replicas)); err != nil {
			return err
		}
	}
	// Not before Cluster API says of each that it is paused: it has them all in its caches then, and makes no more.
	if err := f.pause(ctx, true); err != nil {
		return err
	}
	return f.pause(ctx, false)
}

// pause has the Cluster paused or not, and returns when Cluster API says so of all that it looks after. (A control plane's Machine it
// does not look at for that.)
func (f *Fleet) pause(ctx context.Context, on bool) error {
	paused := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, on))
	if err := f.api.Patch(ctx, &clusterv1.Cluster{ObjectMeta: named(cluster)}, paused); err != nil {
		return err
	}
	others := ""
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		machines, sets, deployments := &clusterv1.MachineList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineDeploymentList{}
		for _, list := range []client.ObjectList{machines, sets, deployments} {
			if err := f.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return false, err
			}
		}
		var all []conditions.Getter
		for i := range machines.Items {
			if m := &machines.Items[i]; m.Labels[pool] == workers {
				all = append(all, m)
			}
		}
		for i := range sets.Items {
			all = append(all, &sets.Items[i])
		}
		for i := range deployments.Items {
			all = append(all, &deployments.Items[i])
		}
		as := 0
		for _, o := range all {
			if conditions.IsTrue(o, clusterv1.PausedCondition) == on {
				as++
			}
		}
		others = fmt.Sprintf("Cluster API says of %d of %d objects that they are paused: %t", as, len(all), on)
		return as == len(all), nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, others)
	}
	return nil
}

// original is the worker that others are copies of.
type original struct {
	host                Host
	machine, machineSet string
	// parts are its objects as JSON. Those come first whose UIDs others have.
	parts []part
}

type part struct {
	json string
	uid  types.UID
}

func (f *Fleet) original(ctx context.Context) (original, error) {
	o := original{host: f.worker}
	all := &clusterv1.MachineList{}
	if err := f.api.List(ctx, all, client.InNamespace(namespace), client.MatchingLabels{pool: workers}); err != nil {
		return o, err
	}
	var machine *clusterv1.Machine
	for i := range all.Items {
		if m := &all.Items[i]; m.Status.NodeRef.Name == f.worker.Name {
			machine = m
		}
	}
	if machine == nil {
		return o, fmt.Errorf("no Machine has the Node %s: let it come up before others are made as it is", f.worker.Name)
	}
	o.machine, o.machineSet = machine.Name, machine.Labels[clusterv1.MachineSetNameLabel]
	for _, object := range []client.Object{
		&infrav1.KubexmHost{ObjectMeta: named(f.worker.Name)}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.worker.Name}},
		&clusterv1.Machine{ObjectMeta: named(machine.Name)},
		&infrav1.KubexmMachine{ObjectMeta: named(machine.Spec.InfrastructureRef.Name)},
		&bootstrapv1.KubexmConfig{ObjectMeta: named(machine.Spec.Bootstrap.ConfigRef.Name)},
		&corev1.Secret{ObjectMeta: named(*machine.Spec.Bootstrap.DataSecretName)},
	} {
		p, err := f.part(ctx, object)
		if err != nil {
			return o, err
		}
		o.parts = append(o.parts, p)
	}
	return o, nil
}

// part is an object as it is to be copied.
func (f *Fleet) part(ctx context.Context, of client.Object) (part, error) {
	kind, err := f.api.GroupVersionKindFor(of)
	if err != nil {
		return part{}, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	if err := f.api.Get(ctx, client.ObjectKeyFromObject(of), found); err != nil {
		return part{}, err
	}
	p := part{uid: found.GetUID()}
	for _, own := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(found.Object, "metadata", own)
	}
	if _, config := of.(*bootstrapv1.KubexmConfig); config {
		unstructured.RemoveNestedField(found.Object, "status", "lastRun") // by which Await sees that a manager has had its own
	}
	text, err := json.Marshal(found)
	p.json = string(text)
	return p, err
}

// copy writes a copy of the original, on that host.
func (f *Fleet) copy(ctx context.Context, o original, on Host) error {
	names := []string{o.machine, o.machineSet + "-" + on.Name, o.host.Name, on.Name, o.host.Address, on.Address}
	for _, p := range o.parts {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(strings.NewReplacer(names...).Replace(p.json))); err != nil {
			return err
		}
		kind, status := object.GetKind(), object.Object["status"]
		if err := f.api.Create(ctx, object); err != nil {
			return fmt.Errorf("create the %s %s: %w", kind, object.GetName(), err)
		}
		names = append(names, string(p.uid), string(object.GetUID()))
		if status == nil {
			continue
		}
		written, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		// A patch: Cluster API says at the same time that it is paused.
		if err := f.api.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, written)); err != nil {
			return fmt.Errorf("status of the %s %s: %w", kind, object.GetName(), err)
		}
	}
	return nil
}
