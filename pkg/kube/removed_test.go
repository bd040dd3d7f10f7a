// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
)

// TestRemovedAPIs on an API server that serves three versions that Kubernetes v1.37 does not: what is written by them, and asked of
// them, is found, and to look is no use of them.
func TestRemovedAPIs(t *testing.T) {
	env := &envtest.Environment{BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS")}
	env.ControlPlane.GetAPIServer().Configure().Set("runtime-config", "networking.k8s.io/v1beta1=true,storage.k8s.io/v1beta1=true,certificates.k8s.io/v1alpha1=true").
		Set("feature-gates", "ClusterTrustBundle=true")
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	c := must[*kube.Cluster](t)(kube.New(config))
	client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
	found := func(version string) []kube.RemovedAPI {
		return must[[]kube.RemovedAPI](t)(c.RemovedAPIs(t.Context(), version))
	}

	if all := found("v1.37.0"); len(all) != 0 {
		t.Errorf("nobody uses any, and it finds %v", all)
	}
	by := metav1.CreateOptions{FieldManager: "helm"}
	range1 := networkingv1beta1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1beta1.ServiceCIDRSpec{CIDRs: []string{"10.77.0.0/24"}},
	}
	must[*networkingv1beta1.ServiceCIDR](t)(client.NetworkingV1beta1().ServiceCIDRs().Create(t.Context(), &range1, by))
	range2 := networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.78.0.0/24"}}}
	must[*networkingv1.ServiceCIDR](t)(client.NetworkingV1().ServiceCIDRs().Create(t.Context(), &range2, by))
	want := []kube.RemovedAPI{{
		Group: "networking.k8s.io", Version: "v1beta1", Resource: "servicecidrs", RemovedIn: "1.37", Requested: true,
		Objects: 1, Examples: []string{"more"}, Managers: []string{"helm"},
	}}
	for range 2 { // to look is no use
		if diff := cmp.Diff(want, found("v1.37.0")); diff != "" {
			t.Error(diff)
		}
	}
	if all := found("v1.36.9"); len(all) != 0 {
		t.Errorf("v1.36.9 serves them all, and it finds %v", all)
	}
	text := want[0].String()
	if text != "servicecidrs in networking.k8s.io/v1beta1, which is not served any more from v1.37 on: 1 objects are written by it, such as more (by helm); "+
		"somebody has asked for it since the API server was started" {
		t.Error(text)
	}

	t.Log("where nothing else is served, it is found as well")
	bundle := certificatesv1alpha1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "roots"},
		Spec: certificatesv1alpha1.ClusterTrustBundleSpec{
			TrustBundle: string(env.Config.CAData),
		}}
	must[*certificatesv1alpha1.ClusterTrustBundle](t)(client.CertificatesV1alpha1().ClusterTrustBundles().Create(t.Context(), &bundle, by))
	all := found("v1.37.0")
	i := slices.IndexFunc(all, func(a kube.RemovedAPI) bool { return a.Resource == "clustertrustbundles" })
	if i < 0 || !all[i].Requested {
		t.Errorf("it finds %v", all)
	}

	if _, err := c.RemovedAPIs(t.Context(), "37"); err == nil || !strings.Contains(err.Error(), "version 37") {
		t.Errorf("another version: %v", err)
	}
}
