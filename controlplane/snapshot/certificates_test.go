// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// TestCertificatesEnd: a Machine is replaced for a certificate of its components that another Machine would have for longer, and for
// nothing else that ends on its host.
func TestCertificatesEnd(t *testing.T) {
	now := born.AddDate(1, 0, 0)
	in := func(days int) metav1.Time { return metav1.NewTime(now.AddDate(0, 0, days)) }
	one := func(path string, kind bootstrapv1.CertificateType, days int) bootstrapv1.CertificateStatus {
		return bootstrapv1.CertificateStatus{Path: path, Type: kind, NotAfter: in(days)}
	}
	const component = bootstrapv1.ComponentCertificate
	serving := func(days int) bootstrapv1.CertificateStatus {
		return one("/etc/kubernetes/pki/apiserver.crt", component, days)
	}
	authority := func(days int) bootstrapv1.CertificateStatus {
		return one("/etc/kubernetes/pki/ca.crt", bootstrapv1.AuthorityCertificate, days)
	}
	scheduler := func(days int) bootstrapv1.CertificateStatus {
		return one("/etc/kubernetes/scheduler.conf", component, days)
	}
	unreadable := bootstrapv1.CertificateStatus{Path: "/etc/kubernetes/pki/apiserver.crt", Type: component, Message: "not PEM, or cut off"}
	all := func(certificates ...bootstrapv1.CertificateStatus) []bootstrapv1.CertificateStatus {
		return certificates
	}
	for name, test := range map[string]struct {
		certificates []bootstrapv1.CertificateStatus
		// ends is in how many days the first ends, 0 if it is not known.
		ends     int
		replaced bool
	}{
		"nothing is known": {},
		"for long":         {all(serving(200)), 200, false},
		"on the day":       {all(serving(30)), 30, false},
		"soon":             {all(serving(200), scheduler(29)), 29, true},
		"ended":            {all(serving(-3)), -3, true},
		"an authority's":   {all(authority(20), serving(200)), 200, false},
		"the kubelet's own": {
			all(serving(200), one("/var/lib/kubelet/pki/kubelet-client-current.pem", bootstrapv1.KubeletCertificate, 20)), 200, false,
		},
		"a person's": {
			all(one("/etc/kubernetes/super-admin.conf", bootstrapv1.AdministratorCertificate, 1), serving(200)), 200, false,
		},
		"somebody else's":         {all(one("/etc/kubernetes/pki/webhook.crt", bootstrapv1.OtherCertificate, 2)), 0, false},
		"one of no known type":    {all(one("/etc/kubernetes/pki/apiserver.crt", "", 2)), 0, false},
		"one that cannot be read": {all(unreadable), 0, false},
		// Another Machine's would end then, too.
		"with its authority":                     {all(authority(20), serving(20)), 20, false},
		"one with its authority, and one not":    {all(authority(20), serving(20), scheduler(25)), 20, true},
		"after an authority that is another's":   {all(authority(10), serving(20)), 20, true},
		"one that cannot be read, and one ended": {all(unreadable, scheduler(-1)), -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine("a", joined)
			m.Spec.Bootstrap.ConfigRef.Name = "a"
			c := &snapshot.ControlPlane{
				Object: object(), Cluster: &clusterv1.Cluster{}, Now: now, Machines: []clusterv1.Machine{m},
				Configs: []bootstrapv1.KubexmConfig{{
					ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: bootstrapv1.KubexmConfigStatus{Certificates: test.certificates},
				}},
			}
			c.Object.Spec.Rollout.Before.CertificatesExpiryDays = 30
			ends, known := c.CertificatesEnd(&m)
			if known != (test.ends != 0) || known && !ends.Equal(in(test.ends).Time) {
				t.Errorf("the first ends at %s, known %v; want in %d days", ends.Format(time.DateOnly), known, test.ends)
			}
			if changes := c.Changes(&m); (len(changes) == 1 && changes[0].Text == "Certificates will expire soon") != test.replaced {
				t.Errorf("replaced because of %v, want it to be: %v", changes, test.replaced)
			}
			c.Object.Spec.Rollout.Before.CertificatesExpiryDays = 0
			if changes := c.Changes(&m); len(changes) != 0 {
				t.Errorf("replaced because of %v without being asked to", changes)
			}
		})
	}
}
