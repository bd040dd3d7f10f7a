// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// serving: the host's own API server is ready.
func serving(name string) graph.Output[string] { return graph.Output[string]{Name: "serving/" + name} }

// Components installs Kubernetes' components, and makes what all hosts have of the cluster's trust.
func Components(in component.Inputs) plan.Task {
	steps := []step.Step{kubernetes.Claim(), kubernetes.Programs(in.Programs("kubernetes"))}
	if in.OwnResolv() {
		steps = append(steps, kubelet.Resolv(component.Forwards(in.System)))
	}
	if in.IsControlPlane() {
		steps = append(steps, kubernetes.Authorities())
	} else {
		steps = append(steps, kubernetes.WorkerAuthority())
	}
	return plan.Task{Name: "components", Steps: steps}
}

// NodeComponents run the kubelet and kube-proxy. They need no API server to start.
func NodeComponents(in component.Inputs) plan.Task {
	c, n := binaryCluster(in), binaryNode(in)
	done := component.Joined(in.Target.Host.Name)
	return plan.Task{Name: "node", Steps: []step.Step{
		kubernetes.NodeCertificates(c, n),
		kubernetes.NodeKubeconfigs(c, n),
		kubernetes.FollowKubelet(c, n, upgrade.Dir),
		kubernetes.Kubelet(c, n),
		kubelet.Healthy(n.Kubelet),
		kubernetes.Proxy(c, n),
		kubernetes.Joined(done),
	}}
}

// ControlPlaneComponents run the API server and the controllers.
func ControlPlaneComponents(in component.Inputs) plan.Task {
	c, n := binaryCluster(in), binaryNode(in)
	done := serving(in.Target.Host.Name)
	if in.First() {
		done = component.Initialized
	}
	steps := []step.Step{kubernetes.Certificates(c, n), kubernetes.Kubeconfigs(c, n), apiserver.Files(c.Spec.Kubernetes)}
	if k := c.Spec.Kubernetes; k.EncryptionAtRest.IsOn() {
		steps = append(steps, apiserver.Encryption(k))
	}
	return plan.Task{Name: "control-plane", Steps: append(steps,
		kubernetes.Follow(c, n, upgrade.Dir),
		kubernetes.APIServer(c, n),
		kubernetes.Ready(c, done),
		kubernetes.ControllerManager(c, n),
		kubernetes.Scheduler(c, n),
	)}
}

// Administrators binds the roles of the certificates on control plane hosts.
func Administrators(component.Inputs) plan.Task {
	return plan.Task{Name: "administrators", Steps: []step.Step{kubernetes.Administrators(component.APIAnswers)}}
}

func binaryCluster(in component.Inputs) kubernetes.Cluster {
	t := in.Target
	c := kubernetes.Cluster{
		Name: t.ClusterName, Spec: in.Cluster(), EtcdEndpoints: etcdEndpoints(in), EtcdSecure: true,
	}
	if e := t.Cluster.Etcd; e.Type == spec.EtcdExternal {
		c.EtcdSecure = e.External.IsSecure()
	}
	return c
}

func binaryNode(in component.Inputs) kubernetes.Node {
	resolv := ""
	if in.OwnResolv() {
		resolv = kubelet.ResolvConf
	}
	n := kubernetes.NodeOf(&in.Target, in.Runtime.Endpoint(), resolv)
	n.SecondAddress = in.SecondAddress()
	n.CgroupDriver, n.CgroupVersion = in.CgroupDriver(), in.System.CgroupVersion
	return n
}
