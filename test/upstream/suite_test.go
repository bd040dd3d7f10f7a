// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build upstream

package upstream

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/e2e"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
)

const (
	poolName = "up"
	// workers is how many hosts are for workers, as many as a spec scales to; one more is for a control plane.
	workers = 3
	// release is a version of our providers, which metadata.yaml has.
	release = "v0.1.0"
	// provider is the one whose repository has the templates; its version need not be looked up.
	provider = "kubexm:" + release
)

// What the specs ask for, and the hosts.
var (
	// folder keeps state, logs and what specs write. It is left behind when one fails.
	folder     string
	repository string
	config     *clusterctl.E2EConfig
	proxy      framework.ClusterProxy

	pool *hosts.Pool
	// before are the hosts' snapshots from when nobody had touched them, by name.
	before map[string]hosts.Snapshot
)

func TestUpstream(t *testing.T) {
	RegisterFailHandler(Fail)
	if RunSpecs(t, "upstream") {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		return
	}
	t.Logf("state and logs are left in %s", folder)
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	folder, err = os.MkdirTemp("", "kubexm-upstream-")
	Expect(err).NotTo(HaveOccurred())
	repository = writeRepository(ctx)

	store, err := artifact.OpenStore("")
	Expect(err).NotTo(HaveOccurred())
	path, err := filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")))
	Expect(err).NotTo(HaveOccurred())
	bundle, err := artifact.Open(ctx, path, store)
	Expect(err).NotTo(HaveOccurred(), "make artifacts builds the bundle")
	dir := filepath.Join(folder, "plane")
	plane, err := management.Start(ctx, dir, "", bundle, store)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)

	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	Expect(controlplanev1.AddToScheme(scheme)).To(Succeed())
	Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	proxy = framework.NewClusterProxy("management", management.Kubeconfig(dir), scheme, framework.WithMachineLogCollector(journals{}))
	config = &clusterctl.E2EConfig{
		Variables: map[string]string{e2e.KubernetesVersion: bundle.Version(artifact.Kubernetes)},
		Intervals: map[string][]string{},
	}
	for _, wait := range []string{"cluster", "control-plane", "worker-nodes", "machine-remediation", "delete-cluster"} {
		config.Intervals["default/wait-"+wait] = []string{"10m", "1s"}
	}
})

// writeRepository has our own command write a version of our providers, adds the flavor that a spec asks for, and returns the
// path of clusterctl's configuration.
func writeRepository(ctx context.Context) string {
	dir := filepath.Join(folder, "repository")
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/release", "-version", release, "-out", dir, "manifests")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)

	templates := filepath.Join(dir, "infrastructure-kubexm", release)
	cluster, err := os.ReadFile(filepath.Join(templates, "cluster-template.yaml"))
	Expect(err).NotTo(HaveOccurred())
	check, err := os.ReadFile(filepath.Join("testdata", "machinehealthcheck.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(templates, "cluster-template-md-remediation.yaml"), slices.Concat(cluster, check), 0o600)).To(Succeed())
	return filepath.Join(dir, "clusterctl.yaml")
}

// startHosts makes the pool's hosts.
func startHosts(ctx context.Context) {
	var subnet netip.Prefix
	if text := os.Getenv("UPSTREAM_SUBNET"); text != "" {
		var err error
		subnet, err = netip.ParsePrefix(text)
		Expect(err).NotTo(HaveOccurred(), "UPSTREAM_SUBNET")
	}
	// What an earlier run that was killed has left.
	Expect(hosts.Remove(ctx, poolName)).To(Succeed())
	var err error
	pool, err = hosts.Start(ctx, hosts.Options{
		Name: poolName, Count: 1 + workers, Subnet: subnet, Dir: filepath.Join(folder, "hosts"), Log: GinkgoT().Logf,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Stop)
	before, err = hosts.Snapshots(ctx, pool.Hosts)
	Expect(err).NotTo(HaveOccurred())
}
