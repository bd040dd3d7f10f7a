// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"maps"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/containerd"
)

// What kubeadm has made once is followed after that: StaticPods and KubeletConfig have kubeadm render what it would make now,
// and bring that to the host. By a file with what was rendered from, one knows whether there is anything to do.
const (
	podsFile    = dir + "/kubeadm-control-plane.yaml"
	kubeletFile = dir + "/kubeadm-kubelet.yaml"
	kubeletDir  = "/var/lib/kubelet"
)

var (
	//go:embed ready.sh
	ready string
	//go:embed static-pods.sh
	staticPods string
	//go:embed kubelet.sh
	kubeletConfig string
)

// Kept are the files that kubeadm writes by itself, and would write anew for another version.
func Kept(controlPlane, ownEtcd bool) []string {
	kept := []string{kubeletDir + "/config.yaml", kubeletDir + "/kubeadm-flags.env", kubeletDir + "/instance-config.yaml"}
	if controlPlane {
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			kept = append(kept, dir+"/manifests/"+component+".yaml")
		}
	}
	if controlPlane && ownEtcd {
		kept = append(kept, dir+"/manifests/etcd.yaml")
	}
	return kept
}

// KubeletReads are the files that the kubelet reads when it starts.
func KubeletReads() []string { return Kept(false, false) }

// StaticPods brings the control plane's static pods on this host to what c says: another version, or other settings. Etcd is
// changed first, then the API server, then those who use it, each when what comes before is Ready, and on one host of the cluster
// at a time where etcd is on its hosts. When one does not become Ready, those that were changed are put back.
func StaticPods(c Cluster, n Node) step.Step {
	config := podsConfig(c, n)
	own := "external"
	if len(c.EtcdEndpoints) == 0 {
		own = "local"
	}
	argv := []string{
		"/usr/bin/env", "name=" + n.Name, "host=" + inURL(n.Address), "port=" + itoa(c.Spec.ControlPlaneEndpoint.Port),
		"config=" + config, "etcd=" + own, "dir=" + dir, "ssl=" + etcdSSL, "renewal=" + ready + staticPods,
		"limit=" + seconds(renewLimit), "patience=" + seconds(patience), "logs=/var/log/pods", "/bin/sh", "-uc", certificatesAlone, "kubeadm",
	}
	return step.New(step.Meta{
		Name: "kubeadm/static-pods", Description: "bring the control plane's static pods up to date",
		Timeout: step.Duration(renewLimit + time.Minute), Disrupts: restarts,
	},
		step.Command{Title: "change the static pods", Argv: argv, Done: rendered(podsFile, config)},
		step.File{Path: podsFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// KubeletConfig brings the kubelet's configuration and flags to what c and n say. The kubelet is restarted for it by the step
// that runs it.
func KubeletConfig(c Cluster, n Node) step.Step {
	config := kubeletDocuments(c, n)
	return step.New(step.Meta{
		Name: "kubeadm/kubelet", Description: "bring the kubelet's configuration up to date", Disrupts: "restarts kubelet",
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(2 * time.Second)},
	},
		step.Command{
			Title: "configure the kubelet",
			Argv:  []string{"/usr/bin/env", "config=" + config, "dir=" + dir, "kubelet=" + kubeletDir, "/bin/sh", "-uc", kubeletConfig, "kubeadm"},
			Done:  rendered(kubeletFile, config),
		},
		step.File{Path: kubeletFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// rendered holds when file has this content: it is written last.
func rendered(file, content string) step.Done {
	sum := sha256.Sum256([]byte(content))
	return step.Done{Check: []string{
		"/bin/sh", "-c", `[ "$(sha256sum <"$1" | cut -c 1-64)" = "$2" ] || { echo "made of another $1"; exit 1; }`, "sh",
		file, hex.EncodeToString(sum[:]),
	}}
}

// made records that kubeadm has just made the host's static pods, or the kubelet's configuration, of this. From then on the file
// is another step's.
func made(file, content string) step.Step {
	return step.Command{Title: "record what kubeadm has made", Argv: []string{
		"/bin/sh", "-euc", `umask 077; printf %s "$2" >"$1.part"; mv "$1.part" "$1"`, "sh", file, content,
	}}
}

// Uploaded is a gate: it tells the cluster which version those are of that join its control plane from now on, which kubeadm
// asks the cluster for. done is made then.
func Uploaded(c Cluster, after, done graph.Output[string]) step.Step {
	config := documents(object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "kubeadm-config", "namespace": "kube-system"},
		"data": object{"ClusterConfiguration": documents(clusterConfiguration(c, Node{}))},
	})
	return step.New(step.Meta{
		Name: "kubeadm/config", Description: "tell the cluster what joins its control plane", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
		Makes: []string{done.Name},
	}, step.Apply{Title: "kubeadm's configuration", Manifest: step.Literal(config), After: []string{after.Name}})
}

// podsConfig is what the static pods are made of.
func podsConfig(c Cluster, n Node) string {
	return documents(
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": localEndpoint(c, n),
			"nodeRegistration": object{"name": n.Name, "criSocket": containerd.Socket},
		},
		clusterConfiguration(c, n), kubeletConfiguration(c),
	)
}

// kubeletDocuments are what the kubelet's configuration is made of. A worker has no keys of authorities, which kubeadm would take
// for a mistake if it saw their certificates: so it is told of another directory.
func kubeletDocuments(c Cluster, n Node) string {
	if n.Worker && len(n.Taints) > 0 {
		// As "kubeadm join" has it, for a Node that is deleted and registers anew.
		n.Kubelet.ExtraArgs = append([]spec.Arg{{Name: "register-with-taints", Value: taintFlag(n.Taints)}}, n.Kubelet.ExtraArgs...)
	}
	config := kubeletConfiguration(c)
	maps.Copy(config, kubeletOwn(n))
	config["containerRuntimeEndpoint"] = containerd.Socket
	config["authentication"] = object{"x509": object{"clientCAFile": pki + "/ca.crt"}}
	return documents(
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": localEndpoint(c, n),
			"nodeRegistration": registration(n),
		},
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": c.Name, "kubernetesVersion": c.Version,
			"certificatesDir": dir + "/none", "networking": networking(c),
		},
		config,
	)
}

func taintFlag(taints []taint) string {
	var all []string
	for _, t := range taints {
		value := ""
		if t.Value != "" {
			value = "=" + t.Value
		}
		all = append(all, t.Key+value+":"+t.Effect)
	}
	return strings.Join(all, ",")
}
