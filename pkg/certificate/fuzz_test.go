// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// FuzzIn: whatever a host prints for its certificates, each file is either read or says why not.
func FuzzIn(f *testing.F) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("# /etc/kubernetes/pki/ca.crt\n" + string(ca.Cert))
	f.Add("# /a.conf\n# \n# /b\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, printed string) {
		files, err := In(&host.Facts{Commands: map[string]host.Result{answer: {Stdout: []byte(printed)}}})
		if err != nil {
			return
		}
		for _, file := range files {
			if file.Path == "" || (file.Message == "") == file.NotAfter.IsZero() && file.Message != "" {
				t.Errorf("%+v", file)
			}
			_ = file.InKubeletsPlace()
		}
	})
}
