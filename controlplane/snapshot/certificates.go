// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// CertificatesEnd is when the first certificate of a Machine's components ends, and whether any is known. What else is on the host
// does not count: another Machine would have the same authorities, the kubelet renews its own, and nothing stops when a person's ends.
func (c *ControlPlane) CertificatesEnd(m *clusterv1.Machine) (time.Time, bool) {
	return firstEnd(c.certificates(m), func(bootstrapv1.CertificateStatus) bool { return true })
}

// certificatesEndSoon is when the first of a Machine's certificates ends that another Machine would have for longer, and whether the
// Machine is replaced because of that. No certificate outlives its authority, and one that ends with it is not had for longer.
func (c *ControlPlane) certificatesEndSoon(m *clusterv1.Machine) (time.Time, bool) {
	all := c.certificates(m)
	ends, known := firstEnd(all, func(one bootstrapv1.CertificateStatus) bool {
		return !slices.ContainsFunc(all, func(other bootstrapv1.CertificateStatus) bool {
			return other.Type == bootstrapv1.AuthorityCertificate && other.NotAfter.Equal(&one.NotAfter)
		})
	})
	days := c.Object.Spec.Rollout.Before.CertificatesExpiryDays
	return ends, days > 0 && known && ends.Before(c.Now.AddDate(0, 0, int(days)))
}

// certificates are those on a Machine's host, as far as they are known.
func (c *ControlPlane) certificates(m *clusterv1.Machine) []bootstrapv1.CertificateStatus {
	if config := c.ConfigOf(m); config != nil {
		return config.Status.Certificates
	}
	return nil
}

// firstEnd is when the first component's certificate ends that counts, and whether there is one. What cannot be read has no end.
func firstEnd(all []bootstrapv1.CertificateStatus, counts func(bootstrapv1.CertificateStatus) bool) (first time.Time, found bool) {
	for _, one := range all {
		if one.Type != bootstrapv1.ComponentCertificate || one.NotAfter.IsZero() || !counts(one) {
			continue
		}
		if !found || one.NotAfter.Time.Before(first) {
			first, found = one.NotAfter.Time, true
		}
	}
	return first, found
}
