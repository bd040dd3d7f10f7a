// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package pipeline_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
)

const manifests = "etc/kubernetes/manifests/"

// TestStaticPods has a real API server judge the static pods of all kinds of clusters, as they are written: a field that it
// does not know, or knows twice, is an error as much as a value that it refuses.
func TestStaticPods(t *testing.T) {
	client := apiServer(t)
	kinds := make(map[string]string) // by manifest, the first kind of cluster that writes it
	var found []string
	for _, way := range ways {
		for _, endpoint := range endpoints {
			p, err := pipeline.CreateCluster("prod", members(t, way, etcds[0].set, endpoint.set), bundle(t))
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Graph().Len() {
				files := make(map[string]string)
				texts(p.Graph().Node(i).Value.Step, files)
				for path, manifest := range files {
					if name, isPod := strings.CutPrefix(path, manifests); isPod {
						kind := fmt.Sprintf("%s-%s", way, endpoint.name)
						found = append(found, kind+" "+name)
						if _, known := kinds[manifest]; !known {
							kinds[manifest] = kind
						}
					}
				}
			}
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{
		"Binary-haproxy kubexm-haproxy.yaml", "Binary-kube-vip kubexm-kube-vip.yaml", "Binary-nginx kubexm-nginx.yaml",
		"Kubeadm-haproxy kubexm-haproxy.yaml", "Kubeadm-kube-vip kubexm-kube-vip.yaml", "Kubeadm-nginx kubexm-nginx.yaml",
	}, slices.Compact(found)); diff != "" {
		t.Errorf("other static pods are written (-want +got):\n%s", diff)
	}
	for _, manifest := range slices.Sorted(maps.Keys(kinds)) {
		pod, err := dryRun(t, client, manifest)
		if err != nil {
			t.Errorf("%s: %v in\n%s", kinds[manifest], err, manifest)
			continue
		}
		if pod.Spec.Priority == nil || *pod.Spec.Priority < 2_000_000_000 {
			t.Errorf("%s: pod %s has the priority of any other", kinds[manifest], pod.Name)
		}
	}
}

// The judge of TestStaticPods sees what may be wrong.
func TestStaticPodIsRefused(t *testing.T) {
	client := apiServer(t)
	p, err := pipeline.CreateCluster("prod", members(t, ways[0], etcds[0].set, endpoints[len(endpoints)-1].set), bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest := rendered(p)[manifests+"kubexm-kube-vip.yaml"]
	if _, err := dryRun(t, client, manifest); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ old, new, want string }{
		"a field that there is not": {"hostNetwork:", "hostNetworks:", `unknown field "spec.hostNetworks"`},
		"a field twice":             {"hostNetwork: true", "hostNetwork: true\n  hostNetwork: true", `"hostNetwork" already set`},
		"a value that there is not": {"imagePullPolicy: IfNotPresent", "imagePullPolicy: Sometimes", "spec.containers[0].imagePullPolicy: Unsupported value"},
		"a volume that there is not": {"- name: credentials\n    hostPath", "- name: config\n    hostPath",
			`spec.containers[0].volumeMounts[0].name: Not found: "credentials"`},
		"a priority that there is not": {"system-node-critical", "system-critical", "no PriorityClass with name system-critical"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(manifest, tt.old, tt.new, 1)
			if broken == manifest {
				t.Fatalf("%q is not in\n%s", tt.old, manifest)
			}
			if _, err := dryRun(t, client, broken); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// dryRun is what the API server would make of a manifest.
func dryRun(t *testing.T, client *kubernetes.Clientset, manifest string) (*corev1.Pod, error) {
	t.Helper()
	pod := &corev1.Pod{}
	err := client.CoreV1().RESTClient().Post().Namespace(metav1.NamespaceSystem).Resource("pods").
		Param("dryRun", metav1.DryRunAll).Param("fieldValidation", metav1.FieldValidationStrict).
		SetHeader("Content-Type", "application/yaml").Body([]byte(manifest)).Do(t.Context()).Into(pod)
	return pod, err
}

// apiServer starts an API server for one test.
func apiServer(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: this test needs kube-apiserver and etcd; run make test, which builds them")
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
