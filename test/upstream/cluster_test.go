// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build upstream

package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/cluster-api/test/framework"
	"sigs.k8s.io/cluster-api/test/framework/clusterctl"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// createInventory brings the objects of all hosts to a spec's namespace: the first is for the control plane, the others are
// for workers.
func createInventory(management framework.ClusterProxy, namespace string) {
	key, err := os.ReadFile(pool.Hosts[0].KeyPath)
	Expect(err).NotTo(HaveOccurred())
	documents := [][]byte{template("credentials.yaml", map[string]string{
		"NAMESPACE": namespace, "SSH_PRIVATE_KEY_BASE64": base64.StdEncoding.EncodeToString(key),
	})}
	for i, host := range pool.Hosts {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		documents = append(documents, template("host.yaml", map[string]string{
			"NAMESPACE": namespace, "HOST_NAME": host.Name, "HOST_ADDRESS": host.Address, "HOST_ROLE": role, "SSH_USER": host.User,
			"HOST_KEY": string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(host.HostKey))),
		}))
	}
	Expect(management.Create(context.Background(), bytes.Join(documents, []byte("\n---\n")))).To(Succeed())
}

// template is a file of templates/cluster with values put in.
func template(name string, values map[string]string) []byte {
	content, err := os.ReadFile(filepath.Join("..", "..", "templates", "cluster", name))
	Expect(err).NotTo(HaveOccurred())
	content, err = yamlprocessor.NewSimpleProcessor().Process(content, func(variable string) (string, error) {
		value, known := values[variable]
		if !known {
			return "", fmt.Errorf("%s: no value for %s", name, variable)
		}
		return value, nil
	})
	Expect(err).NotTo(HaveOccurred())
	return content
}

// waiters do what the framework's own do for a KubeadmControlPlane.
var waiters = clusterctl.ControlPlaneWaiters{
	WaitForControlPlaneInitialized: func(
		ctx context.Context, input clusterctl.ApplyCustomClusterTemplateAndWaitInput,
		result *clusterctl.ApplyCustomClusterTemplateAndWaitResult,
	) {
		By("Waiting for one control plane node to exist")
		Eventually(func() bool {
			machines := framework.GetControlPlaneMachinesByCluster(ctx, framework.GetControlPlaneMachinesByClusterInput{
				Lister: input.ClusterProxy.GetClient(), ClusterName: result.Cluster.Name, Namespace: result.Cluster.Namespace,
			})
			return slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() })
		}, input.WaitForControlPlaneIntervals...).Should(BeTrue())
	},
	WaitForControlPlaneMachinesReady: func(
		ctx context.Context, input clusterctl.ApplyCustomClusterTemplateAndWaitInput,
		result *clusterctl.ApplyCustomClusterTemplateAndWaitResult,
	) {
		By("Waiting for the control plane to be ready")
		Eventually(func(g Gomega) {
			controlPlane := &controlplanev1.KubexmControlPlane{}
			key := client.ObjectKey{Namespace: result.Cluster.Namespace, Name: result.Cluster.Spec.ControlPlaneRef.Name}
			g.Expect(input.ClusterProxy.GetClient().Get(ctx, key, controlPlane)).To(Succeed())
			for _, count := range []*int32{
				controlPlane.Status.Replicas, controlPlane.Status.UpToDateReplicas,
				controlPlane.Status.ReadyReplicas, controlPlane.Status.AvailableReplicas,
			} {
				g.Expect(count).To(HaveValue(Equal(*controlPlane.Spec.Replicas)))
			}
		}, input.WaitForControlPlaneIntervals...).Should(Succeed())
		framework.AssertControlPlaneFailureDomains(ctx, framework.AssertControlPlaneFailureDomainsInput{
			Lister: input.ClusterProxy.GetClient(), Cluster: result.Cluster,
		})
	},
}
