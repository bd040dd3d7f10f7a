// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// still is for how long nothing must happen.
const still = 30 * time.Second

// TestUnknownMember: a member of etcd that no host of the cluster has is named, nothing is scaled until it is declared to be gone, and
// then it is removed: one that somebody has added by hand, and one whose host is off and whose objects were removed by force.
func TestUnknownMember(t *testing.T) {
	c := cluster{fleet.Start(t, fleet.Options{
		Pool: "mm", Subnet: lab.Subnet(t, "REMEDIATION_SUBNET"), Bundles: []string{lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")},
		ControlPlanes: 3, Spare: 1, DriftCheckInterval: often, ControlPlane: controlplanev1.KubexmControlPlaneSpec{Cluster: binary()},
	})}
	for _, part := range []struct {
		name string
		do   func(cluster)
	}{
		{"added by hand", cluster.findsAddedMember},
		{"its host is off and its objects are gone", cluster.findsLostMember},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.do(cluster{c.In(t)}) }) {
			t.FailNow() // what comes next would not tell anything
		}
	}
}

func (c cluster) findsAddedMember() {
	nobody := c.Pool.Hosts[0].Address
	nobody = "https://" + nobody[:strings.LastIndex(nobody, ".")] + ".250:2380"
	c.etcdctl(c.Pool.Hosts[0], "member", "add", "stranger", "--learner", "--peer-urls="+nobody)
	id := c.awaitStranger(nobody)
	c.Patch(c.controlPlane(), `{"spec":{"replicas":1}}`)
	c.blocks(clusterv1.ScalingDownCondition, 3)
	c.Patch(c.controlPlane(), `{"spec":{"replicas":3}}`)
	c.declareGone(id, nobody)
}

func (c cluster) findsLostMember() {
	h := c.Pool.Hosts[1]
	lost := "https://" + h.Address + ":2380"
	m := c.machineOn(h)
	if err := h.Kill(c.T.Context()); err != nil {
		c.T.Fatal(err)
	}
	c.Await(3*time.Minute, func(context.Context) error {
		c.Get(m.Name, m)
		if now := conditions.Get(m, snapshot.EtcdMemberHealthy); now == nil || now.Status == "True" {
			return fmt.Errorf("the Machine %s: %v", m.Name, now)
		}
		return nil
	})
	c.T.Logf("%s of %s: %s", snapshot.EtcdMemberHealthy, m.Name, conditions.GetMessage(m, snapshot.EtcdMemberHealthy))
	c.removeByForce(m)
	c.removeByForce(&bootstrapv1.KubexmConfig{ObjectMeta: fleet.Of(m.Spec.Bootstrap.ConfigRef.Name)})
	id := c.awaitStranger(lost)
	c.blocks(clusterv1.ScalingUpCondition, 2)
	c.declareGone(id, lost)
	c.Await(repairing, func(context.Context) error { return c.Unhealthy() })
	c.wantQuarantined(h.Name)
}

// removeByForce removes an object as somebody does who does not wait.
func (c cluster) removeByForce(object client.Object) {
	c.T.Helper()
	if err := c.API.Delete(c.T.Context(), object); client.IgnoreNotFound(err) != nil {
		c.T.Fatal(err)
	}
	c.Await(time.Minute, func(ctx context.Context) error {
		err := c.API.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%T %s is there still: %v", object, object.GetName(), err)
	})
}

// awaitStranger waits until the control plane names the member at a URL, and returns its ID.
func (c cluster) awaitStranger(url string) string {
	c.T.Helper()
	message, id := "", ""
	c.Await(3*time.Minute, func(context.Context) error {
		object := c.controlPlane()
		message = conditions.GetMessage(object, controlplanev1.EtcdClusterHealthyCondition)
		if !strings.Contains(message, url) || !strings.Contains(message, "to spec.cluster.etcd.goneMembers") {
			return fmt.Errorf("EtcdClusterHealthy does not name %s: %s", url, message)
		}
		return nil
	})
	c.T.Logf("as a person reads it:\n%s", message)
	for _, m := range c.members() {
		if m.PeerURL == url {
			id = m.ID
		}
	}
	if id == "" || !strings.Contains(message, fmt.Sprintf("%q", id)) {
		c.T.Fatalf("the member at %s has the ID %q, and that is not said", url, id)
	}
	return id
}

// blocks wants scaling to say that it waits for the unknown member, and no Machine to come or go.
func (c cluster) blocks(scaling string, machines int) {
	c.T.Helper()
	c.Await(time.Minute, func(context.Context) error {
		if message := conditions.GetMessage(c.controlPlane(), scaling); !strings.Contains(message, "which no host of the cluster has") {
			return fmt.Errorf("%s: %s", scaling, message)
		}
		return nil
	})
	select {
	case <-c.T.Context().Done():
	case <-time.After(still):
	}
	all := c.Machines()
	if len(all) != machines || slices.ContainsFunc(all, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }) {
		c.T.Fatalf("there are %d Machines, or one goes: want the %d that there were", len(all), machines)
	}
}

// declareGone wants the member to be removed once it is declared to be gone, and the declaration to do nothing more then.
func (c cluster) declareGone(id, url string) {
	c.T.Helper()
	c.Patch(c.controlPlane(), `{"spec":{"cluster":{"etcd":{"goneMembers":[%q]}}}}`, id)
	c.Await(3*time.Minute, func(context.Context) error {
		if now := conditions.Get(c.controlPlane(), controlplanev1.EtcdClusterHealthyCondition); now == nil || now.Status != "True" {
			return fmt.Errorf("EtcdClusterHealthy: %v", now)
		}
		return nil
	})
	if list := c.etcdctl(c.Pool.Hosts[0], "member", "list"); strings.Contains(list, url) {
		c.T.Errorf("the member at %s is there still:\n%s", url, list)
	}
	c.Patch(c.controlPlane(), `{"spec":{"cluster":{"etcd":{"goneMembers":null}}}}`)
}

func (c cluster) controlPlane() *controlplanev1.KubexmControlPlane {
	c.T.Helper()
	object := &controlplanev1.KubexmControlPlane{}
	c.Get(fleet.Name, object)
	return object
}

// members are etcd's, as the newest answer has them.
func (c cluster) members() []bootstrapv1.EtcdMemberStatus {
	c.T.Helper()
	newest := bootstrapv1.EtcdStatus{}
	for _, config := range c.Configs() {
		if said := config.Status.Etcd; len(said.Members) > 0 && newest.ObservedTime.Before(&said.ObservedTime) {
			newest = said
		}
	}
	return newest.Members
}

func (c cluster) machineOn(h *hosts.Host) *clusterv1.Machine {
	c.T.Helper()
	for _, m := range c.Machines() {
		if m.Status.NodeRef.Name == h.Name {
			return &m
		}
	}
	c.T.Fatalf("no Machine is on %s", h.Name)
	return nil
}

// etcdctl asks etcd on a host, as its administrator.
func (c cluster) etcdctl(h *hosts.Host, words ...string) string {
	c.T.Helper()
	const ssl = "/etc/kubexm/etcd/ssl/"
	out, err := h.Exec(c.T.Context(), append([]string{
		"/usr/local/bin/etcdctl", "--endpoints=https://127.0.0.1:2379",
		"--cacert=" + ssl + "ca.pem", "--cert=" + ssl + "admin-" + h.Name + ".pem", "--key=" + ssl + "admin-" + h.Name + "-key.pem",
	}, words...)...)
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}
