// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestValidateBMC(t *testing.T) {
	const some = "SHA256 Fingerprint="
	for name, test := range map[string]struct {
		change func(*spec.BMC)
		want   string
	}{
		"as it is": {func(*spec.BMC) {}, ""},
		"with a port and colons": {func(b *spec.BMC) {
			b.Address += ":8443/"
			b.Certificate.SHA256Fingerprint = strings.Repeat("0A:", 31) + "0A"
		}, ""},
		"IPv6":                  {func(b *spec.BMC) { b.Address = "https://[fd00::9]" }, ""},
		"none":                  {func(b *spec.BMC) { *b = spec.BMC{} }, ""},
		"http":                  {func(b *spec.BMC) { b.Address = "http://10.0.0.9" }, "bmc.address"},
		"an address alone":      {func(b *spec.BMC) { b.Address = "10.0.0.9" }, "bmc.address"},
		"a password in the URL": {func(b *spec.BMC) { b.Address = "https://a:b@10.0.0.9" }, "bmc.address"},
		"a path":                {func(b *spec.BMC) { b.Address += "/redfish/v1" }, "bmc.address"},
		"no Secret":             {func(b *spec.BMC) { b.SecretRef = spec.SecretReference{} }, "bmc.secretRef.name"},
		"a Secret elsewhere":    {func(b *spec.BMC) { b.SecretRef.Name = "other/bmc" }, "bmc.secretRef.name"},
		"no certificate":        {func(b *spec.BMC) { b.Certificate = spec.BMCCertificate{} }, "bmc.certificate"},
		"both":                  {func(b *spec.BMC) { b.Certificate.CABundle = "x" }, "bmc.certificate"},
		"openssl's whole line":  {func(b *spec.BMC) { b.Certificate.SHA256Fingerprint = some + b.Certificate.SHA256Fingerprint }, "bmc.certificate.sha256Fingerprint"},
		"SHA-1":                 {func(b *spec.BMC) { b.Certificate.SHA256Fingerprint = strings.Repeat("0a", 20) }, "bmc.certificate.sha256Fingerprint"},
		"a bundle that is none": {func(b *spec.BMC) { b.Certificate = spec.BMCCertificate{CABundle: "x"} }, "bmc.certificate.caBundle"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spec.BMC{
				Address: "https://10.0.0.9", SecretRef: spec.SecretReference{Name: "bmc"},
				Certificate: spec.BMCCertificate{SHA256Fingerprint: strings.Repeat("0a", 32)},
			}
			test.change(&b)
			var got []string
			for _, err := range b.Validate(field.NewPath("bmc")) {
				got = append(got, err.Field)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%q is wrong, want %q", got, test.want)
			}
		})
	}
}
