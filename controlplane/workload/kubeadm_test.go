// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/workload"
)

// TestTellKubeadm raises the version that hosts join by, and changes nothing else.
func TestTellKubeadm(t *testing.T) {
	const told = "apiVersion: kubeadm.k8s.io/v1beta4\nclusterName: prod\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\n" +
		"networking:\n  podSubnet: 10.244.0.0/16\n"
	for name, tc := range map[string]struct {
		has, told string
		gone      bool
		want      string
		problem   string
	}{
		"another minor version": {has: "v1.36.3", told: told, want: strings.Replace(told, "v1.35.4", "v1.36.3", 1)},
		"another patch":         {has: "v1.35.9", told: told, want: strings.Replace(told, "v1.35.4", "v1.35.9", 1)},
		"the same":              {has: "v1.35.4", told: told},
		"an older one":          {has: "v1.34.9", told: told},
		"units":                 {has: "v1.36.3", gone: true},
		"no YAML":               {has: "v1.36.3", told: "\t", problem: "is not readable"},
		"no version":            {has: "v1.36.3", told: "kind: ClusterConfiguration\n", problem: `its version is ""`},
		"none of ours":          {has: "", told: told, problem: `that of the control plane ""`},
	} {
		t.Run(name, func(t *testing.T) {
			var written string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if tc.gone || r.URL.Path != configMap {
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
					return
				}
				object := &corev1.ConfigMap{Data: map[string]string{"ClusterConfiguration": tc.told}}
				object.APIVersion, object.Kind, object.Name, object.Namespace, object.ResourceVersion = "v1",
					"ConfigMap", "kubeadm-config", "kube-system", "7"
				if r.Method == http.MethodPut {
					content, _ := io.ReadAll(r.Body)
					update := &corev1.ConfigMap{}
					if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, update); err != nil ||
						update.ResourceVersion != "7" {
						t.Errorf("it writes %s: %v", content, err)
					}
					written = update.Data["ClusterConfiguration"]
				}
				_ = json.NewEncoder(w).Encode(object)
			}))
			t.Cleanup(server.Close)
			view, err := workload.Connect(kubeconfig(t, server.URL, &clientcmdapi.AuthInfo{Token: "x"}))
			if err != nil {
				t.Fatal(err)
			}
			err = view.TellKubeadm(t.Context(), tc.has)
			if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("error %v, want %q", err, tc.problem)
			}
			if written != tc.want {
				t.Errorf("it has written\n%s\nwant\n%s", written, tc.want)
			}
		})
	}
}
