// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"
	"strings"
	"testing"
)

func TestParseCertificates(t *testing.T) {
	for list, want := range map[string]string{
		"all":                                    "all",
		"kubelet":                                "kubelet",
		"kubelet, apiserver,etcd-member,kubelet": "apiserver,etcd-member,kubelet",
		JoinCertificates(CertificateNames):       JoinCertificates(CertificateNames),
	} {
		if got, err := ParseCertificates(list); err != nil || JoinCertificates(got) != want {
			t.Errorf("%q: %q, %v", list, JoinCertificates(got), err)
		}
	}
	for _, list := range []string{"", "kubelet,", "all,kubelet", "Kubelet", "ca", "kubelet apiserver"} {
		if got, err := ParseCertificates(list); err == nil || !strings.Contains(err.Error(), "there are admin,admin.conf,") {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
	if !slices.IsSorted(CertificateNames) {
		t.Error("the names are not sorted")
	}
}
