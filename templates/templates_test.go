// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

// Package templates has tests alone, of the files below it: a real API server takes each of them as it is.
package templates

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestClassesHaveNoVariables keeps to the contract of clusterctl: a ClusterClass is the same wherever it is installed. The namespace is the
// target that clusterctl or kubectl is called with.
func TestClassesHaveNoVariables(t *testing.T) {
	classes, err := filepath.Glob("cluster/clusterclass*.yaml")
	if err != nil || len(classes) == 0 {
		t.Fatal(classes, err)
	}
	for _, path := range classes {
		if content, err := os.ReadFile(path); err != nil || variable.Match(content) {
			t.Errorf("%s has %q (%v)", path, variable.FindAll(content, -1), err)
		}
	}
}

func TestTemplates(t *testing.T) {
	own := map[string]map[string]string{
		"cluster/cluster.yaml":      {},
		"cluster/cluster-byoh.yaml": {"CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.11"},
		"cluster/cluster-dev.yaml": {
			"HOST_IMAGE": "debian:12", "LOAD_BALANCER_IMAGE_REPOSITORY": "kindest", "LOAD_BALANCER_IMAGE_TAG": "v20230606-42a2262b",
		},
		"cluster/cluster-ha.yaml": {"CONTROL_PLANE_MACHINE_COUNT": "3", "CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.100"},
		"cluster/cluster-metal3.yaml": {
			"CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.11", "IMAGE_URL": "http://172.16.0.1/debian-12.qcow2", "IMAGE_FORMAT": "qcow2",
			"IMAGE_CHECKSUM": "http://172.16.0.1/debian-12.qcow2.sha256sum",
		},
		"cluster/cluster-metal3-kubeadm-workers.yaml": {
			"CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.11", "IMAGE_URL": "http://172.16.0.1/debian-12.qcow2", "IMAGE_FORMAT": "qcow2",
			"IMAGE_CHECKSUM": "http://172.16.0.1/debian-12.qcow2.sha256sum", "WORKER_IMAGE_URL": "http://172.16.0.1/kubernetes.qcow2",
			"WORKER_IMAGE_FORMAT": "qcow2", "WORKER_IMAGE_CHECKSUM": "http://172.16.0.1/kubernetes.qcow2.sha256sum",
		},
		"cluster/clusterclass.yaml": {},
		"cluster/credentials.yaml":  {"SSH_PRIVATE_KEY_BASE64": "c2VjcmV0"},
		"cluster/host.yaml": {
			"HOST_NAME": "worker1", "HOST_ADDRESS": "172.16.0.21", "HOST_ROLE": "worker", "SSH_USER": "ops",
			"HOST_KEY": "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c",
		},
		"cluster/clusterclass-byoh.yaml":   {},
		"cluster/clusterclass-dev.yaml":    {},
		"cluster/clusterclass-metal3.yaml": {},
		// See TestClusterClass: they are nothing without their classes.
		"cluster/cluster-topology.yaml": nil, "cluster/cluster-topology-byoh.yaml": nil, "cluster/cluster-topology-dev.yaml": nil,
		"cluster/cluster-topology-metal3.yaml": nil,
		"management/bundles.yaml":              {"BUNDLES_NODE": "worker1"},
	}
	for _, dir := range []string{"cluster", "management"} {
		found, err := filepath.Glob(dir + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if _, known := own[path]; !known {
				t.Errorf("%s is not tested", path)
			}
		}
	}
	for path, more := range own {
		if more == nil {
			continue
		}
		t.Run(path, func(t *testing.T) {
			given := values("prod")
			given["NAMESPACE"] = metav1.NamespaceDefault // where there is no class
			maps.Copy(given, more)
			if strings.HasPrefix(path, "management/") {
				create(t, read(t, path, given)) // the Namespace must be there for what is in it
				return
			}
			create(t, read(t, path, given), client.DryRunAll)
		})
	}
}
