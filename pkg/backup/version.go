// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// sameMinor refuses what API servers of the cluster's version may not understand.
func sameMinor(saved, now string) error {
	was, err := version.ParseSemantic(saved)
	if err != nil {
		return fmt.Errorf("it is of Kubernetes %q, which is no version", saved)
	}
	is, err := version.ParseSemantic(now)
	if err != nil {
		return err
	}
	if was.Major() != is.Major() || was.Minor() > is.Minor() || is.Minor()-was.Minor() > 1 {
		return fmt.Errorf("it is of Kubernetes %s, and the cluster is %s: API servers understand what those of their own minor version, "+
			"or of the one before, have stored", saved, now)
	}
	return nil
}
