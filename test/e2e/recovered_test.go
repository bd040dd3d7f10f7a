// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// recovered loses the Secrets of all key pairs, and has them read back from the control plane's host: byte for byte, and nothing of the
// cluster is another.
func recovered(e *environment) {
	ctx := e.t.Context()
	before := e.stands()
	lost := map[string]*corev1.Secret{}
	for _, name := range pki.AllNames() {
		secret, err := get(ctx, e, clusterName+"-"+name, &corev1.Secret{})
		if client.IgnoreNotFound(err) == nil && err != nil && name == pki.EncryptionName {
			continue // the cluster does not encrypt
		}
		e.Expect(err).NotTo(HaveOccurred())
		lost[secret.Name] = secret.DeepCopy()
		e.Expect(e.api.Delete(ctx, secret)).To(Succeed())
	}
	e.Eventually(func(g Gomega) {
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		before := controlPlane.DeepCopy()
		metav1.SetMetaDataAnnotation(&controlPlane.ObjectMeta, controlplanev1.RecoverCertificatesAnnotation, controlplanev1.RecoverFromAny)
		g.Expect(e.api.Patch(ctx, controlPlane, client.MergeFrom(before))).To(Succeed())
	}).Should(Succeed())
	e.Eventually(func(g Gomega) {
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(controlPlane.Annotations).NotTo(HaveKey(controlplanev1.RecoverCertificatesAnnotation),
			conditions.GetMessage(controlPlane, controlplanev1.CertificatesAvailableCondition))
		g.Expect(conditions.IsTrue(controlPlane, controlplanev1.CertificatesAvailableCondition)).To(BeTrue())
	}, converging).Should(Succeed())
	for name, was := range lost {
		is, err := get(ctx, e, name, &corev1.Secret{})
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(is.Data).To(Equal(was.Data), name)
		e.Expect(is.Type).To(Equal(was.Type))
		e.Expect(metav1.GetControllerOf(is).UID).To(Equal(metav1.GetControllerOf(was).UID), name)
	}
	e.expectStands(before)
	e.expectReady(1)
}
