// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

const (
	// first and next are our releases.
	first, next = "v0.1.0", "v0.1.1"
)

// cluster is one that is made of Machines, by its name and namespace.
type cluster struct {
	namespace, name string
	// There are so many Machines, and all of the version.
	controlPlanes, workers int
	version                string
}

// prod is the cluster of the default flavor, which the management cluster manages.
var prod = cluster{namespace: namespace, name: "prod", controlPlanes: 1, workers: 1, version: release}

// TestLifecycle is the way of the guide. Each part goes on from the one before.
func TestLifecycle(t *testing.T) {
	began := time.Now()
	l := start(t)
	timings := []string{fmt.Sprintf("%-10s %6.1f s", "built", time.Since(began).Seconds())}
	for _, part := range []struct {
		name string
		pass func(*environment)
	}{
		{"made", made},
		{"installed", installed},
		{"inventory", inventoried},
		{"declared", declared},
		{"ready", ready},
		{"scaled", scaled},
		{"moved", moved},
		{"upgraded", upgraded},
		{"deleted", func(l *environment) { l.delete(prod) }},
		{"hooks", hooks},
		{"topology", topology},
		{"ha", highlyAvailable},
	} {
		partBegan := time.Now()
		passed := t.Run(part.name, func(t *testing.T) {
			of := l.in(t)
			part.pass(of)
			l.kubeconfig, l.api = of.kubeconfig, of.api
		})
		timings = append(timings, fmt.Sprintf("%-10s %6.1f s", part.name, time.Since(partBegan).Seconds()))
		if !passed {
			t.Log(l.in(t).explain())
			break
		}
	}
	t.Logf("parts:\n  %s\n  %-10s %6.1f s", strings.Join(timings, "\n  "), "in all", time.Since(began).Seconds())
}

// made makes the management cluster, and brings to its hosts what it cannot pull.
func made(l *environment) {
	l.Expect(l.management.Write("  roleGroups: {master: [$1], worker: [$2]}\n  kubernetes: {version: " + release + "}\n")).To(Succeed())
	_, err := l.management.Run(l.t.Context(), l.management.CreateArgs()...)
	l.Expect(err).NotTo(HaveOccurred())
	l.connect(l.management.Kubeconfig())
	l.loadOthers()
	l.loadManager(first)
	l.loadBundles()
}

// installed has clusterctl install everything. Its waiting is for every Deployment to be available: certificates were
// signed, Pods are admitted at the level restricted, images are there, probes are answered.
func installed(l *environment) {
	l.kubectl(l.clusterctl(map[string]string{"BUNDLES_NODE": l.bundleHost().Name, "BUNDLES_PATH": bundlesPath},
		"generate", "yaml", "--from", "templates/management/bundles.yaml"), "apply", "-f", "-")
	l.clusterctl(gates(), "init", "--core", "cluster-api",
		"--bootstrap", "kubexm", "--control-plane", "kubexm", "--infrastructure", "kubexm", "--wait-providers")
	l.expectProviders(first)
	l.expectMetricsGuarded()
}

// gates are the variables that have Cluster API's features on that are off by default, and serve its hooks.
func gates() map[string]string {
	return map[string]string{
		"CLUSTER_TOPOLOGY": "true", "EXP_RUNTIME_SDK": "true", "EXP_IN_PLACE_UPDATES": "true", "KUBEXM_RUNTIME_EXTENSION_PORT": "9444",
	}
}

// expectProviders wants our providers, and no other version of them, installed and running.
func (l *environment) expectProviders(version string) {
	l.t.Helper()
	for name, in := range map[string]string{
		"bootstrap-kubexm": "kubexm-bootstrap", "control-plane-kubexm": "kubexm-control-plane", "infrastructure-kubexm": "kubexm-infrastructure",
	} {
		key := client.ObjectKey{Namespace: in + "-system", Name: name}
		provider := &clusterctlv1.Provider{}
		l.Expect(l.api.Get(l.t.Context(), key, provider)).To(Succeed())
		l.Expect(provider.Version).To(Equal(version))
		key.Name = in + "-controller-manager"
		l.Eventually(func(g Gomega) {
			deployment := &appsv1.Deployment{}
			g.Expect(l.api.Get(l.t.Context(), key, deployment)).To(Succeed())
			g.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":" + version))
			g.Expect(deployment.Status.UpdatedReplicas).To(BeEquivalentTo(1))
			g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(1))
			g.Expect(deployment.Status.Replicas).To(BeEquivalentTo(1))
		}).Should(Succeed(), in)
	}
}

// expectMetricsGuarded wants a manager to refuse its metrics to those who do not say who they are.
func (l *environment) expectMetricsGuarded() {
	pods := &corev1.PodList{}
	l.Expect(l.api.List(l.t.Context(), pods, client.InNamespace("kubexm-bootstrap-system"))).To(Succeed())
	l.Expect(pods.Items).To(HaveLen(1))
	out, err := l.pool.Hosts[0].Exec(l.t.Context(), "curl", "--silent", "--insecure", "--output", "/dev/null", "--write-out", "%{http_code}",
		"https://"+pods.Items[0].Status.PodIP+":8443/metrics")
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(out).To(Equal("401"))
}

// inventoried brings the inventory.
func inventoried(l *environment) {
	l.kubectl("", "create", "namespace", namespace)
	key, err := os.ReadFile(l.inventory()[0].KeyPath)
	l.Expect(err).NotTo(HaveOccurred())
	l.apply("templates/cluster/credentials.yaml", map[string]string{"SSH_PRIVATE_KEY_BASE64": base64.StdEncoding.EncodeToString(key)})
	for i, host := range l.inventory() {
		l.apply("templates/cluster/host.yaml", map[string]string{
			"HOST_NAME": host.Name, "HOST_ADDRESS": host.Address, "HOST_ROLE": role(i), "SSH_USER": host.User,
			"HOST_KEY": strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.HostKey))),
		})
	}
}

// declared has clusterctl generate a cluster of the default flavor with one worker.
func declared(l *environment) { l.generate(prod, nil) }

// generate applies what clusterctl generates of a cluster, with its flavor and variables.
func (l *environment) generate(c cluster, variables map[string]string, args ...string) {
	l.t.Helper()
	l.kubectl(l.clusterctl(variables, append([]string{"generate", "cluster", c.name, "--target-namespace", c.namespace,
		"--kubernetes-version", c.version, "--control-plane-machine-count", strconv.Itoa(c.controlPlanes),
		"--worker-machine-count", strconv.Itoa(c.workers)}, args...)...), "apply", "-f", "-")
}

// apply applies a template of ours.
func (l *environment) apply(template string, variables map[string]string) {
	l.t.Helper()
	variables["NAMESPACE"] = namespace
	l.kubectl(l.clusterctl(variables, "generate", "yaml", "--from", template), "apply", "-f", "-")
}

func ready(l *environment) {
	l.expectReady(prod)
	l.expectDescribed()
}

// expectReady waits until the cluster has its Machines and all of them its version, everything says that it is available, and
// its Nodes are Ready.
func (l *environment) expectReady(c cluster) {
	l.t.Helper()
	ctx := l.t.Context()
	l.Eventually(func(g Gomega) {
		found := &clusterv1.Cluster{}
		g.Expect(l.api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, found)).To(Succeed())
		available := conditions.Get(found, clusterv1.ClusterAvailableCondition)
		g.Expect(available).NotTo(BeNil())
		g.Expect(available.Status).To(Equal(metav1.ConditionTrue), available.Message)
		machines := &clusterv1.MachineList{}
		g.Expect(l.api.List(ctx, machines, client.InNamespace(c.namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: c.name})).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(c.controlPlanes + c.workers))
		for i := range machines.Items {
			m := &machines.Items[i]
			g.Expect(conditions.IsTrue(m, clusterv1.MachineReadyCondition)).To(BeTrue(), m.Name)
			g.Expect(m.Status.NodeInfo).To(HaveField("KubeletVersion", c.version), m.Name)
		}
	}).Should(Succeed())

	config, err := clientcmd.BuildConfigFromFlags("", l.writeKubeconfig(c))
	l.Expect(err).NotTo(HaveOccurred())
	workload, err := kubernetes.NewForConfig(config)
	l.Expect(err).NotTo(HaveOccurred())
	nodes, err := workload.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(nodes.Items).To(HaveLen(c.controlPlanes + c.workers))
	for _, node := range nodes.Items {
		l.Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady),
			HaveField("Status", corev1.ConditionTrue))), node.Name)
	}
}

// writeKubeconfig keeps the administrator's kubeconfig of a cluster, and returns its path.
func (l *environment) writeKubeconfig(c cluster) string {
	l.t.Helper()
	path := filepath.Join(l.dir, c.name+".kubeconfig")
	l.Expect(os.WriteFile(path, []byte(l.clusterctl(nil, "get", "kubeconfig", c.name, "--namespace", c.namespace)), 0o600)).To(Succeed())
	return path
}

// expectDescribed wants the tree of clusterctl to have every object of ours, and all of them well.
func (l *environment) expectDescribed() {
	l.t.Helper()
	var tree string
	l.Eventually(func(g Gomega) {
		tree = l.clusterctl(nil, "describe", "cluster", prod.name, "--namespace", namespace, "--grouping=false", "--echo")
		for _, object := range []string{
			"Cluster", "KubexmCluster", "KubexmControlPlane", "MachineDeployment", "Machine", "KubexmConfig", "KubexmMachine",
		} {
			g.Expect(tree).To(MatchRegexp(`(?m)\b%s %s/\S+ .*\bTrue\b`, object, namespace))
		}
		g.Expect(tree).NotTo(MatchRegexp(`\bFalse\b`))
	}).Should(Succeed(), func() string { return tree })
	l.t.Log("\n" + tree)
}

func scaled(l *environment) {
	for _, count := range []int{workers, 1} {
		l.kubectl("", "--namespace", namespace, "scale", "machinedeployment", prod.name+"-workers", "--replicas", strconv.Itoa(count))
		now := prod
		now.workers = count
		l.expectReady(now)
	}
}

// upgraded brings the next release of our providers.
func upgraded(l *environment) {
	used := l.claimed()
	before := l.marks(used...)
	l.writeRelease(next)
	l.loadManager(next)
	l.t.Log("\n" + l.clusterctl(nil, "upgrade", "plan"))
	l.clusterctl(gates(), "upgrade", "apply", "--contract", clusterv1.GroupVersion.Version, "--wait-providers")
	l.expectProviders(next)
	l.expectReady(prod)
	l.Expect(l.marks(used...)).To(Equal(before))
}

// delete deletes a cluster, and wants all hosts to be reset.
func (l *environment) delete(c cluster) {
	l.t.Helper()
	l.kubectl("", "--namespace", c.namespace, "delete", "cluster", c.name)
	err := l.api.Get(l.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: c.name}, &clusterv1.Cluster{})
	l.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	l.Eventually(func(g Gomega) {
		all := &infrav1.KubexmHostList{}
		g.Expect(l.api.List(l.t.Context(), all, client.InNamespace(namespace))).To(Succeed())
		g.Expect(all.Items).To(HaveLen(len(l.inventory())))
		for i := range all.Items {
			g.Expect(conditions.GetReason(&all.Items[i], infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason), all.Items[i].Name)
		}
	}).Should(Succeed())
	l.expectReset()
}
