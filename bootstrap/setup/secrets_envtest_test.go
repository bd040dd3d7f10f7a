// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestSecretsOfOthers: a KubexmConfig that is called as somebody's certificate authority leaves that as it is, also when it is deleted; and
// one that asks for a Secret that is not for hosts gets no host changed.
func TestSecretsOfOthers(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	used := f.used()

	authority := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "other-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "other"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key")},
	}
	f.create(authority)
	files := []spec.File{{Path: "/etc/stolen", ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: "other-ca", Key: "tls.key"}}}}
	config := func(name string) *bootstrapv1.KubexmConfig {
		found := &bootstrapv1.KubexmConfig{}
		f.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)).To(Succeed())
		return found
	}
	for name, of := range map[string][]spec.File{"other-ca": nil, "thief": files} {
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Files = of
		f.create(c, &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}, &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1.MachineSpec{
				ClusterName: "prod", Version: version,
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: name},
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: name,
				}},
			},
		})
	}
	f.Eventually(func() string {
		return conditions.GetMessage(config("other-ca"), bootstrapv1.DataSecretAvailableCondition)
	}, patience, 50*time.Millisecond).Should(ContainSubstring("is not this KubexmConfig's"))
	f.Eventually(func() string {
		return conditions.GetMessage(config("thief"), bootstrapv1.HostConvergedCondition)
	}, patience, 50*time.Millisecond).Should(ContainSubstring("spec.files[0].contentFrom.secret.name: the Secret other-ca is of type cluster.x-k8s.io/secret"))
	f.Expect(f.used()).To(ConsistOf(used), "a host was changed")

	f.Expect(f.api.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other-ca"}})).To(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "other-ca"}, &bootstrapv1.KubexmConfig{}))
	}, patience, 50*time.Millisecond).Should(BeTrue(), "the KubexmConfig is still there")
	after := &corev1.Secret{}
	f.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(authority), after)).To(Succeed())
	f.Expect(after.Data).To(Equal(authority.Data))
	f.Expect(after.OwnerReferences).To(BeEmpty())
}
