// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"context"
	"fmt"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// unavailable is how many of a pool's hosts may be at once.
const unavailable = 3

// TestWindow has a pool of five workers, of which one is off, come to another version in place, in a window of three: the one that is off
// counts, so two at a time are upgraded. The last follows when it is back.
func TestWindow(t *testing.T) {
	newer := openBundle(t, "KUBEXM_BUNDLE", "bundle", "artifacts")
	o := fleet.Options{
		Pool: "upgradewindow", ControlPlanes: 1, Workers: 5,
		Bundles: []string{lab.Bundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4"), lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")},
	}
	o.ControlPlane.Cluster.Kubernetes.Type = spec.KubernetesKubexm
	o.ControlPlane.Rollout.Strategy.Type = controlplanev1.InPlaceStrategy
	c := &careful{Fleet: fleet.Start(t, o), version: newer.Version(artifact.Kubernetes)}
	known, began := c.Events(nil), time.Now()
	defer func() { t.Logf("events:\n%s", c.Told(known, began)) }()

	c.Patch(&controlplanev1.KubexmControlPlane{ObjectMeta: fleet.Of(fleet.Name)}, `{"spec":{"version":%q}}`, c.version)
	c.Await(5*time.Minute, func(context.Context) error {
		if err := c.have(1); err != nil {
			return err
		}
		return c.Unhealthy()
	})

	off := c.workers()[2]
	if err := off.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Await(3*time.Minute, func(context.Context) error {
		if m := c.machineOf(off); conditions.IsTrue(m, clusterv1.MachineAvailableCondition) {
			return fmt.Errorf("Machine %s is available still", m.Name)
		}
		return nil
	})
	c.Patch(&clusterv1.MachineDeployment{ObjectMeta: fleet.Of(fleet.Worker)}, `{
		"metadata":{"annotations":{%q:%q}},
		"spec":{"rollout":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":%d}}}}}`,
		inplace.VersionAnnotation, c.version, unavailable)
	most := 0
	c.Await(10*time.Minute, func(context.Context) error {
		most = max(most, c.upgrading(off))
		return c.have(1 + c.Options.Workers - 1)
	})
	if most != unavailable-1 {
		t.Errorf("at most %d workers were upgraded at once, want %d: one more is off", most, unavailable-1)
	}
	md := &clusterv1.MachineDeployment{}
	c.Await(time.Minute, func(context.Context) error {
		c.Get(fleet.Worker, md)
		if is := conditions.GetReason(md, inplace.UpgradingCondition); is != inplace.WaitingForMachinesReason {
			return fmt.Errorf("%s: %v", inplace.UpgradingCondition, conditions.Get(md, inplace.UpgradingCondition))
		}
		return nil
	})
	t.Logf("as a person reads it:\n%s", conditions.GetMessage(md, inplace.UpgradingCondition))
	if is := c.machineOf(off).Spec.Version; is == c.version {
		t.Errorf("the Machine of %s, which is off, was given %s", off.Name, is)
	}

	if err := off.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Await(5*time.Minute, func(context.Context) error {
		if err := c.have(1 + c.Options.Workers); err != nil {
			return err
		}
		c.Get(fleet.Worker, md)
		if is := md.Spec.Template.Spec.Version; is != c.version {
			return fmt.Errorf("the MachineDeployment makes Machines of %s", is)
		}
		return c.Unhealthy()
	})
}

// machineOf is the Machine of a host.
func (c *careful) machineOf(h *hosts.Host) *clusterv1.Machine {
	c.T.Helper()
	m := &clusterv1.Machine{}
	c.Get(c.config(h).Name, m)
	return m
}

// upgrading is how many workers but for one were given the version, and do not have it yet.
func (c *careful) upgrading(but *hosts.Host) int {
	n, versions := 0, c.versions()
	for _, h := range c.workers() {
		if h != but && versions[h.Name] != c.version && c.machineOf(h).Spec.Version == c.version {
			n++
		}
	}
	return n
}
