// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
)

// mostCertificates are as many as the API takes. A host has some twenty; people may put others there.
const mostCertificates = 64

// longestPath is how long a path may be that the API takes, in bytes. No component has one as long.
const longestPath = 512

// showCertificates says which certificates were seen on the host, whatever else the job came to: a host that waits for a window, or
// on which something fails, has certificates that end, too. Where not all could be read, those stay that were known: what is missing
// then is not gone.
func showCertificates(ctx context.Context, c *bootstrapv1.KubexmConfig, out *outcome) {
	if len(out.report.Hosts) == 0 || out.report.Hosts[0].Facts == nil {
		return
	}
	found, err := certificate.In(out.report.Hosts[0].Facts)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot tell when the certificates of a host end", "host", out.report.Hosts[0].Host)
		return
	}
	c.Status.Certificates = certificatesOf(found, out.renewals)
}

// certificatesOf are the files by their paths, each once. Of more than fit, those are left that end first; what cannot be read comes
// before all.
func certificatesOf(found []certificate.File, renewals []pipeline.Renewal) []bootstrapv1.CertificateStatus {
	var all []bootstrapv1.CertificateStatus
	for _, f := range found {
		shown := host.Word(f.Path, longestPath)
		if shown == "" {
			continue
		}
		one := bootstrapv1.CertificateStatus{Path: shown, Type: typeOf(f, renewals), Message: short(f.Message)}
		if f.Message == "" {
			one.NotAfter = metav1.NewTime(f.NotAfter)
		}
		all = append(all, one)
	}
	byPath := func(a, b bootstrapv1.CertificateStatus) int { return cmp.Compare(a.Path, b.Path) }
	byEnd := func(a, b bootstrapv1.CertificateStatus) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter.Time), byPath(a, b))
	}
	slices.SortFunc(all, byEnd)
	all = all[:min(len(all), mostCertificates)]
	slices.SortStableFunc(all, byPath)
	return slices.CompactFunc(all, func(a, b bootstrapv1.CertificateStatus) bool { return a.Path == b.Path })
}

// peoples are the names (pipeline.Renewal) of certificates that no component has.
var peoples = []string{"admin", "admin.conf", "super-admin.conf"}

// typeOf is whose the file is. What is renewed on the host was made for it; all else is known by its place and content.
func typeOf(f certificate.File, renewals []pipeline.Renewal) bootstrapv1.CertificateType {
	at := slices.IndexFunc(renewals, func(r pipeline.Renewal) bool { return r.Path == f.Path })
	switch {
	case at >= 0 && slices.Contains(peoples, renewals[at].Name):
		return bootstrapv1.AdministratorCertificate
	case at >= 0:
		return bootstrapv1.ComponentCertificate
	case f.InKubeletsPlace():
		return bootstrapv1.KubeletCertificate
	case f.Authority:
		return bootstrapv1.AuthorityCertificate
	}
	return bootstrapv1.OtherCertificate
}
