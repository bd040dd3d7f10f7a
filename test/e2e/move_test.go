// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// controlPlanes, etcdMembers and loadBalancers are how many hosts are for each of these in a cluster that is moved. It has one worker,
// and another to spare.
const controlPlanes, etcdMembers, loadBalancers = 3, 3, 2

// checksOften has the bootstrap manager check hosts for drift often enough for a test to see that it finds nothing to do.
const checksOften = "--drift-check-interval=30s"

// TestMove moves a cluster from one management cluster to another and back, by clusterctl, and restores a backup of it in a third one
// after the first is lost. Statuses are left behind each time. No host is touched by that, under writes through the load balancers.
func TestMove(t *testing.T) {
	home := startWith(t, "e2m", slices.Concat(
		slices.Repeat([]string{"control-plane"}, controlPlanes), slices.Repeat([]string{"etcd"}, etcdMembers),
		slices.Repeat([]string{"load-balancer"}, loadBalancers), slices.Repeat([]string{"worker"}, 2),
	)...)
	last := home
	defer func() { // before anything is stopped
		if t.Failed() {
			t.Log(last.explain(context.Background()))
		}
	}()
	began := time.Now()
	did := func(what string) {
		t.Logf("%s: %.1f s", what, time.Since(began).Seconds())
		began = time.Now()
	}
	home.startManagers()
	home.apply(home.inventory()...)
	home.apply(home.availableCluster()...)
	home.Eventually(func(g Gomega) { home.settled(t.Context(), g, 1) }, 2*converging).Should(Succeed())
	home.stopManagers()
	home.startManagers(checksOften)
	home.expectSettled(1)
	writes, err := workload.Write(t.Context(), home.workload())
	home.Expect(err).NotTo(HaveOccurred())
	did("made")

	before := home.stands()
	away := home.elsewhere("away")
	last = away
	home.moveTo(away)
	away.expectSettled(1)
	away.expectStands(before)
	away.Expect(away.changing()).To(BeEmpty())
	did("moved")

	last = home
	away.moveTo(home)
	home.expectSettled(1)
	home.expectStands(before)
	home.Expect(home.changing()).To(BeEmpty())
	away.lose()
	did("moved back")

	backup := filepath.Join(home.dir, "backup")
	home.keep(backup)
	home.expectSettled(1)
	home.expectStands(before)
	did("kept")

	// A worker has come since yesterday, of which the backup does not know.
	home.scale(2)
	home.expectSettled(2)
	before = home.stands()
	home.lose()
	did("changed, and lost")

	restored := home.elsewhere("restored")
	last = restored
	restored.restore(backup)
	restored.expectSettled(1)
	restored.expectStands(before)
	restored.Expect(restored.changing()).To(BeEmpty())
	did("restored")
	restored.scale(2)
	restored.expectSettled(2)
	restored.expectStands(before)
	did("declared as it was")

	outcome, err := writes.Stop(t.Context())
	restored.Expect(err).NotTo(HaveOccurred())
	t.Log(outcome)
	restored.Expect(outcome.Lost).To(BeEmpty())
	restored.requestDeletion(clusterName)
	restored.expectDeleted(clusterName, converging)
	restored.expectReset(restored.names()...)
	restored.expectNothingLeft("fleet-ssh")
	did("deleted")
}

// availableCluster are the objects of a cluster that survives the loss of any one host: every component is a unit, and etcd has hosts of
// its own.
func (e *environment) availableCluster() []*unstructured.Unstructured {
	e.t.Helper()
	of := kubexm.Cluster{Hosts: e.pool.Hosts}
	all := e.template("cluster-ha.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "1", "CONTROL_PLANE_ENDPOINT_HOST": of.VIP(),
	})
	for _, object := range all {
		if object.GetKind() != "KubexmControlPlane" {
			continue
		}
		controlPlane := &controlplanev1.KubexmControlPlane{}
		e.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, controlPlane)).To(Succeed())
		controlPlane.Spec.Cluster.Kubernetes.Type = spec.KubernetesKubexm
		controlPlane.Spec.Cluster.Etcd = spec.Etcd{
			Type: spec.EtcdKubexm, Hosts: spec.Hosts{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "etcd"}}},
		}
		var err error
		object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(controlPlane)
		e.Expect(err).NotTo(HaveOccurred())
	}
	return all
}

// elsewhere is another management cluster, whose managers run, for the same hosts.
func (e *environment) elsewhere(name string) *environment {
	e.t.Helper()
	other := *e
	other.dir = filepath.Join(e.dir, name)
	e.Expect(os.Mkdir(other.dir, 0o700)).To(Succeed())
	other.manage(e.providers[0].program)
	other.startManagers(checksOften)
	return &other
}

// lose ends the management cluster at once, as a fire does.
func (e *environment) lose() {
	e.t.Helper()
	e.killManagers()
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	e.Expect(e.plane.Stop(ctx)).To(Succeed())
}

// clusterctl is the library of the command, and how it reaches the management cluster.
func (e *environment) clusterctl() (clusterctl.Client, clusterctl.Kubeconfig) {
	e.t.Helper()
	config := filepath.Join(e.dir, "clusterctl.yaml")
	e.Expect(os.WriteFile(config, []byte("providers: []\n"), 0o600)).To(Succeed())
	c, err := clusterctl.New(e.t.Context(), config)
	e.Expect(err).NotTo(HaveOccurred())
	return c, clusterctl.Kubeconfig{Path: management.Kubeconfig(filepath.Join(e.dir, "plane"))}
}

// moveTo moves all that there is to another management cluster. Managers run here and there.
func (e *environment) moveTo(other *environment) {
	e.t.Helper()
	c, from := e.clusterctl()
	_, to := other.clusterctl()
	e.Expect(c.Move(e.t.Context(), clusterctl.MoveOptions{Namespace: namespace, FromKubeconfig: from, ToKubeconfig: to})).To(Succeed())
	e.expectNothingLeft()
	left, err := e.hosts(e.t.Context())
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(left).To(BeEmpty())
}

// keep writes a backup to a directory. The cluster goes on here.
func (e *environment) keep(dir string) {
	e.t.Helper()
	e.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
	c, from := e.clusterctl()
	e.Expect(c.Move(e.t.Context(), clusterctl.MoveOptions{Namespace: namespace, FromKubeconfig: from, ToDirectory: dir})).To(Succeed())
}

func (e *environment) restore(dir string) {
	e.t.Helper()
	c, to := e.clusterctl()
	e.Expect(c.Move(e.t.Context(), clusterctl.MoveOptions{Namespace: namespace, ToKubeconfig: to, FromDirectory: dir})).To(Succeed())
}

// expectSettled waits until every object says that all is well with so many workers, and still says so after as many drift checks as
// there are hosts.
func (e *environment) expectSettled(workers int) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) { e.settled(ctx, g, workers) }, 2*converging).Should(Succeed())
	since := e.looks()
	e.Eventually(func(g Gomega) {
		g.Expect(e.looks()-since).To(BeNumerically(">=", len(e.settled(ctx, g, workers))), "drift checks of hosts")
	}, converging).Should(Succeed())
}

// looks is how often the bootstrap manager has observed a host that was to be up to date.
func (e *environment) looks() int {
	e.t.Helper()
	found := regexp.MustCompile(`(?m)^kubexm_pipeline_total\{pipeline="check",status="success"\} (\d+)$`).FindStringSubmatch(e.metrics())
	if found == nil {
		return 0
	}
	count, err := strconv.Atoi(found[1])
	e.Expect(err).NotTo(HaveOccurred())
	return count
}

// changing are the steps that the bootstrap manager has run on hosts. Those that wait for the API are not run there.
func (e *environment) changing() []string {
	e.t.Helper()
	all := regexp.MustCompile(`(?m)^kubexm_step_duration_seconds_count\{.*$`).FindAllString(e.metrics(), -1)
	return slices.DeleteFunc(all, func(line string) bool { return strings.Contains(line, `step="gate/`) })
}

// settled returns the KubexmConfigs of a cluster that is up to date.
func (e *environment) settled(ctx context.Context, g Gomega, workers int) []bootstrapv1.KubexmConfig {
	cluster, err := get(ctx, e, clusterName, &clusterv1.Cluster{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ptr.Deref(cluster.Spec.Paused, false)).To(BeFalse())
	expectTrue(g, "Cluster", cluster, clusterv1.ClusterAvailableCondition)
	controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{
		controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.CertificatesAvailableCondition,
		controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.MachinesReadyCondition, controlplanev1.MachinesUpToDateCondition,
	} {
		expectTrue(g, "KubexmControlPlane", controlPlane, kind)
	}
	deployment, err := get(ctx, e, clusterName+"-workers", &clusterv1.MachineDeployment{})
	g.Expect(err).NotTo(HaveOccurred())
	expectTrue(g, "MachineDeployment", deployment, clusterv1.MachineDeploymentAvailableCondition)
	g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(workers)))
	machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesOf(machines)).To(HaveLen(controlPlanes + workers))
	for i := range machines.Items {
		expectTrue(g, "Machine "+machines.Items[i].Name, &machines.Items[i], clusterv1.MachineReadyCondition)
	}
	e.settledHosts(ctx, g, controlPlanes+etcdMembers+loadBalancers+workers)

	said, err := get(ctx, e, clusterName, &bootstrapv1.KubexmClusterConfig{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said.Spec.Members).To(HaveLen(controlPlanes + etcdMembers + loadBalancers))
	for _, m := range said.Spec.Members {
		g.Expect(m.Phase).To(Equal(bootstrapv1.MemberServing), m.Name)
	}
	configs, err := list(ctx, e, clusterName, &bootstrapv1.KubexmConfigList{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesOf(configs)).To(HaveLen(controlPlanes + etcdMembers + loadBalancers + workers))
	for i := range configs.Items {
		config := &configs.Items[i]
		expectTrue(g, "KubexmConfig "+config.Name, config, bootstrapv1.HostReadyCondition)
		g.Expect(config.Status.MembersDigest).To(Equal(bootstrapv1.MembersDigest(said.Spec.Members)), config.Name)
		g.Expect(config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome).To(Equal(bootstrapv1.RunSucceeded), config.Name)
	}
	return configs.Items
}

// settledHosts wants so many hosts to be in use and reached, and the others to be free.
func (e *environment) settledHosts(ctx context.Context, g Gomega, count int) {
	all, err := e.hosts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	used := 0
	for i := range all {
		h := &all[i]
		if h.Spec.ClaimRef == (infrav1.MachineReference{}) {
			g.Expect(conditions.GetReason(h, infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason), h.Name)
			continue
		}
		used++
		expectTrue(g, "KubexmHost "+h.Name, h, infrav1.ReachableCondition)
	}
	g.Expect(used).To(Equal(count), "hosts in use")
}
