// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// moved takes a cluster from the management cluster to the plane of the command, and back; and the management cluster itself, which
// the command has made, into itself, and back. Status is left behind by clusterctl each time, and found again on the hosts.
func moved(l *environment) {
	home := l.kubeconfig
	itself := cluster{namespace: "default", name: l.management.Name, controlPlanes: 1, workers: 1, version: release}
	plane, stop := l.runPlane()
	l.copyProviders(plane)
	l.move(prod, l.claimed(), plane)
	l.move(prod, l.claimed(), home)
	l.connect(plane)
	l.expectReady(itself)
	l.move(itself, l.management.Hosts, home)
	stop()

	out, err := l.management.Run(l.t.Context(), "delete", "cluster", itself.name, "--yes")
	l.Expect(err).To(HaveOccurred(), out)
	l.Expect(out).To(ContainSubstring("another management cluster has it"))

	_, stop = l.runPlane()
	l.move(itself, l.management.Hosts, plane)
	stop()
	out, err = l.management.Run(l.t.Context(), l.management.CreateArgs()...)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(out).To(ContainSubstring("0 changes"))
	l.connect(home)
}

// move moves a cluster, and wants its hosts not to be touched by that.
func (l *environment) move(c cluster, on []*hosts.Host, to string) {
	l.t.Helper()
	before := l.marks(on...)
	l.clusterctl(nil, "move", "--namespace", c.namespace, "--to-kubeconfig", to)
	l.connect(to)
	l.expectReady(c)
	l.Expect(l.marks(on...)).To(Equal(before))
}

// runPlane runs the plane from which the management cluster was made, until stop is called, and returns its kubeconfig.
func (l *environment) runPlane() (kubeconfig string, stop func()) {
	l.t.Helper()
	kubeconfig, end, err := l.management.Plane(l.t.Context())
	l.Expect(err).NotTo(HaveOccurred())
	return kubeconfig, func() {
		l.t.Helper()
		l.Expect(end()).To(Succeed())
	}
}

// copyProviders writes to another management cluster that the same providers are installed there, as clusterctl init would:
// clusterctl moves nothing to where they are not.
func (l *environment) copyProviders(kubeconfig string) {
	l.t.Helper()
	ctx := l.t.Context()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	l.Expect(l.api.Get(ctx, client.ObjectKey{Name: "providers." + clusterctlv1.GroupVersion.Group}, definition)).To(Succeed())
	all := &clusterctlv1.ProviderList{}
	l.Expect(l.api.List(ctx, all)).To(Succeed())

	other := l.in(l.t)
	other.connect(kubeconfig)
	definition.ObjectMeta = metav1.ObjectMeta{Name: definition.Name, Labels: definition.Labels}
	other.Expect(other.api.Create(ctx, definition)).To(Succeed())
	for i := range all.Items {
		p := &all.Items[i]
		p.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels}
		other.Expect(other.api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}})).To(Succeed())
		other.Eventually(func() error { return other.api.Create(ctx, p.DeepCopy()) }).Should(Succeed()) // once it is served
	}
}
