// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestSourceOf: an object store is read with a Secret that says that it is for this, and with no other.
func TestSourceOf(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "op"}}
	o.Spec.RestoreEtcd.Snapshot.Bucket = bootstrapv1.EtcdSnapshotInBucket{
		Location: "s3://backups/prod/etcd-prod-20261123T030000Z-cp1.db", Endpoint: "https://s3.example:9000",
		SecretRef: spec.SecretReference{Name: "store"},
	}
	store := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "store", Labels: map[string]string{
				bootstrapv1.ForHostsLabel: bootstrapv1.ForHostsObjectStore,
			}},
			Data: map[string][]byte{keyAccessKeyID: []byte("an-id"), keySecretAccessKey: []byte("a-secret")},
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"all of it":           {func(*corev1.Secret) {}, ""},
		"this object store's": {func(s *corev1.Secret) { s.Data[keyEndpoint] = []byte("https://s3.example:9000") }, ""},
		"another object store's": {func(s *corev1.Secret) { s.Data[keyEndpoint] = []byte("https://s3.example:9443") },
			`the Secret store (endpoint) is for "https://s3.example:9443" alone, and spec.restoreEtcd.snapshot.bucket.endpoint is ` +
				`"https://s3.example:9000"`},
		"AWS's":     {func(s *corev1.Secret) { s.Data[keyEndpoint] = nil }, "the Secret store (endpoint) is for AWS's alone"},
		"no Secret": {func(s *corev1.Secret) { s.Name = "other" }, "get the Secret store"},
		"a Secret for hosts": {func(s *corev1.Secret) {
			s.Labels[bootstrapv1.ForHostsLabel] = bootstrapv1.ForHostsCredentials
		}, "kubectl label secret -n fleet store bootstrap.cluster.x-k8s.io/for-hosts=object-store"},
		"no key":       {func(s *corev1.Secret) { delete(s.Data, keySecretAccessKey) }, "has no secret-access-key"},
		"no authority": {func(s *corev1.Secret) { s.Data[keyAuthorities] = []byte("x") }, "has no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			s := store()
			tc.change(s)
			r := &KubexmOperationReconciler{Reader: clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(s).Build()}
			from, err := r.sourceOf(t.Context(), o, &engine.Options{})
			if tc.want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "a-secret")) {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			if in, ok := from.(backup.InBucket); err == nil && (!ok || in.Name != "etcd-prod-20261123T030000Z-cp1" || in.Bucket.String() != "s3://backups/prod") {
				t.Errorf("it is read from %+v", from)
			}
		})
	}
	o.Spec.RestoreEtcd.Snapshot.Bucket.Endpoint = ""
	for endpoint, want := range map[string]string{"": "", "https://s3.example:9000": "bucket.endpoint is AWS's"} {
		s := store()
		s.Data[keyEndpoint] = []byte(endpoint)
		r := &KubexmOperationReconciler{Reader: clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(s).Build()}
		_, err := r.sourceOf(t.Context(), o, &engine.Options{})
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("AWS's is asked for, and the Secret is for %q: %v, want %q", endpoint, err, want)
		}
	}
	if _, err := (snapshot{digest: "sha256:a"}).Open(t.Context(), step.Artifact{Digest: "sha256:b"}); err == nil {
		t.Error("something else than the snapshot is sent")
	}
}
