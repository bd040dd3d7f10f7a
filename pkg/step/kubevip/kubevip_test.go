// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubevip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

func TestPod(t *testing.T) {
	s := kubevip.Pod(kubevip.Settings{
		VIP: "10.0.0.7", Interface: "eth0", Port: 6443, Kubeconfig: "/etc/kubernetes/super-admin.conf",
		Image: "ghcr.io/kube-vip/kube-vip:v1.0.1",
	})
	steptest.Golden(t, "", s)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(steptest.Files(s)[0].Content.String()), &pod); err != nil {
		t.Errorf("the manifest is no Pod: %v", err)
	}
}
