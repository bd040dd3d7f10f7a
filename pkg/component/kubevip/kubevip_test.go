// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubevip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

func TestPod(t *testing.T) {
	s := kubevip.Pod(kubevip.Settings{
		VIP: "10.0.0.7", Interface: "eth0", Port: 6443, Image: "ghcr.io/kube-vip/kube-vip:v0.9.1",
	})
	steptest.Golden(t, "", s)
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(steptest.Files(s)[0].Content.String()), &pod); err != nil {
		t.Errorf("the manifest is no Pod: %v", err)
	}
}

// TestCredentials: the kubeconfig names files beside it, which are those that the step makes, and its directory is what the pod mounts.
func TestCredentials(t *testing.T) {
	s := kubevip.Credentials(kubevip.Settings{Host: "cp1", Port: 6443})
	parts := s.(step.Sequence).Parts
	file := parts[len(parts)-1].(step.File)
	if file.Mode != 0o600 {
		t.Errorf("the kubeconfig has the mode %v", file.Mode)
	}
	config, err := clientcmd.Load([]byte(file.Content.String()))
	if err != nil {
		t.Fatal(err)
	}
	user, cluster := config.AuthInfos["kube-vip"], config.Clusters["cluster"]
	dir := path.Dir(file.Path)
	made := step.Certificates(s)[0]
	if path.Join(dir, user.ClientCertificate) != made.Path || path.Join(dir, user.ClientKey) != made.KeyPath {
		t.Errorf("it names %+v, and %s and %s are made", user, made.Path, made.KeyPath)
	}
	if authority := parts[1].(step.File); path.Join(dir, cluster.CertificateAuthority) != authority.Path || cluster.Server != "https://kubernetes:6443" {
		t.Errorf("it has the cluster %+v, and the authority is in %s", cluster, authority.Path)
	}
	pod := steptest.Files(kubevip.Pod(kubevip.Settings{}))[0].Content.String()
	if !strings.Contains(pod, "path: "+dir+"\n") {
		t.Errorf("the pod does not see %s:\n%s", dir, pod)
	}
}
