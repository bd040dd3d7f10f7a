// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// still is for how long nothing must happen that has not been agreed to.
const still = 20 * time.Second

// TestDisruption has a cluster follow another version in place, by objects: nothing begins before the maintenance window opens, the
// first control plane host is a canary, and each worker waits for its own approval, one that is named first.
func TestDisruption(t *testing.T) {
	newer := openBundle(t, "KUBEXM_BUNDLE", "bundle", "artifacts")
	o := fleet.Options{
		Pool: "upgradecareful", ControlPlanes: 3, Workers: 2,
		Bundles: []string{lab.Bundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4"), lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")},
	}
	o.ControlPlane.Cluster = spec.Cluster{
		Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubexm}, Etcd: spec.Etcd{Type: spec.EtcdKubexm},
		LoadBalancer: spec.LoadBalancer{Type: spec.LoadBalancerNodeLocal},
	}
	o.ControlPlane.Rollout.Strategy = controlplanev1.RolloutStrategy{
		Type:    controlplanev1.InPlaceStrategy,
		InPlace: controlplanev1.InPlace{Canary: controlplanev1.Canary{Approval: spec.ApprovalRequired}},
	}
	c := &careful{Fleet: fleet.Start(t, o), version: newer.Version(artifact.Kubernetes)}
	known, began := c.Events(nil), time.Now()
	defer func() { t.Logf("events:\n%s", c.Told(known, began)) }()
	c.awaitsWindow()
	c.followsCanary()
	c.workersAreApproved()
}

// careful is a cluster that is brought to a version.
type careful struct {
	*fleet.Fleet
	version string
}

// awaitsWindow declares the version, and a window that opens soon: until then no host is touched.
func (c *careful) awaitsWindow() {
	opens := time.Now().UTC().Truncate(time.Minute).Add(3 * time.Minute)
	before := marks(c.T, c.Pool.Hosts)
	c.Patch(&controlplanev1.KubexmControlPlane{ObjectMeta: fleet.Of(fleet.Name)}, `{"spec":{"version":%q,"cluster":{"disruption":{
		"maintenanceWindows":[{"start":"%d %d * * *","durationMinutes":60}]}}}}`, c.version, opens.Minute(), opens.Hour())
	message := ""
	c.Await(time.Minute, func(context.Context) error {
		for _, config := range c.Configs() {
			if conditions.GetReason(&config, bootstrapv1.DisruptionAllowedCondition) == bootstrapv1.OutsideMaintenanceWindowReason {
				message = conditions.GetMessage(&config, bootstrapv1.DisruptionAllowedCondition)
				return nil
			}
		}
		return fmt.Errorf("no host waits for the window")
	})
	c.T.Logf("as a person reads it:\n%s", message)
	select {
	case <-c.T.Context().Done():
	case <-time.After(time.Until(opens) - 5*time.Second):
	}
	c.untouched(before, c.Pool.Hosts)
	if now := time.Now(); now.After(opens) {
		c.T.Fatalf("the hosts were observed %s after the window had opened", now.Sub(opens))
	}
	c.Await(5*time.Minute, func(context.Context) error {
		return c.have(1)
	})
	c.T.Logf("the first host has %s %.0f s after the window has opened", c.version, time.Since(opens).Seconds())
}

// followsCanary wants the others to wait until somebody agrees.
func (c *careful) followsCanary() {
	object := &controlplanev1.KubexmControlPlane{}
	c.Await(2*time.Minute, func(context.Context) error {
		c.Get(fleet.Name, object)
		if now := conditions.Get(object, controlplanev1.DisruptionAllowedCondition); now == nil ||
			now.Reason != controlplanev1.WaitingForApprovalReason {
			return fmt.Errorf("KubexmControlPlane: %v", now)
		}
		return c.Unhealthy()
	})
	message := conditions.GetMessage(object, controlplanev1.DisruptionAllowedCondition)
	c.T.Logf("as a person reads it:\n%s", message)
	var others []*hosts.Host
	for _, h := range c.Pool.Hosts {
		if c.versions()[h.Name] != c.version {
			others = append(others, h)
		}
	}
	if len(others) != len(c.Pool.Hosts)-1 {
		c.T.Fatalf("want one canary, got %v", c.versions())
	}
	before := marks(c.T, others)
	c.quiet()
	c.untouched(before, others)

	began := time.Now()
	c.approve(object, controlplanev1.ApprovedDisruptionAnnotation, message)
	c.Await(10*time.Minute, func(context.Context) error {
		if err := c.have(c.Options.ControlPlanes); err != nil {
			return err
		}
		return c.Unhealthy()
	})
	c.T.Logf("the others have %s %.0f s after that was agreed to", c.version, time.Since(began).Seconds())
}

// workersAreApproved has workers follow in place, the last of them first, each when somebody agrees to what would be done to it.
func (c *careful) workersAreApproved() {
	c.Patch(&controlplanev1.KubexmControlPlane{ObjectMeta: fleet.Of(fleet.Name)},
		`{"spec":{"cluster":{"disruption":{"approval":"Required","maintenanceWindows":null}}}}`)
	workers := slices.Clone(c.Pool.Hosts[c.Options.ControlPlanes:])
	slices.Reverse(workers)
	c.Patch(&clusterv1.MachineDeployment{ObjectMeta: fleet.Of(fleet.Worker)},
		`{"metadata":{"annotations":{"controlplane.cluster.x-k8s.io/in-place-version":%q,"controlplane.cluster.x-k8s.io/in-place-canary":%q}}}`, c.version, workers[0].Name)
	for i, h := range workers {
		config := &bootstrapv1.KubexmConfig{}
		c.Await(3*time.Minute, func(context.Context) error {
			for _, other := range c.Configs() {
				reason := conditions.GetReason(&other, bootstrapv1.DisruptionAllowedCondition)
				switch {
				case other.Status.Host.Name == h.Name && reason == bootstrapv1.WaitingForApprovalReason:
					config = &other
					return nil
				case other.Status.Host.Name != h.Name && reason != "":
					return fmt.Errorf("it is %s that waits: %s", other.Status.Host.Name, reason)
				}
			}
			return fmt.Errorf("%s does not wait for approval", h.Name)
		})
		message := conditions.GetMessage(config, bootstrapv1.DisruptionAllowedCondition)
		c.T.Logf("as a person reads it:\n%s", message)
		before := marks(c.T, workers[i:])
		c.quiet()
		c.untouched(before, workers[i:])
		c.approve(config, bootstrapv1.ApprovedDisruptionAnnotation, message)
		c.Await(5*time.Minute, func(context.Context) error {
			if err := c.have(c.Options.ControlPlanes + i + 1); err != nil {
				return err
			}
			return c.Unhealthy()
		})
	}
	c.Await(time.Minute, func(context.Context) error {
		md := &clusterv1.MachineDeployment{}
		c.Get(fleet.Worker, md)
		if md.Spec.Template.Spec.Version != c.version {
			return fmt.Errorf("the MachineDeployment makes Machines of %s", md.Spec.Template.Spec.Version)
		}
		return nil
	})
}

// quiet lets the time pass in which nothing must happen.
func (c *careful) quiet() {
	select {
	case <-c.T.Context().Done():
	case <-time.After(still):
	}
}

// untouched wants hosts to be as they were.
func (c *careful) untouched(before map[string]string, of []*hosts.Host) {
	c.T.Helper()
	for name, mark := range marks(c.T, of) {
		if mark != before[name] {
			c.T.Fatalf("%s was touched, which nobody has agreed to yet:\n%s\n%s", name, before[name], mark)
		}
	}
}

var digest = regexp.MustCompile(`approved-disruption=([0-9a-f]{16}) `)

// approve agrees to what is shown.
func (c *careful) approve(object client.Object, annotation, shown string) {
	c.T.Helper()
	found := digest.FindStringSubmatch(shown)
	if len(found) != 2 {
		c.T.Fatalf("nothing is shown that can be agreed to: %s", shown)
	}
	c.Patch(object, `{"metadata":{"annotations":{%q:%q}}}`, annotation, found[1])
}

// versions are the hosts' versions of Kubernetes.
func (c *careful) versions() map[string]string {
	versions := map[string]string{}
	for _, config := range c.Configs() {
		versions[config.Status.Host.Name] = config.Status.KubernetesVersion
	}
	return versions
}

// have is whether so many hosts have the version.
func (c *careful) have(n int) error {
	versions := c.versions()
	maps.DeleteFunc(versions, func(_, version string) bool { return version != c.version })
	if len(versions) != n {
		return fmt.Errorf("%d hosts have %s, not %d", len(versions), c.version, n)
	}
	return nil
}
