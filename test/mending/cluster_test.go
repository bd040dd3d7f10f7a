// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package mending

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
)

const (
	namespace   = "fleet"
	clusterName = "mending"
	// controlPlane and worker are values of the label role of the hosts that a control plane and that workers may have.
	controlPlane, worker = "control-plane", "worker"
	// stopping is how long the end of everything may take.
	stopping = 2 * time.Minute
)

// size is how many hosts a cluster has; there is one more.
type size struct{ controlPlanes, workers int }

func (s size) hosts() int { return s.controlPlanes + s.workers }

// cluster is a cluster of one's own, with all that looks after it.
type cluster struct {
	t         *testing.T
	size      size
	dir, logs string
	bundle    *artifact.Bundle
	store     *artifact.Store
	pool      *hosts.Pool
	plane     *embedded.Plane
	api       client.Client
}

// start makes hosts and a management cluster that looks at them so often, and waits for a healthy cluster.
func start(t *testing.T, pool string, shared spec.Cluster, size size, lookEvery time.Duration) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubexm-mending-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("state and logs are left in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, size: size, dir: dir, logs: filepath.Join(dir, "host-logs")}
	c.store, err = artifact.OpenStore("")
	must(t, err)
	path, err := filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")))
	must(t, err)
	c.bundle, err = artifact.Open(t.Context(), path, c.store)
	must(t, err)
	c.startHosts(pool)
	c.startPlane(lookEvery)
	t.Cleanup(c.stopPlane)

	began := time.Now()
	c.declare(shared)
	c.awaitHealthy(10 * time.Minute)
	t.Logf("the cluster is healthy after %.1f s", time.Since(began).Seconds())
	return c
}

func (c *cluster) startHosts(pool string) {
	var subnet netip.Prefix
	if text := os.Getenv("MENDING_SUBNET"); text != "" {
		var err error
		subnet, err = netip.ParsePrefix(text)
		must(c.t, err)
	}
	// What an earlier run that was killed has left.
	must(c.t, hosts.Remove(c.t.Context(), pool))
	var err error
	c.pool, err = hosts.Start(c.t.Context(), hosts.Options{
		Name: pool, Count: c.size.hosts() + 1, Subnet: subnet, Dir: filepath.Join(c.dir, "hosts"), Log: c.t.Logf,
	})
	must(c.t, err)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		if err := c.pool.Stop(ctx); err != nil {
			c.t.Error(err)
		}
	})
}

func (c *cluster) startPlane(lookEvery time.Duration) {
	c.t.Helper()
	var err error
	c.plane, err = management.Start(c.t.Context(), filepath.Join(c.dir, "plane"), namespace, c.bundle, c.store, func(o *bootstrapsetup.Options) {
		o.LookEvery, o.Logs = lookEvery, c.logs
	})
	must(c.t, err)
	c.api = c.plane.Client()
}

func (c *cluster) stopPlane() {
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	if err := c.plane.Stop(ctx); err != nil {
		c.t.Error(err)
	}
}

// declare declares the cluster.
func (c *cluster) declare(shared spec.Cluster) {
	c.t.Helper()
	c.create(c.inventory()...)
	object := &controlplanev1.KubexmControlPlane{ObjectMeta: of(clusterName), Spec: controlplanev1.KubexmControlPlaneSpec{
		Replicas: ptr.To(int32(c.size.controlPlanes)), Version: c.bundle.Version("kubernetes"), Cluster: shared,
		// As short as they can be, but for tests of nobody else.
		Remediation: controlplanev1.Remediation{
			ConvergeTimeoutSeconds: ptr.To[int32](60), RebootTimeoutSeconds: ptr.To[int32](180), HostResetTimeoutSeconds: ptr.To[int32](30),
			MinHealthyPeriodSeconds: ptr.To[int32](30),
		},
	}}
	object.Spec.MachineTemplate.Spec.InfrastructureRef = machines(controlPlane)
	c.create(
		&clusterv1.Cluster{ObjectMeta: of(clusterName), Spec: clusterv1.ClusterSpec{
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: clusterName},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: clusterName},
		}},
		&infrav1.KubexmCluster{ObjectMeta: of(clusterName)}, hostsOf(controlPlane), object,
		healthCheck(controlPlane, clusterv1.MachineControlPlaneLabel, clusterv1.MachineHealthCheckRemediationTemplateReference{}),
	)
	if c.size.workers > 0 {
		c.declareWorkers()
	}
}

// declareWorkers declares a MachineDeployment, whose hosts are mended before its Machines are replaced.
func (c *cluster) declareWorkers() {
	c.t.Helper()
	md := &clusterv1.MachineDeployment{ObjectMeta: of(worker), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: clusterName, Replicas: ptr.To(int32(c.size.workers)),
	}}
	md.Spec.Template.Labels = map[string]string{worker: ""}
	md.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: clusterName, Version: c.bundle.Version("kubernetes"), InfrastructureRef: machines(worker),
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: worker,
		}},
	}
	c.create(&bootstrapv1.KubexmConfigTemplate{ObjectMeta: of(worker)}, hostsOf(worker), md,
		&bootstrapv1.KubexmRemediationTemplate{ObjectMeta: of(worker), Spec: bootstrapv1.KubexmRemediationTemplateSpec{
			Template: bootstrapv1.KubexmRemediationTemplateResource{Spec: bootstrapv1.KubexmRemediationSpec{
				ConvergeTimeoutSeconds: ptr.To[int32](60), RebootTimeoutSeconds: ptr.To[int32](180), HostResetTimeoutSeconds: ptr.To[int32](30),
				MinHealthyPeriodSeconds: ptr.To[int32](30),
			}},
		}},
		healthCheck(worker, worker, clusterv1.MachineHealthCheckRemediationTemplateReference{
			APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubexmRemediationTemplate", Name: worker,
		}),
	)
}

// inventory are the hosts' objects. The one to spare is for workers where there are any.
func (c *cluster) inventory() []client.Object {
	c.t.Helper()
	key, err := os.ReadFile(c.pool.Hosts[0].KeyPath)
	must(c.t, err)
	objects := []client.Object{&corev1.Secret{ObjectMeta: of("ssh"), Data: map[string][]byte{infra.KeyPrivateKey: key}}}
	for i, h := range c.pool.Hosts {
		object := &infrav1.KubexmHost{ObjectMeta: of(h.Name), Spec: infrav1.KubexmHostSpec{
			Address: h.Address, SSH: infrav1.SSH{
				User: h.User, CredentialsRef: infrav1.CredentialsReference{Name: "ssh"}, HostKey: cryptossh.FingerprintSHA256(h.HostKey),
			},
		}}
		object.Labels = map[string]string{"role": controlPlane}
		if i >= c.size.controlPlanes && c.size.workers > 0 {
			object.Labels["role"] = worker
		}
		objects = append(objects, object)
	}
	return objects
}

func of(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// machines and hostsOf are the template of KubexmMachines on hosts of a role.
func machines(role string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: role}
}

func hostsOf(role string) *infrav1.KubexmMachineTemplate {
	template := &infrav1.KubexmMachineTemplate{ObjectMeta: of(role)}
	template.Spec.Template.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}
	return template
}

// healthCheck finds Machines unhealthy whose Nodes have not been ready for 20 s.
func healthCheck(name, label string, remediation clusterv1.MachineHealthCheckRemediationTemplateReference) *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{ObjectMeta: of(name), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: clusterName, Selector: metav1.LabelSelector{MatchLabels: map[string]string{label: ""}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To[int32](1800),
			UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](20)},
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](20)},
			},
		},
		Remediation: clusterv1.MachineHealthCheckRemediation{TemplateRef: remediation},
	}}
}

func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, object := range objects {
		must(c.t, c.api.Create(c.t.Context(), object))
	}
}

func (c *cluster) get(name string, object client.Object) {
	c.t.Helper()
	must(c.t, c.api.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
