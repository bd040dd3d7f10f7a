// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
)

// TestTheirsIsMoved adopts a cluster that kubeadm has made, and has a management cluster take it over by clusterctl move. Hosts are not
// touched by that. From then on they are declared there: the worker is taken out, and the cluster is deleted.
func TestTheirsIsMoved(t *testing.T) {
	e := start(t, "adopt-move", 2)
	e.write(strings.ReplaceAll(adoptedSpec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
	master, worker := e.Hosts[0], e.Hosts[1]
	e.byKubeadm(foreign{masters: e.Hosts[:1], workers: e.Hosts[1:]})
	e.ends(0, append([]string{"adopt", "--yes"}, e.declared()...), "is adopted")
	e.ends(0, e.CreateArgs())
	was, pods := e.running(), e.podsNow()

	t.Log("moved")
	from, stop, err := e.Plane(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	api := e.movesFrom(from)
	e.await("the hosts are what they must be", func(ctx context.Context) error { return settled(ctx, api, 2) })
	e.stays(was, pods)
	if err := stop(); err != nil {
		t.Error(err)
	}
	e.ends(2, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts}, "another management cluster has it")

	t.Log("the worker goes")
	deployments := &clusterv1.MachineDeploymentList{}
	if err := api.List(t.Context(), deployments); err != nil || len(deployments.Items) != 1 {
		t.Fatalf("%d MachineDeployments, %v", len(deployments.Items), err)
	}
	scaled := deployments.Items[0].DeepCopy()
	scaled.Spec.Replicas = new(int32)
	if err := api.Patch(t.Context(), scaled, client.MergeFrom(&deployments.Items[0])); err != nil {
		t.Fatal(err)
	}
	e.await("one host is left", func(ctx context.Context) error { return settled(ctx, api, 1) })
	e.isFree(worker, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")

	t.Log("deleted")
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = "default", e.Name
	if err := api.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	e.await("the Cluster is gone", func(ctx context.Context) error {
		return client.IgnoreNotFound(awaitGone(api.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)))
	})
	e.isFree(master, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")
}

// awaitGone turns what was found into an error.
func awaitGone(err error) error {
	if err == nil {
		return fmt.Errorf("it is there still")
	}
	return err
}

// movesFrom moves all that a management cluster has to one that is made for it, which runs until the test ends. It returns its API.
func (e *environment) movesFrom(kubeconfig string) client.Client {
	e.t.Helper()
	ctx, dir := e.t.Context(), filepath.Join(e.Dir, "elsewhere")
	store, err := artifact.OpenStore("")
	if err != nil {
		e.t.Fatal(err)
	}
	plane, err := management.Start(ctx, dir, "", e.bundle, store)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := plane.Stop(ctx); err != nil {
			e.t.Error(err)
		}
	})
	config := filepath.Join(e.Dir, "clusterctl.yaml")
	if err := os.WriteFile(config, []byte("providers: []\n"), 0o600); err != nil {
		e.t.Fatal(err)
	}
	mover, err := clusterctl.New(ctx, config)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := mover.Move(ctx, clusterctl.MoveOptions{
		Namespace: "default", FromKubeconfig: clusterctl.Kubeconfig{Path: kubeconfig},
		ToKubeconfig: clusterctl.Kubeconfig{Path: management.Kubeconfig(dir)},
	}); err != nil {
		e.t.Fatal(err)
	}
	return plane.Client()
}

// settled is why the Cluster is not made of so many hosts that are what they must be, nil if it is.
func settled(ctx context.Context, api client.Client, hosts int) error {
	configs := &bootstrapv1.KubexmConfigList{}
	if err := api.List(ctx, configs); err != nil {
		return err
	}
	if len(configs.Items) != hosts {
		return fmt.Errorf("there are %d KubexmConfigs", len(configs.Items))
	}
	for i := range configs.Items {
		c := &configs.Items[i]
		last := c.Status.Operation(bootstrapv1.ConvergeOperation)
		if last.Outcome != bootstrapv1.RunSucceeded || !conditions.IsTrue(c, bootstrapv1.HostReadyCondition) {
			return fmt.Errorf("%s: %s %s, %v", c.Name, last.Outcome, last.Message, c.Status.Conditions)
		}
	}
	return nil
}

func (e *environment) await(what string, wrong func(context.Context) error) {
	e.t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(e.t.Context(), time.Second, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = wrong(ctx)
		return last == nil, nil
	}); err != nil {
		e.t.Fatalf("%s: %v", what, last)
	}
}
