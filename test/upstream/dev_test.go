// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build upstream

package upstream

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/test/e2e"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/dev"
)

// The provider and the images of its hosts are made for these specs, and gone after them.
var _ = Describe("Specs of Cluster API, on its own infrastructure", Ordered, ContinueOnFailure, func() {
	ctx := context.Background()

	BeforeAll(func(ctx context.Context) {
		o := dev.Options{
			Name: "upstream", Config: proxy.GetRESTConfig(), Kubeconfig: management.Kubeconfig(filepath.Join(folder, "plane")),
			Dir: filepath.Join(folder, "dev"), Log: GinkgoT().Logf,
		}
		Expect(os.Mkdir(o.Dir, 0o700)).To(Succeed())
		for _, port := range []*int{&o.Webhooks, &o.Health, &o.Diagnostics} {
			*port = freePort()
		}
		// The program outlives the node that starts it.
		infrastructure, err := dev.Start(context.WithoutCancel(ctx), o)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(infrastructure.Stop, NodeTimeout(time.Minute))
		// clusterctl takes variables of templates from its configuration.
		file, err := os.OpenFile(repository, os.O_APPEND|os.O_WRONLY, 0)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(file.Close()).To(Succeed()) }()
		_, err = fmt.Fprintf(file, "HOST_IMAGE: %q\nLOAD_BALANCER_IMAGE_REPOSITORY: %q\nLOAD_BALANCER_IMAGE_TAG: %q\n",
			infrastructure.HostImage, infrastructure.LoadBalancerRepository, infrastructure.LoadBalancerTag)
		Expect(err).NotTo(HaveOccurred())
	})

	Describe("QuickStart", func() {
		e2e.QuickStartSpec(ctx, func() e2e.QuickStartSpecInput {
			return e2e.QuickStartSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), Flavor: ptr.To("dev"), ControlPlaneWaiters: waiters,
			}
		})
	})

	Describe("MachineDeploymentScale", func() {
		e2e.MachineDeploymentScaleSpec(ctx, func() e2e.MachineDeploymentScaleSpecInput {
			return e2e.MachineDeploymentScaleSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), Flavor: "dev", ControlPlaneWaiters: waiters,
			}
		})
	})
})

// freePort is a port of this machine that nobody listens on.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().(*net.TCPAddr).Port
}
