// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/renewal"
)

// Certificate is one on a host that can be renewed.
type Certificate struct {
	// Name is what it is asked for by, and Path its file.
	Name, Path string
	// Restarts is the component that is restarted for it, "" when those who use it read it anew.
	Restarts string
}

// NewInstalled are the inputs for a host that has its artifacts: they need no bundle.
func NewInstalled(t spec.Target) Inputs {
	t.Default()
	return Inputs{Target: t}
}

// Certificates are those on the host that can be renewed. The kubelet of a host that kubeadm made renews the one that it is a client with.
func Certificates(in Inputs) []Certificate {
	var all []Certificate
	for _, c := range renewal.Certificates(in.Target.Host.Name, in.certificateSteps()) {
		all = append(all, Certificate{Name: c.Name, Path: c.Path})
	}
	if in.hasKubeadmCertificates() {
		for _, name := range kubeadm.CertificateNames(in.kubeadmCluster()) {
			all = append(all, kubeadmCertificate(name))
		}
	}
	return all
}

// RenewCertificates makes those with these names anew, once for each time at which it is asked for. Where there are none of
// them, nothing is done. The host's output Renewed is made when what uses them is well.
func RenewCertificates(in Inputs, names []string, asked time.Time, after ...string) plan.Task {
	host := in.Target.Host.Name
	t := plan.Task{Name: "certificates", Steps: renewal.Steps(host, in.certificateSteps(), names, asked, after...)}
	if theirs := in.kubeadmNames(names); len(theirs) > 0 {
		t.Steps = append(t.Steps, kubeadm.Renew(in.kubeadmCluster(), in.kubeadmNode(), theirs, asked, after...))
	}
	done := renewed(host)
	switch {
	case len(t.Steps) == 0:
	case in.isControlPlane() && in.isBinary():
		t.Steps = append(t.Steps, kubernetes.Ready(in.binaryCluster(), done))
	default:
		t.Steps = append(t.Steps, renewal.Done(done))
	}
	return t
}

// renewed: the host's certificates are renewed, and what uses them is well.
func renewed(name string) graph.Output[string] {
	return graph.Output[string]{Name: "certificates-renewed/" + name}
}

// Renewed is the name of the output that a host makes when its certificates are renewed.
func Renewed(name string) string { return renewed(name).Name }

// certificateSteps are the steps that make the host's certificates, but for kubeadm's.
func (in Inputs) certificateSteps() []step.Step {
	var steps []step.Step
	if in.runsEtcd() {
		steps = append(steps, etcd.Certificates(in.etcdSettings()))
	}
	e := in.Target.Cluster.Etcd
	if in.isControlPlane() && e.Type != spec.EtcdExternal && (in.isBinary() || e.Type == spec.EtcdKubexm) {
		steps = append(steps, etcd.ClientCertificates(in.Target.Cluster.Certificates, in.Target.Host.Name))
	}
	if in.isControlPlane() && in.isBinary() {
		steps = append(steps, kubernetes.Certificates(in.binaryCluster(), in.binaryNode()))
	}
	if in.isNode() && in.isBinary() {
		steps = append(steps, kubernetes.NodeCertificates(in.binaryCluster(), in.binaryNode()))
	}
	if in.isNode() && !in.isBinary() {
		steps = append(steps, kubeadm.NodeCertificates(in.kubeadmCluster(), in.kubeadmNode()))
	}
	return steps
}

func (in Inputs) hasKubeadmCertificates() bool { return in.isControlPlane() && !in.isBinary() }

func (in Inputs) kubeadmNames(names []string) []string {
	if !in.hasKubeadmCertificates() {
		return nil
	}
	all := kubeadm.CertificateNames(in.kubeadmCluster())
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(names, name) })
}

// kubeadmCertificate is one that kubeadm makes.
func kubeadmCertificate(name string) Certificate {
	const dir = "/etc/kubernetes/"
	c := Certificate{Name: name, Path: dir + "pki/" + name + ".crt"}
	if path.Ext(name) == ".conf" {
		c.Path = dir + name
	} else if file, ofEtcd := strings.CutPrefix(name, "etcd-"); ofEtcd {
		c.Path = dir + "pki/etcd/" + file + ".crt"
	}
	c.Restarts = kubeadm.Restarts(name)
	return c
}
