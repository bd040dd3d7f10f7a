// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/turn"
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
	//go:embed manifests.sh
	manifests string
	//go:embed manifests-check.sh
	manifestsCheck string
	//go:embed manifests-made.sh
	manifestsMade string
	//go:embed static-pods.sh
	staticPods string
	//go:embed withdraw.sh
	withdraw string
	//go:embed withdraw-check.sh
	withdrawCheck string
	//go:embed kubelet.sh
	kubeletConfig string
)

// Kept are the files that kubeadm writes by itself, and would write anew for another version.
func Kept(controlPlane, ownEtcd bool) []string {
	kept := []string{kubeletDir + "/config.yaml", kubeletDir + "/kubeadm-flags.env", kubeletDir + "/instance-config.yaml"}
	if !controlPlane {
		return kept
	}
	for _, of := range []string{"manifests", "kubexm-manifests"} {
		for _, component := range components(ownEtcd) {
			kept = append(kept, path.Join(dir, of, component+".yaml"))
		}
	}
	return kept
}

// components are the static pods that kubeadm makes, in the order in which they are changed.
func components(ownEtcd bool) []string {
	users := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if ownEtcd {
		return append([]string{"etcd"}, users...)
	}
	return users
}

// KubeletReads are the files that the kubelet reads when it starts.
func KubeletReads() []string { return Kept(false, false) }

// StaticPods brings the control plane's static pods on this host to what c says: another version, or other settings, or what they
// were before somebody changed a manifest. Etcd is changed first, then the API server, then those who use it, each when what comes
// before is Ready, and on one host of the cluster at a time. When one does not become Ready, those that were changed are put back.
func StaticPods(c Cluster, n Node) step.Step {
	config := podsConfig(c, n)
	argv := []string{
		"/usr/bin/env", "name=" + n.Name, "host=" + inURL(n.Address), "port=" + itoa(c.Spec.ControlPlaneEndpoint.Port),
		"config=" + config, componentsOf(c), "dir=" + dir, "logs=/var/log/pods",
	}
	argv = append(argv, inTurn(c, n, "", "", manifests+staticPods)...)
	argv = append(argv, "/bin/sh", "-uc", ready+turn.Script+certificatesAlone, "kubeadm")
	check := []string{
		"/usr/bin/env", componentsOf(c), "dir=" + dir, "digest=" + digest(config), "/bin/sh", "-uc", manifests + manifestsCheck, "kubeadm",
	}
	return step.New(step.Meta{
		Name: "kubeadm/static-pods", Description: "bring the control plane's static pods up to date",
		Timeout: step.Duration(renewLimit + time.Minute), Disrupts: restarts,
	},
		step.Command{Title: "change the static pods", Argv: argv, Done: step.Done{Check: check}},
		step.File{Path: podsFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// Withdraw ends the host's API server, which lets those go first that wait for answers.
func Withdraw(c Cluster, n Node) step.Step {
	argv := func(script string) []string {
		return []string{
			"/usr/bin/env", "name=" + n.Name, "host=" + inURL(n.Address), "port=" + itoa(c.Spec.ControlPlaneEndpoint.Port), "dir=" + dir,
			"patience=" + seconds(withdrawLimit), "/bin/sh", "-uc", ready + script, "kubeadm",
		}
	}
	return step.New(step.Meta{Name: "kubeadm/withdraw", Description: "end the API server, before its etcd goes"}, step.Command{
		Title: "end kube-apiserver", Argv: argv(withdraw), Done: step.Done{Check: argv(withdrawCheck)},
		Timeout: step.Duration(withdrawLimit + 20*time.Second),
	})
}

// withdrawLimit is how long an API server may take to end: the kubelet kills it after half a minute.
const withdrawLimit = time.Minute

// KubeletConfig brings the kubelet's configuration and flags to what c and n say. The kubelet is restarted for it by the step
// that runs it; one that runs already is restarted here, and when it does not become healthy, what was there before is put back.
// upgrading is a path that exists while programs are replaced.
func KubeletConfig(c Cluster, n Node, upgrading string) step.Step {
	config := kubeletDocuments(c, n)
	argv := append([]string{"/usr/bin/env", "config=" + config, "dir=" + dir, "kubelet=" + kubeletDir},
		kubelet.Environment(n.Kubelet, upgrading)...)
	return step.New(step.Meta{
		Name: "kubeadm/kubelet", Description: "bring the kubelet's configuration up to date", Disrupts: "restarts kubelet",
		Timeout: step.Duration(5 * time.Minute),
	},
		step.Command{
			Title: "configure the kubelet",
			Argv:  append(argv, "/bin/sh", "-uc", kubelet.ChangeScript()+kubeletConfig, "kubeadm"),
			Done:  rendered(kubeletFile, config),
		},
		step.File{Path: kubeletFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// rendered holds when file has this content: it is written last.
func rendered(file, content string) step.Done {
	return step.Done{Check: []string{
		"/bin/sh", "-c", `[ "$(sha256sum <"$1" | cut -c 1-64)" = "$2" ] || { echo "made of another $1"; exit 1; }`, "sh",
		file, digest(content),
	}}
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// componentsOf tells a script the static pods that there are.
func componentsOf(c Cluster) string {
	return "components=" + strings.Join(components(len(c.EtcdEndpoints) == 0), " ")
}

// madePods records that kubeadm has just made the host's static pods. From then on that is for StaticPods to say.
func madePods(c Cluster, n Node) step.Step {
	return step.Command{Title: "record what kubeadm has made", Argv: []string{
		"/usr/bin/env", "config=" + podsConfig(c, n), componentsOf(c), "dir=" + dir, "/bin/sh", "-uc", ready + manifests + manifestsMade, "kubeadm",
	}}
}

// made records that kubeadm has just made the kubelet's configuration of this. From then on the file is another step's.
func made(file, content string) step.Step {
	return step.Command{Title: "record what kubeadm has made", Argv: []string{
		"/bin/sh", "-euc", `umask 077; chmod 0600 "$3/config.yaml"; printf %s "$2" >"$1.part"; mv "$1.part" "$1"`, "sh",
		file, content, kubeletDir,
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
			"nodeRegistration": object{"name": n.Name, "criSocket": n.Runtime.Socket}, "patches": object{"directory": patches},
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
	config["containerRuntimeEndpoint"] = n.Runtime.Socket
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
