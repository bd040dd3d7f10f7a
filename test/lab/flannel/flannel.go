// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flannel installs flannel in clusters that others have made. It is a package of its own, as most tests on hosts need no Helm.
package flannel

import (
	"runtime"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

const namespace = "kube-flannel"

// Install installs the flannel of a bundle by its own chart, as flannel's documentation says, in the cluster of a kubeconfig's file. Its
// pods' network is 10.244.0.0/16.
func Install(t testing.TB, from *artifact.Bundle, kubeconfig string) {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(namespace)
	config := new(action.Configuration)
	must(t, config.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {}))
	found, err := from.Chart("flannel")
	must(t, err)
	chart, err := loader.Load(found.Path)
	must(t, err)
	api, err := config.KubernetesClientSet()
	must(t, err)
	_, err = api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}, metav1.CreateOptions{})
	must(t, err)
	images := from.Images(runtime.GOARCH)
	split := func(ref string) map[string]any {
		at := strings.LastIndex(ref, ":")
		return map[string]any{"repository": ref[:at], "tag": ref[at+1:]}
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = "flannel", namespace
	_, err = install.RunWithContext(t.Context(), chart, map[string]any{"podCidr": "10.244.0.0/16", "flannel": map[string]any{
		"image": split(images["flannel"]), "flannel_cni": map[string]any{"image": split(images["flannel-cni-plugin"])},
	}})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
