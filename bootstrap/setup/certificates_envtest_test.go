// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// expiries are what the control plane's Machines say of their certificates.
func (f *fleet) expiries() []string {
	list := &clusterv1.MachineList{}
	ofControlPlane := client.HasLabels{clusterv1.MachineControlPlaneLabel}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace), ofControlPlane)).To(Succeed())
	var all []string
	for _, m := range list.Items {
		all = append(all, m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
	}
	return all
}

// TestCertificates: all that a host has are in the status; a look that sees the same writes nothing, and one that sees another shows
// it, and Cluster API knows of the control plane's.
func TestCertificates(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	f.Expect(err).NotTo(HaveOccurred())
	endOf := func(cert []byte) metav1.Time {
		is, err := pki.KeyPair{Cert: cert}.Certificate()
		f.Expect(err).NotTo(HaveOccurred())
		return metav1.NewTime(is.NotAfter)
	}
	serving := func(validity time.Duration) []byte {
		made, err := ca.Sign(pki.LeafRequest{CommonName: "kube-apiserver", Usages: []pki.Usage{pki.Client}, Validity: validity})
		f.Expect(err).NotTo(HaveOccurred())
		return made.Cert
	}
	first, second := serving(30*24*time.Hour), serving(365*24*time.Hour)
	var has atomic.Pointer[[]byte]
	has.Store(&first)
	for _, m := range f.machines {
		m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
			if !slices.Contains(c.Argv, "/etc/kubernetes/pki") {
				return host.Result{}
			}
			return host.Result{Stdout: fmt.Appendf(nil, "# %s\n%s# %s\n%s# %s\n%s", "/etc/kubernetes/pki/apiserver.crt", *has.Load(),
				"/etc/kubernetes/pki/broken.crt", "-----BEGIN CERTIFICATE-----\n", "/etc/kubernetes/pki/ca.crt", ca.Cert)}
		}
	}
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	config, _ := f.worker(f)
	f.Expect(config.Status.Certificates).To(HaveLen(3))
	for i, want := range []bootstrapv1.CertificateStatus{
		{Path: "/etc/kubernetes/pki/apiserver.crt", Type: bootstrapv1.OtherCertificate, NotAfter: endOf(first)}, // of a worker
		{Path: "/etc/kubernetes/pki/broken.crt", Type: bootstrapv1.OtherCertificate, Message: "not PEM, or cut off"},
		{Path: "/etc/kubernetes/pki/ca.crt", Type: bootstrapv1.AuthorityCertificate, NotAfter: endOf(ca.Cert)},
	} {
		got := config.Status.Certificates[i]
		f.Expect(got.NotAfter.Equal(&want.NotAfter)).To(BeTrue(), "%s ends %s", got.Path, got.NotAfter)
		got.NotAfter = want.NotAfter
		f.Expect(got).To(Equal(want))
	}
	f.Eventually(f.expiries, patience, 50*time.Millisecond).Should(HaveExactElements(endOf(first).UTC().Format(time.RFC3339)))

	t.Log("a host that is as it was is observed without a write")
	version, since := "", time.Now()
	f.Eventually(func() time.Duration { // as long as three looks
		now, _ := f.worker(f)
		if now.ResourceVersion != version {
			version, since = now.ResourceVersion, time.Now()
		}
		return time.Since(since)
	}, patience, 50*time.Millisecond).Should(BeNumerically(">", 3*time.Second))

	t.Log("another certificate is shown by the next look")
	has.Store(&second)
	f.Eventually(func() bool {
		now, _ := f.worker(f)
		end := endOf(second)
		return now.Status.Certificates[0].NotAfter.Equal(&end)
	}, patience, 50*time.Millisecond).Should(BeTrue())
	f.Eventually(f.expiries, patience, 50*time.Millisecond).Should(HaveExactElements(endOf(second).UTC().Format(time.RFC3339)))
}
