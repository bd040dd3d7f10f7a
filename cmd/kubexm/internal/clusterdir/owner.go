// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// Authority is the fingerprint of the cluster's certificate authority, by which hosts know whose they are; "" while it has none
// here.
func (d Dir) Authority() (string, error) {
	cert, err := d.Read(secretsDir, pki.ClusterName+".crt")
	if err != nil || len(cert) == 0 {
		return "", err
	}
	fingerprint, err := pki.Fingerprint(cert)
	if err != nil {
		return "", fmt.Errorf("%s: %w", d.Path(secretsDir, pki.ClusterName+".crt"), err)
	}
	return fingerprint, nil
}
