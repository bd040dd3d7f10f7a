// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/renewal"
)

// Certificates are those on the host that can be renewed. The kubelet of a host that kubeadm made renews the one that it is a client with.
func Certificates(in component.Inputs) []component.Certificate {
	var all []component.Certificate
	for _, c := range renewal.Certificates(in.Target.Host.Name, certificateSteps(in)) {
		all = append(all, component.Certificate{Name: c.Name, Path: c.Path})
	}
	if hasKubeadmCertificates(in) {
		for _, name := range kubeadm.CertificateNames(kubeadmCluster(in)) {
			all = append(all, kubeadmCertificate(name))
		}
	}
	return all
}

// RenewCertificates makes those with these names anew, once for each time at which it is asked for. Where there are none of
// them, nothing is done. The host's output component.Renewed is made when what uses them is well.
func RenewCertificates(in component.Inputs, names []string, asked time.Time, after ...string) plan.Task {
	host := in.Target.Host.Name
	t := plan.Task{Name: "certificates", Steps: renewal.Steps(host, certificateSteps(in), names, asked, after...)}
	if theirs := kubeadmNames(in, names); len(theirs) > 0 {
		t.Steps = append(t.Steps, kubeadm.Renew(kubeadmCluster(in), kubeadmNode(in), theirs, asked, after...))
	}
	done := component.Renewed(host)
	switch {
	case len(t.Steps) == 0:
	case in.IsControlPlane() && in.IsBinary():
		t.Steps = append(t.Steps, kubernetes.Ready(binaryCluster(in), done))
	default:
		t.Steps = append(t.Steps, renewal.Done(done))
	}
	return t
}

// certificateSteps are the steps that make the host's certificates, but for kubeadm's.
func certificateSteps(in component.Inputs) []step.Step {
	var steps []step.Step
	if in.RunsEtcd() {
		steps = append(steps, etcd.Certificates(etcdSettings(in)))
	}
	e := in.Target.Cluster.Etcd
	if in.IsControlPlane() && e.Type != spec.EtcdExternal && (in.IsBinary() || e.Type == spec.EtcdKubexm) {
		steps = append(steps, etcd.ClientCertificates(in.Target.Cluster.Certificates, in.Target.Host.Name))
	}
	if in.IsControlPlane() && in.IsBinary() {
		steps = append(steps, kubernetes.Certificates(binaryCluster(in), binaryNode(in)))
	}
	if in.IsNode() && in.IsBinary() {
		steps = append(steps, kubernetes.NodeCertificates(binaryCluster(in), binaryNode(in)))
	}
	if in.IsNode() && !in.IsBinary() {
		steps = append(steps, kubeadm.NodeCertificates(kubeadmCluster(in), kubeadmNode(in)))
	}
	return steps
}

func hasKubeadmCertificates(in component.Inputs) bool { return in.IsControlPlane() && !in.IsBinary() }

func kubeadmNames(in component.Inputs, names []string) []string {
	if !hasKubeadmCertificates(in) {
		return nil
	}
	all := kubeadm.CertificateNames(kubeadmCluster(in))
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(names, name) })
}

// kubeadmCertificate is one that kubeadm makes.
func kubeadmCertificate(name string) component.Certificate {
	const dir = "/etc/kubernetes/"
	c := component.Certificate{Name: name, Path: dir + "pki/" + name + ".crt"}
	if path.Ext(name) == ".conf" {
		c.Path = dir + name
	} else if file, ofEtcd := strings.CutPrefix(name, "etcd-"); ofEtcd {
		c.Path = dir + "pki/etcd/" + file + ".crt"
	}
	c.Restarts = kubeadm.Restarts(name)
	return c
}
