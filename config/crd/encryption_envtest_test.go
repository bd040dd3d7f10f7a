// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package crd_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Whether a cluster encrypts is written down when its control plane is created, by whatever verb, and stays; an object that has begun
// elsewhere is taken as it is.
func TestEncryptionIsWrittenAtCreation(t *testing.T) {
	const recorded = "annotations: {" + controlplanev1.AuthoritiesAnnotation + ": \"ca=sha256:0\"}, "
	for name, tc := range map[string]struct {
		said, meta string
		want       spec.EncryptionProvider
		applied    bool
	}{
		"encrypted-created": {want: spec.EncryptionSecretbox},
		"encrypted-applied": {want: spec.EncryptionSecretbox, applied: true},
		"encrypted-aescbc":  {said: "cluster: {kubernetes: {encryptionAtRest: {provider: AESCBC, resources: [secrets, configmaps]}}}", want: spec.EncryptionAESCBC},
		"encrypted-not":     {said: "cluster: {kubernetes: {encryptionAtRest: {provider: None}}}", want: spec.EncryptionNone},
		"encrypted-moved":   {meta: recorded},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := strings.Replace(fmt.Sprintf(controlPlane, name, tc.said), "metadata: {", "metadata: {"+tc.meta, 1)
			apply := func() error {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
					return err
				}
				object.SetNamespace("default")
				return api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership)
			}
			if tc.applied {
				g.Eventually(apply, "30s").Should(Succeed())
				g.Expect(apply()).To(Succeed()) // once more, of which the field is no part
			} else {
				g.Expect(create(t, text)).To(Succeed())
			}
			made := &controlplanev1.KubexmControlPlane{}
			g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, made)).To(Succeed())
			g.Expect(made.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider).To(Equal(tc.want))

			other := spec.EncryptionSecretbox
			if tc.want == other {
				other = spec.EncryptionNone
			}
			for _, change := range []string{
				fmt.Sprintf(`{"spec":{"cluster":{"kubernetes":{"encryptionAtRest":{"provider":%q,"resources":null}}}}}`, other),
			} {
				err := api.Patch(t.Context(), made.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(change)))
				g.Expect(err).To(MatchError(ContainSubstring("spec.cluster.kubernetes.encryptionAtRest.provider: Invalid value")), change)
			}
			g.Expect(api.Patch(t.Context(), made.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(
				`{"spec":{"cluster":{"kubernetes":{"kubelet":{"maxPods":50}}}}}`)))).To(Succeed())
		})
	}
}
