// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestAddons makes clusters with metrics-server and a manifest of the user's own. What somebody changes in the cluster is repaired; what
// leaves the list is uninstalled; and hosts are released without a trace.
func TestAddons(t *testing.T) {
	for _, by := range []string{"kubeadm", "kubexm"} {
		t.Run(by, func(t *testing.T) {
			spec := func(addons string) string {
				return `  roleGroups: {master: [$1], worker: [$2]}
  kubernetes: {version: v1.36.3, type: ` + by + `}
` + addons
			}
			const both = `  addons:
  - metrics-server
  - name: motd
    manifest: |
      {apiVersion: v1, kind: ConfigMap, metadata: {name: motd}, data: {motd: "{{ hello }}"}}
`
			c := start(t, "had", 2, spec(both))
			c.Bundle = lab.Bundle(t, "KUBEXM_BUNDLE_ADDONS", "bundle-addons")
			for _, part := range []struct {
				name string
				do   func(*cluster)
			}{
				{"made", func(c *cluster) { c.create(); c.works() }},
				{"answers", func(c *cluster) { c.topAnswers(); c.motd("{{ hello }}") }},
				{"as it is", (*cluster).staysAsItIs},
				{"repaired", (*cluster).addonIsRepaired},
				{"not in the list", func(c *cluster) {
					c.write(spec(""))
					c.create()
					c.addonsAreGone()
					c.staysAsItIs()
				}},
				{"released", (*cluster).isReset},
			} {
				if !t.Run(part.name, func(t *testing.T) { part.do(c.in(t)) }) {
					t.FailNow() // what comes next would not tell anything
				}
			}
		})
	}
}

// kubectl runs the bundle's.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	found, err := filepath.Glob(filepath.Join(c.Bundle, "kubernetes", "*", "*", "kubectl"))
	if err != nil || len(found) != 1 {
		c.t.Fatalf("the bundle has the kubectl %v (%v)", found, err)
	}
	out, err := exec.CommandContext(ctx, found[0], append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...).CombinedOutput()
	return string(out), err
}

// topAnswers wants kubectl to know what each Node uses: kubelets answer metrics-server, whose certificates it verifies.
func (c *cluster) topAnswers() {
	c.t.Helper()
	var said string
	err := wait.PollUntilContextTimeout(c.t.Context(), 2*time.Second, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		said, err = c.kubectl(ctx, "top", "nodes", "--no-headers")
		for _, h := range c.lab.Hosts {
			if !strings.Contains(said, h.Name+" ") {
				return false, nil
			}
		}
		return err == nil && !strings.Contains(said, "<unknown>"), nil
	})
	if err != nil {
		c.t.Fatalf("kubectl top nodes: %v: %s", err, said)
	}
	c.t.Log("\n" + said)
	d, err := c.api(10*time.Second).AppsV1().Deployments("kube-system").Get(c.t.Context(), "metrics-server", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	args := strings.Join(d.Spec.Template.Spec.Containers[0].Args, " ")
	if strings.Contains(args, "insecure") || !strings.Contains(args, "--kubelet-certificate-authority=") {
		c.t.Errorf("metrics-server verifies no kubelet: %s", args)
	}
	if said, err := c.kubectl(c.t.Context(), "get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "jsonpath={.spec}"); err != nil ||
		strings.Contains(said, "insecureSkipTLSVerify") || !strings.Contains(said, "caBundle") {
		c.t.Errorf("the API server does not verify metrics-server: %s (%v)", said, err)
	}
}

// motd wants the user's own object to say a word.
func (c *cluster) motd(want string) {
	c.t.Helper()
	m, err := c.api(10*time.Second).CoreV1().ConfigMaps("default").Get(c.t.Context(), "motd", metav1.GetOptions{})
	if err != nil || m.Data["motd"] != want {
		c.t.Errorf("the object says %q (%v), want %q", m.Data["motd"], err, want)
	}
}

// addonIsRepaired has somebody change and remove objects of the addons.
func (c *cluster) addonIsRepaired() {
	c.t.Helper()
	if said, err := c.kubectl(c.t.Context(), "patch", "configmap", "motd", "-p", `{"data": {"motd": "bye"}}`); err != nil {
		c.t.Fatalf("%v: %s", err, said)
	}
	if said, err := c.kubectl(c.t.Context(), "-n", "kube-system", "delete", "deployment", "metrics-server"); err != nil {
		c.t.Fatalf("%v: %s", err, said)
	}
	c.create()
	c.motd("{{ hello }}")
	c.topAnswers()
	c.staysAsItIs()
}

// addonsAreGone wants nothing of the addons to be in the cluster.
func (c *cluster) addonsAreGone() {
	c.t.Helper()
	api := c.api(10 * time.Second)
	if _, err := api.CoreV1().ConfigMaps("default").Get(c.t.Context(), "motd", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("the user's own object is there: %v", err)
	}
	const kinds = "deployments,services,serviceaccounts,secrets,clusterroles,clusterrolebindings,rolebindings,apiservices"
	said, err := c.kubectl(c.t.Context(), "get", kinds, "-A", "-o", "name")
	if err != nil || strings.Contains(said, "metrics-server") || strings.Contains(said, "metrics.k8s.io") || strings.Contains(said, "sh.helm.release.v1.motd") {
		c.t.Errorf("of metrics-server there is left (%v):\n%s", err, said)
	}
}
