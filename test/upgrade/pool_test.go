// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestPool has a pool of three workers changed while it is in use: by hand, which is reported or repaired as the policy says; by a
// setting that restarts kubelets, one worker after the other; by one that fails, which reaches one worker; and by a version that does
// not serve what is in use, which reaches no host.
func TestPool(t *testing.T) {
	o := fleet.Options{
		Pool: "upgradepool", ControlPlanes: 1, Workers: 3, DriftCheckInterval: 15 * time.Second,
		Bundles: []string{lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")},
	}
	o.ControlPlane.Rollout.Strategy.Type = controlplanev1.InPlaceStrategy
	o.ControlPlane.Cluster = spec.Cluster{
		Kubernetes: spec.Kubernetes{
			Type: spec.KubernetesKubexm,
			// What the next version does not serve is off by default.
			APIServer: spec.APIServer{ExtraArgs: []spec.Arg{{Name: "runtime-config", Value: "networking.k8s.io/v1beta1=true"}}},
		},
		DriftPolicy: spec.DriftReport,
	}
	c := &careful{Fleet: fleet.Start(t, o)}
	for _, part := range []struct {
		name string
		do   func(*careful)
	}{
		{"drift is reported, and repaired", (*careful).drifts},
		{"one worker after the other", (*careful).takesTurns},
		{"a change that fails reaches one worker", (*careful).stops},
		{"a version that does not serve what is in use", (*careful).keepsAPIs},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.do(&careful{Fleet: c.In(t)}) }) {
			t.FailNow() // what comes next would not tell anything
		}
	}
}

func (c *careful) workers() []*hosts.Host { return c.Pool.Hosts[c.Options.ControlPlanes:] }

// config is what makes a host.
func (c *careful) config(h *hosts.Host) *bootstrapv1.KubexmConfig {
	c.T.Helper()
	for _, config := range c.Configs() {
		if config.Status.Host.Name == h.Name {
			return &config
		}
	}
	c.T.Fatalf("no KubexmConfig is for %s", h.Name)
	return nil
}

// drifts changes a file by hand: with the policy Report it is shown with its lines and left alone until somebody asks, with Repair it is
// repaired.
func (c *careful) drifts() {
	const file, line = "/etc/sysctl.d/99-kubexm-cri.conf", "vm.swappiness = 7"
	h := c.workers()[0]
	c.onHost(h, "echo '"+line+"' >>"+file)
	c.Await(2*time.Minute, func(context.Context) error {
		config := c.config(h)
		if conditions.GetReason(config, bootstrapv1.HostConvergedCondition) != bootstrapv1.DriftedReason {
			return fmt.Errorf("HostConverged of %s: %v", h.Name, conditions.Get(config, bootstrapv1.HostConvergedCondition))
		}
		return nil
	})
	config := c.config(h)
	shown := config.Status.Drift
	if len(shown) != 1 || shown[0].Resource != "file "+file || !slices.Contains(strings.Split(shown[0].Diff, "\n"), "-"+line) {
		c.T.Fatalf("it is shown as %q", shown)
	}
	c.T.Logf("as a person reads it: %s\n%s", conditions.GetMessage(config, bootstrapv1.HostConvergedCondition), shown[0].Diff)
	c.quiet() // longer than until the next look
	c.onHost(h, "grep -qx '"+line+"' "+file)

	repaired := func(context.Context) error {
		if out, err := h.Exec(c.T.Context(), "grep", "-x", line, file); err == nil {
			return fmt.Errorf("%s on %s has %s still", file, h.Name, out)
		}
		if config := c.config(h); len(config.Status.Drift) > 0 || !conditions.IsTrue(config, bootstrapv1.HostReadyCondition) {
			return fmt.Errorf("%v, drift %v", conditions.Get(config, bootstrapv1.HostReadyCondition), config.Status.Drift)
		}
		return nil
	}
	c.Patch(c.config(h), `{"metadata":{"annotations":{%q:%q}}}`, bootstrapv1.ConvergeAnnotation, time.Now().Format(time.RFC3339))
	c.Await(2*time.Minute, repaired)

	c.declares(`"driftPolicy":"Repair"`)
	known := c.Events(nil)
	c.onHost(h, "echo '"+line+"' >>"+file)
	c.Await(2*time.Minute, func(ctx context.Context) error {
		for _, e := range c.Events(known) {
			if e.Reason == bootstrapv1.DriftedReason {
				return repaired(ctx)
			}
		}
		return fmt.Errorf("there is no event %s", bootstrapv1.DriftedReason)
	})
}

// takesTurns changes a setting of all kubelets.
func (c *careful) takesTurns() {
	before := c.kubelets()
	c.declares(`"kubernetes":{"kubelet":{"maxPods":101}}`)
	most := 0
	c.Await(10*time.Minute, func(context.Context) error {
		most = max(most, c.turns())
		for _, h := range c.Pool.Hosts {
			if out, err := h.Exec(c.T.Context(), "grep", "-x", "maxPods: 101", "/var/lib/kubelet/config.yaml"); err != nil {
				return fmt.Errorf("the kubelet of %s has not changed: %s", h.Name, out)
			}
		}
		if n := c.turns(); n > 0 {
			return fmt.Errorf("%d workers have not settled", n)
		}
		return c.Unhealthy()
	})
	after := c.kubelets()
	var began []time.Duration
	for _, h := range c.workers() {
		if after[h.Name] == before[h.Name] {
			c.T.Errorf("the kubelet of %s was not restarted", h.Name)
		}
		began = append(began, after[h.Name])
	}
	slices.Sort(began)
	for i := 1; i < len(began); i++ {
		gap := began[i] - began[i-1]
		c.T.Logf("a kubelet was restarted %s after the last", gap.Round(time.Second))
		if gap < reconcilers.Settle {
			c.T.Errorf("a kubelet was restarted %s after another one's, which had not settled", gap)
		}
	}
	if most != 1 {
		c.T.Errorf("%d workers had a turn at once", most)
	}
}

// stops declares what no kubelet starts with, which one worker finds out, and takes it back.
func (c *careful) stops() {
	before := c.kubelets()
	c.declares(`"kubernetes":{"kubelet":{"extraArgs":[{"name":"no-such-flag","value":"true"}]}}`)
	var failed *hosts.Host
	message := ""
	c.Await(5*time.Minute, func(context.Context) error {
		waits := 0
		for _, h := range c.workers() {
			config := c.config(h)
			if conditions.GetReason(config, bootstrapv1.DisruptionAllowedCondition) == bootstrapv1.PoolStoppedReason {
				waits++
				message = conditions.GetMessage(config, bootstrapv1.DisruptionAllowedCondition)
			} else {
				failed = h
			}
		}
		if waits != c.Options.Workers-1 {
			return fmt.Errorf("%d workers say that the pool is stopped", waits)
		}
		return nil
	})
	c.T.Logf("as a person reads it:\n%s", message)
	if !strings.Contains(message, "the change failed on "+failed.Name) || !strings.Contains(message, "no-such-flag") {
		c.T.Errorf("it is not said that it failed on %s, and why", failed.Name)
	}
	c.quiet()
	after := c.kubelets()
	for _, h := range c.workers() {
		if h != failed && after[h.Name] != before[h.Name] {
			c.T.Errorf("the change failed on %s, and the kubelet of %s was restarted", failed.Name, h.Name)
		}
	}
	// It has what it had before.
	c.Await(2*time.Minute, func(context.Context) error {
		const line = `systemctl is-active kubelet && ! tr '\0' ' ' </proc/$(pidof kubelet)/cmdline | grep no-such-flag`
		if out, err := failed.Exec(c.T.Context(), "sh", "-c", line); err != nil {
			return fmt.Errorf("the kubelet of %s: %s: %w", failed.Name, out, err)
		}
		return nil
	})

	c.declares(`"kubernetes":{"kubelet":{"extraArgs":null}}`)
	c.Await(5*time.Minute, func(context.Context) error {
		if n := c.turns(); n > 0 {
			return fmt.Errorf("%d workers have not settled", n)
		}
		return c.Unhealthy()
	})
	after = c.kubelets()
	for _, h := range c.workers() {
		if h != failed && after[h.Name] != before[h.Name] {
			c.T.Errorf("what failed was taken back, and the kubelet of %s was restarted", h.Name)
		}
	}
}

// keepsAPIs declares a version that does not serve what an object was written by: no host follows before that is accepted. There is no
// bundle of that version, and it is taken back.
func (c *careful) keepsAPIs() {
	const next = "v1.37.0"
	version := c.Bundle.Version(artifact.Kubernetes)
	more := &networkingv1beta1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}}
	more.Spec.CIDRs = []string{"10.78.0.0/24"}
	by := metav1.CreateOptions{FieldManager: "helm"}
	if _, err := c.Workload().NetworkingV1beta1().ServiceCIDRs().Create(c.T.Context(), more, by); err != nil {
		c.T.Fatal(err)
	}
	before := marks(c.T, c.Pool.Hosts)
	object := &controlplanev1.KubexmControlPlane{ObjectMeta: fleet.Of(fleet.Name)}
	c.Patch(object, `{"spec":{"version":%q}}`, next)
	message := ""
	c.Await(2*time.Minute, func(context.Context) error {
		c.Get(fleet.Name, object)
		message = conditions.GetMessage(object, controlplanev1.PreflightPassedCondition)
		if conditions.GetReason(object, controlplanev1.PreflightPassedCondition) != controlplanev1.RemovedAPIsInUseReason {
			return fmt.Errorf("PreflightPassed: %s", message)
		}
		return nil
	})
	c.T.Logf("as a person reads it:\n%s", message)
	for _, want := range []string{
		"servicecidrs in networking.k8s.io/v1beta1", "1 objects are written by it, such as more (by helm)", "somebody has asked for it",
	} {
		if !strings.Contains(message, want) {
			c.T.Errorf("it does not say %q", want)
		}
	}
	c.quiet()
	if has := c.machineVersion(); has != version {
		c.T.Fatalf("the control plane's Machine has %s", has)
	}

	c.Patch(object, `{"metadata":{"annotations":{%q:%q}}}`, controlplanev1.AcceptedRemovedAPIsAnnotation, next)
	c.Await(2*time.Minute, func(context.Context) error {
		config := c.config(c.Pool.Hosts[0])
		if has := c.machineVersion(); has != next {
			return fmt.Errorf("the control plane's Machine has %s", has)
		}
		if said := hosthealth.Problem(config, bootstrapv1.PreflightPassedCondition,
			bootstrapv1.HostConvergedCondition); !strings.Contains(said.String(), next) {
			return fmt.Errorf("%s does not say that %s is missing: %q", config.Name, next, said)
		}
		return nil
	})
	c.Patch(object, `{"spec":{"version":%q}}`, version)
	c.Await(3*time.Minute, func(context.Context) error {
		c.Get(fleet.Name, object)
		if has := c.machineVersion(); has != version || object.Annotations[controlplanev1.AcceptedRemovedAPIsAnnotation] != "" {
			return fmt.Errorf("the control plane's Machine has %s, and it is accepted: %v", has, object.Annotations)
		}
		return c.Unhealthy()
	})
	c.untouched(before, c.Pool.Hosts)
}

// declares changes what all hosts share.
func (c *careful) declares(shared string) {
	c.T.Helper()
	c.Patch(&controlplanev1.KubexmControlPlane{ObjectMeta: fleet.Of(fleet.Name)}, "%s", `{"spec":{"cluster":{`+shared+`}}}`)
}

// turns is how many workers have a turn.
func (c *careful) turns() int {
	c.T.Helper()
	shared := &bootstrapv1.KubexmClusterConfig{}
	c.Get(fleet.Name, shared)
	others := func(t bootstrapv1.Turn) bool { return !strings.HasPrefix(t.Pool, "MachineDeployment/") }
	return len(slices.DeleteFunc(shared.Status.Turns, others))
}

// kubelets are when the hosts' were started, since the machine was, by the hosts' names.
func (c *careful) kubelets() map[string]time.Duration {
	c.T.Helper()
	all := map[string]time.Duration{}
	for _, h := range c.Pool.Hosts {
		out := c.onHost(h, "systemctl show --property ExecMainStartTimestampMonotonic --value kubelet")
		started, err := strconv.ParseInt(out, 10, 64)
		if err != nil {
			c.T.Fatal(err)
		}
		all[h.Name] = time.Duration(started) * time.Microsecond
	}
	return all
}

// machineVersion is that of the control plane's only Machine.
func (c *careful) machineVersion() string {
	c.T.Helper()
	for _, m := range c.Machines() {
		if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; is {
			return m.Spec.Version
		}
	}
	c.T.Fatal("the control plane has no Machine")
	return ""
}

// onHost runs a line on a host.
func (c *careful) onHost(h *hosts.Host, line string) string {
	c.T.Helper()
	out, err := h.Exec(c.T.Context(), "sh", "-euc", line)
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}
