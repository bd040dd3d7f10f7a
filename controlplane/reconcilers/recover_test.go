// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// lost is a cluster with a record and a Machine, whose Secrets for etcd and for service accounts are gone.
func lost(t *testing.T) (*KubexmControlPlaneReconciler, *scope, *pki.Authorities, pki.Fingerprints) {
	t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: controlled(ofProd("prod-1", clusterv1.MachineControlPlaneLabel))}
	machine.OwnerReferences[0].UID = "1"
	machine.Spec.Bootstrap.ConfigRef.Name = "prod-1"
	config := &bootstrapv1.KubexmConfig{ObjectMeta: ofProd("prod-1")}
	r, s := testReconciler(t, testScope().Object, machine, config), testScope()
	r.Events = events.NewFakeRecorder(9)
	if err := r.reconcileAuthorities(t.Context(), s); err == nil {
		t.Fatal("pairs were made for a cluster that exists")
	}
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	r.bringAll(t, &pairs)
	r.load(t, s)
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prod-etcd", "prod-sa"} {
		if err := r.Client.Delete(t.Context(), r.secret(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	prints, err := pairs.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	return r, s, &pairs, prints
}

// load reads what a reconcile would.
func (r *KubexmControlPlaneReconciler) load(t *testing.T, s *scope) {
	t.Helper()
	object := &controlplanev1.KubexmControlPlane{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Object), object); err != nil {
		t.Fatal(err)
	}
	object.Spec = s.Object.Spec
	s.Object, s.Now = object, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var err error
	if s.Machines, err = machinesOf(t.Context(), r.Client, s.Cluster); err != nil {
		t.Fatal(err)
	}
	if s.Configs, err = configsOf(t.Context(), r.Client, s.Cluster); err != nil {
		t.Fatal(err)
	}
}

// request annotates the control plane.
func (r *KubexmControlPlaneReconciler) request(t *testing.T, s *scope, from string) {
	t.Helper()
	before := s.Object.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.Object.ObjectMeta, controlplanev1.RecoverCertificatesAnnotation, from)
	if err := r.Client.Patch(t.Context(), s.Object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.load(t, s)
}

// TestRecovers: a host is asked for the pairs that are missing, by the fingerprints that they must have, and the request goes when they are
// back, and not before.
func TestRecovers(t *testing.T) {
	r, s, _, prints := lost(t)
	refused(t, r, s, controlplanev1.AuthorityMissingReason,
		"kubectl annotate kubexmcontrolplane -n fleet prod "+controlplanev1.RecoverCertificatesAnnotation+"=any")
	if s.Configs[0].AskedRecovery() != "" {
		t.Error("a host is asked though nobody wants that")
	}

	r.request(t, s, "prod-w1")
	refused(t, r, s, controlplanev1.AuthorityMissingReason, `has "prod-w1", and wants one of: prod-1, any`)
	r.request(t, s, "prod-1")
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "They are being read from the host of the Machine prod-1")
	r.load(t, s)
	asked := s.Configs[0].Asked(bootstrapv1.RecoverCertificatesAnnotation)
	if want := "etcd=" + prints["etcd"] + ",sa=" + prints["sa"]; !asked.Equal(s.Now) || s.Configs[0].AskedRecovery() != want {
		t.Errorf("asked at %s for %q, want %q", asked, s.Configs[0].AskedRecovery(), want)
	}
	before := s.Configs[0].ResourceVersion
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "They are being read")
	if r.load(t, s); s.Configs[0].ResourceVersion != before {
		t.Error("the host is asked again while it is waited for")
	}
	s.Configs[0].Status.SetOperation(bootstrapv1.OperationStatus{
		Type:        bootstrapv1.RecoverCertificatesOperation,
		RequestTime: metav1.NewTime(asked), EndTime: metav1.NewTime(asked), Outcome: bootstrapv1.RunFailed, Message: "there is no etcd/ca.key",
	})
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "could not be read from the host of the Machine prod-1: there is no etcd/ca.key")
	if !s.wantsRecovery() {
		t.Error("the request is gone though it is not fulfilled")
	}

	other, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "sa"} {
		pair, _ := other.Get(name)
		if err := r.Client.Create(t.Context(), bring("prod-"+name, pair.Cert, pair.Key.Reveal())); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, r, s, controlplanev1.AuthorityDiffersReason, "delete the Secret and have the key pairs read back")
	if !s.wantsRecovery() {
		t.Error("the request is gone though others are there")
	}
}

// TestRecovered: the request is removed when all is there, and an event says so.
func TestRecovered(t *testing.T) {
	r, s, pairs, prints := lost(t)
	r.request(t, s, controlplanev1.RecoverFromAny)
	for _, name := range []string{"etcd", "sa"} {
		pair, _ := pairs.Get(name)
		if err := r.Client.Create(t.Context(), bring("prod-"+name, pair.Cert, pair.Key.Reveal())); err != nil {
			t.Fatal(err)
		}
	}
	recorder := events.NewFakeRecorder(1)
	r.Events = recorder
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if said := <-recorder.Events; !strings.Contains(said, "CertificatesRecovered") {
		t.Errorf("it says %q", said)
	}
	r.load(t, s)
	if s.wantsRecovery() || s.Object.Annotations[controlplanev1.AuthoritiesAnnotation] != prints.String() {
		t.Errorf("it is left with %v", s.Object.Annotations)
	}
	if s.describe(); !conditions.IsTrue(s.Object, controlplanev1.CertificatesAvailableCondition) {
		t.Error("the condition says otherwise")
	}
}

// TestRecoversNothingUnknown: what nothing is recorded of is not taken from a host, unless the KubexmClusterConfig or the user says which
// it is; and a request keeps a control plane from making pairs of its own.
func TestRecoversNothingUnknown(t *testing.T) {
	r, s := testReconciler(t, testScope().Object), testScope()
	r.Events = events.NewFakeRecorder(9)
	r.request(t, s, controlplanev1.RecoverFromAny)
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "nothing is recorded of ca, etcd, proxy, sa", controlplanev1.AuthoritiesAnnotation)

	r, s, _, prints := lost(t)
	recorded := s.Object.DeepCopy()
	delete(recorded.Annotations, controlplanev1.AuthoritiesAnnotation)
	if err := r.Client.Update(t.Context(), recorded); err != nil {
		t.Fatal(err)
	}
	r.request(t, s, controlplanev1.RecoverFromAny)
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "nothing is recorded of etcd, sa")
	s.clusterConfig = &bootstrapv1.KubexmClusterConfig{}
	for _, name := range []string{"etcd", "sa"} {
		recorded := bootstrapv1.AuthorityFingerprint{Name: name, Fingerprint: prints[name]}
		s.clusterConfig.Spec.Authorities = append(s.clusterConfig.Spec.Authorities, recorded)
	}
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "They are being read from the host of the Machine prod-1")
}

// TestExternalEtcdsPair: nothing is signed by it, and no host has it, so it is made anew and not asked for.
func TestExternalEtcdsPair(t *testing.T) {
	r, s, pairs, prints := lost(t)
	r.request(t, s, controlplanev1.RecoverFromAny)
	s.Object.Spec.Cluster.Etcd.Type = spec.EtcdExternal
	refused(t, r, s, controlplanev1.AuthorityMissingReason, "missing: Secret prod-sa. ")
	r.load(t, s)
	if want := "sa=" + prints["sa"]; s.Configs[0].AskedRecovery() != want {
		t.Errorf("asked for %q, want %q", s.Configs[0].AskedRecovery(), want)
	}
	if err := r.Client.Create(t.Context(), bring("prod-sa", pairs.ServiceAccount.Cert, pairs.ServiceAccount.Key.Reveal())); err != nil {
		t.Fatal(err)
	}
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	made, err := pki.Fingerprint(r.secret(t, "prod-etcd").Data["tls.crt"])
	if recorded := s.Object.Annotations[controlplanev1.AuthoritiesAnnotation]; err != nil || !strings.Contains(recorded, "etcd="+made) {
		t.Errorf("made %s, and recorded %s, %v", made, recorded, err)
	}
}
