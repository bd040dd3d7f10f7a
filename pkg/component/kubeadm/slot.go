// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/renewal"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/upgrade"
)

// Kubernetes is made by kubeadm: a kubelet, and static pods of it on the control plane's hosts.
type Kubernetes struct{}

var _ component.Kubernetes = Kubernetes{}

// The outputs by which hosts join.
var (
	// bootstrapToken is a token that a kubelet may join with.
	bootstrapToken = graph.Output[string]{Name: "bootstrap-token"}
	// configUploaded: the cluster knows what joins its control plane.
	configUploaded = graph.Output[string]{Name: "kubeadm-config-uploaded"}
)

// Needs are the kubelet and kubeadm, and what the control plane's static pods are made of.
func (Kubernetes) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	programs, images := []string{"kubelet", "kubeadm"}, []component.Image(nil)
	if in.IsControlPlane() {
		programs = append(programs, "kubectl")
		images = component.ImagesNamed("kube-apiserver", "kube-controller-manager", "kube-scheduler")
	}
	return component.Needs{Programs: []component.Programs{{Component: "kubernetes", Names: programs}}, Images: images}
}

// Check refuses nothing: kubeadm does.
func (Kubernetes) Check(component.Inputs) error { return nil }

// Install puts the kubelet there, which kubeadm then starts.
func (Kubernetes) Install(in component.Inputs) plan.Task {
	etcdDir := ""
	if in.IsControlPlane() && in.Etcd.IsPod() {
		etcdDir = in.Target.Cluster.Etcd.DataDir
	}
	steps := []step.Step{Claim(etcdDir), kubelet.Programs(in.Programs("kubernetes")), kubelet.Unit(in.Runtime.Endpoint())}
	if in.OwnResolv() {
		steps = append(steps, kubelet.Resolv(component.Forwards(in.System)))
	}
	return plan.Task{Name: "kubelet", Steps: steps}
}

// ControlPlane has kubeadm make the first host of the control plane, or one more.
func (Kubernetes) ControlPlane(in component.Inputs) []plan.Task {
	c, n := cluster(in), in.Node()
	start := Init(c, n, component.Initialized)
	if !in.First() {
		after := append([]string{component.APIAnswers.Name, configUploaded.Name}, in.After...)
		start = JoinControlPlane(c, n, bootstrapToken, component.Joined(n.Name), after...)
	}
	steps := []step.Step{Authorities(in.Etcd.IsPod())}
	if in.Etcd.IsPod() {
		others := slices.DeleteFunc(in.Target.EtcdMembers(), func(m spec.Member) bool { return m.Name == in.Target.Host.Name })
		steps = append(steps, EtcdData(c, n, in.First(), others, component.RestoreUnderWay, component.RestoreHalted))
	}
	if c.Spec.Kubernetes.EncryptionAtRest.IsOn() {
		steps = append(steps, apiserver.Encryption(c.Spec.Kubernetes))
	}
	steps = append(steps, NodeCertificates(c, n), apiserver.Files(c.Spec.Kubernetes), start)
	steps = append(steps, StaticPods(c, n)...)
	return []plan.Task{{Name: "kubeadm", Steps: append(steps, follow(in, c, n)...)}}
}

// Worker has kubeadm join the host.
func (Kubernetes) Worker(in component.Inputs) []plan.Task {
	c, n := cluster(in), in.Node()
	steps := []step.Step{NodeCertificates(c, n), Join(c, n, bootstrapToken, component.Joined(n.Name))}
	return []plan.Task{{Name: "kubeadm", Steps: append(steps, follow(in, c, n)...)}}
}

// follow brings a kubelet that has joined to what it must be, whatever kubeadm once made of it.
func follow(in component.Inputs, c Cluster, n kubelet.Node) []step.Step {
	return []step.Step{
		BeginKubelet(c, n, upgrade.Dir),
		KubeletConfig(c, n),
		kubelet.Service(in.Programs("kubernetes"), KubeletReads()...),
		kubelet.Healthy(n.Kubelet),
		kubelet.EndChange(n.Kubelet),
	}
}

// Gates make a token for hosts that join, and tell the cluster what joins its control plane.
func (Kubernetes) Gates(in component.Inputs) []plan.Task {
	if in.First() {
		return nil
	}
	tasks := []plan.Task{{Name: "token", Steps: []step.Step{gate.Token(bootstrapToken, component.APIAnswers)}}}
	if in.IsControlPlane() {
		upload := Uploaded(cluster(in), component.APIAnswers, configUploaded)
		tasks = append(tasks, plan.Task{Name: "kubeadm-config", Steps: []step.Step{upload}})
	}
	return tasks
}

// Programs are all: the kubelet is one.
func (Kubernetes) Programs(in component.Inputs) []step.Artifact { return in.Programs("kubernetes") }

// Kept are the kubelet's configuration and the manifests.
func (Kubernetes) Kept(in component.Inputs) []string {
	return Kept(in.IsControlPlane(), in.Etcd.IsPod())
}

// Withdraw takes the API server's manifest away.
func (Kubernetes) Withdraw(in component.Inputs) plan.Task {
	return plan.Task{Name: "withdraw", Steps: []step.Step{Withdraw(cluster(in), in.Node())}}
}

// Halt takes the manifests away, but etcd's.
func (Kubernetes) Halt(in component.Inputs, id, done string, after ...string) plan.Task {
	return plan.Task{Name: "halt", Steps: []step.Step{Halt(cluster(in), in.Node(), component.RestoreDir, id, done, after...)}}
}

// Resume brings them back.
func (Kubernetes) Resume(in component.Inputs, id, done string, after ...string) plan.Task {
	return plan.Task{Name: "resume", Steps: Resume(cluster(in), in.Node(), component.RestoreDir, id, done, after...)}
}

// Restart has the kubelet restart the pods.
func (Kubernetes) Restart(in component.Inputs, r component.Restart, etcd []step.Step) []step.Step {
	return Restart(cluster(in), in.Node(), r, etcd)
}

// Certificates are the kubelet's, which it serves with. The one that it is a client with it renews itself.
func (Kubernetes) Certificates(in component.Inputs) []step.Step {
	if !in.IsNode() {
		return nil
	}
	return []step.Step{NodeCertificates(cluster(in), in.Node())}
}

// OtherCertificates are those that kubeadm makes.
func (Kubernetes) OtherCertificates(in component.Inputs) []component.Certificate {
	if !in.IsControlPlane() {
		return nil
	}
	var all []component.Certificate
	for _, name := range CertificateNames(cluster(in)) {
		all = append(all, certificate(name))
	}
	return all
}

// Renew has kubeadm renew them.
func (k Kubernetes) Renew(in component.Inputs, names []string, asked time.Time, after ...string) []step.Step {
	var ours []string
	for _, c := range k.OtherCertificates(in) {
		if slices.Contains(names, c.Name) {
			ours = append(ours, c.Name)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	return Renew(cluster(in), in.Node(), ours, asked, after...)
}

// Renewed waits for nothing: Renew has waited.
func (Kubernetes) Renewed(_ component.Inputs, done graph.Output[string]) step.Step {
	return renewal.Done(done)
}

// Steady is nothing: the kubelet restarts static pods, and the API tells of them.
func (Kubernetes) Steady(component.Inputs) []step.Step { return nil }

// EtcdClients are none: its API server is a static pod.
func (Kubernetes) EtcdClients(component.Inputs) []string { return nil }

// ArePods holds.
func (Kubernetes) ArePods() bool { return true }

// JoinsByKubeadm is true: it is what kubeadm init has made.
func (Kubernetes) JoinsByKubeadm() bool { return true }

// MakesEtcdPods holds: etcd is one of kubeadm's.
func (Kubernetes) MakesEtcdPods() bool { return true }

// Initialized is what the last phase of kubeadm init uploads.
func (Kubernetes) Initialized() string { return "kubeadm-config" }

// certificate is one that kubeadm makes.
func certificate(name string) component.Certificate {
	c := component.Certificate{Name: name, Path: pki + "/" + name + ".crt", Restarts: Restarts(name)}
	if path.Ext(name) == ".conf" {
		c.Path = dir + "/" + name
	} else if file, ofEtcd := strings.CutPrefix(name, "etcd-"); ofEtcd {
		c.Path = pki + "/etcd/" + file + ".crt"
	}
	return c
}

func cluster(in component.Inputs) Cluster {
	c := Cluster{Name: in.Target.ClusterName, Version: in.Target.KubernetesVersion, Spec: in.Cluster()}
	if in.Etcd.IsPod() {
		image := in.Etcd.Image(in)
		c.EtcdImageTag = image[strings.LastIndex(image, ":")+1:]
		return c
	}
	e := in.Etcd.Client(in)
	c.EtcdEndpoints, c.EtcdCA, c.EtcdCertificate, c.EtcdKey = e.Endpoints, e.CA, e.Certificate, e.Key
	return c
}
