// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
)

// sixNodes and sixMasters are how many of the six hosts, which come first, are Nodes, and are of the control plane.
const sixNodes, sixMasters = 4, 3

// createSixByScript makes the cluster of six hosts by the script. What it sends is laid out before.
func (l *lab) createSixByScript(ctx context.Context, names []string, take note) error {
	defer l.switchOff(ctx, names...)
	script, kubeconfig, err := l.sixScript(ctx, names)
	if err != nil {
		return err
	}
	took, err := timed(func() error {
		if err := run(script, nil); err != nil {
			return err
		}
		return l.awaitSix(ctx, kubeconfig, names)
	})
	if err != nil {
		return err
	}
	take("ha/six-hosts", reference, took)
	return nil
}

// sixScript is the script for these hosts, and where it will write the kubeconfig.
func (l *lab) sixScript(ctx context.Context, names []string) (script *exec.Cmd, kubeconfig string, err error) {
	store, err := artifact.OpenStore("")
	if err != nil {
		return nil, "", err
	}
	bundle, err := artifact.Open(ctx, l.options.bundle, store)
	if err != nil {
		return nil, "", fmt.Errorf("%w; make artifacts makes it", err)
	}
	c := &cluster{lab: l, bundle: bundle, arch: runtime.GOARCH}
	for _, role := range []spec.Role{spec.RoleControlPlane, spec.RoleWorker} {
		if _, err := c.artifacts(role); err != nil {
			return nil, "", err
		}
	}
	kubectl, err := bundle.Binary("kubernetes", "", c.arch, "kubectl")
	if err != nil {
		return nil, "", err
	}
	network := filepath.Join(l.dir, "flannel.yaml")
	if err := c.flannelManifest(network); err != nil {
		return nil, "", err
	}
	var at []string
	k := kubexm.Cluster{}
	for _, name := range names {
		h, err := l.host(name)
		if err != nil {
			return nil, "", err
		}
		k.Hosts = append(k.Hosts, h)
		at = append(at, name+"="+h.Address)
	}
	images := bundle.Images(c.arch)
	_, etcd := cutTag(images["etcd"])
	dns, dnsTag := cutTag(images["coredns"])
	kubeconfig = filepath.Join(l.dir, names[0]+".kubeconfig")
	script = exec.CommandContext(ctx, "sh", "-c", nodeScript+sixScript, "six.sh")
	script.Env = append(os.Environ(),
		"DIR="+l.dir, "ARTIFACTS="+l.dir, "KUBECTL="+kubectl.Path, "KUBECONFIG="+kubeconfig, "FLANNEL="+network, "VIP="+k.VIP(),
		"MASTERS="+strings.Join(at[:sixMasters], " "), "WORKERS="+strings.Join(at[sixMasters:sixNodes], " "),
		"BALANCERS="+strings.Join(at[sixNodes:], " "), "VERSION="+bundle.Version(artifact.Kubernetes), "PAUSE="+images["pause"],
		"ETCD_TAG="+etcd, "DNS_REPOSITORY="+path.Dir(dns), "DNS_TAG="+dnsTag)
	return script, kubeconfig, nil
}

func cutTag(image string) (name, tag string) {
	at := strings.LastIndex(image, ":")
	return image[:max(at, 0)], image[at+1:]
}

// flannelManifest writes what the chart in the bundle says, with the bundle's images, as kubectl applies it.
func (c *cluster) flannelManifest(path string) error {
	file, err := c.bundle.Chart("flannel")
	if err != nil {
		return err
	}
	chart, err := loader.Load(file.Path)
	if err != nil {
		return err
	}
	image := func(of string) map[string]any {
		name, tag := cutTag(c.bundle.Images(c.arch)[of])
		return map[string]any{"image": map[string]any{"repository": name, "tag": tag}}
	}
	namespace, _ := flannel.Network{}.Agent()
	own := image("flannel")
	own["flannel_cni"] = image("flannel-cni-plugin")
	values, err := chartutil.ToRenderValues(chart, map[string]any{"flannel": own},
		chartutil.ReleaseOptions{Name: "flannel", Namespace: namespace}, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	var manifest strings.Builder
	for _, content := range rendered {
		manifest.WriteString("---\n" + content + "\n")
	}
	return os.WriteFile(path, []byte(manifest.String()), 0o600)
}

// awaitSix waits until the cluster of six hosts works as a whole. Both sides end with it.
func (l *lab) awaitSix(ctx context.Context, kubeconfig string, names []string) error {
	api, err := kubeconfigAt(kubeconfig, "")
	if err != nil {
		return err
	}
	conditions := []func(context.Context) error{api.Healthy}
	for _, name := range names[:sixMasters] {
		h, err := l.host(name)
		if err != nil {
			return err
		}
		own, err := kubeconfigAt(kubeconfig, h.Address)
		if err != nil {
			return err
		}
		conditions = append(conditions, own.Healthy)
	}
	conditions = append(conditions, func(ctx context.Context) error { return l.sixVote(ctx, names[0]) })
	namespace, agent := flannel.Network{}.Agent()
	for _, name := range names[:sixNodes] {
		conditions = append(conditions,
			func(ctx context.Context) error { return api.NodeReady(ctx, name) },
			func(ctx context.Context) error { return api.NetworkReady(ctx, namespace, agent, name) })
	}
	conditions = append(conditions, func(ctx context.Context) error { return api.WorkloadReady(ctx, "Deployment", "kube-system", "coredns") })
	return await(ctx, conditions...)
}

// kubeconfigAt is the way of a kubeconfig to the API server at an address, or where the file says if that is "".
func kubeconfigAt(path, address string) (*kube.Cluster, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		if address != "" {
			c.Server, c.TLSServerName = "https://"+net.JoinHostPort(address, "6443"), ""
		}
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, err
	}
	return kube.FromKubeconfig(secret.New(content))
}

// sixVote asks the member of etcd on a host whether all are there and vote.
func (l *lab) sixVote(ctx context.Context, name string) error {
	h, err := l.host(name)
	if err != nil {
		return err
	}
	const pki = "/etc/kubernetes/pki/etcd/"
	out, err := h.Exec(ctx, "/usr/local/bin/etcdctl", "--endpoints=https://127.0.0.1:2379", "--dial-timeout=2s", "--command-timeout=4s",
		"--cacert="+pki+"ca.crt", "--cert="+pki+"server.crt", "--key="+pki+"server.key", "member", "list", "-w", "json")
	if err != nil {
		return err
	}
	var list struct {
		Members []struct {
			Learner bool `json:"isLearner"`
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return fmt.Errorf("etcd's members as %s has them: %w: %s", name, err, out)
	}
	voters := 0
	for _, m := range list.Members {
		if !m.Learner {
			voters++
		}
	}
	if voters != sixMasters {
		return fmt.Errorf("of etcd's members as %s has them %d vote, not %d", name, voters, sixMasters)
	}
	return nil
}
