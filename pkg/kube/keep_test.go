// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import "testing"

func TestIsNewer(t *testing.T) {
	for _, tc := range []struct {
		image, than string
		want        bool
	}{
		{"registry.k8s.io/coredns/coredns:v1.15.0", "registry.k8s.io/coredns/coredns:v1.14.7", true},
		{"registry.k8s.io/coredns/coredns:v1.14.7", "registry.k8s.io/coredns/coredns:v1.15.0", false},
		{"registry.k8s.io/coredns/coredns:v1.15.0", "registry.k8s.io/coredns/coredns:v1.15.0", false},
		{"here:5000/coredns:v1.15.0@sha256:1", "here:5000/coredns:v1.14.7", true},
		{"here:5000/coredns", "here:5000/coredns:v1.14.7", false},
		{"elsewhere/coredns:v1.15.0", "here/coredns:v1.14.7", false}, // somebody has put another one there
		{"here/coredns:latest", "here/coredns:v1.14.7", false},
		{"", "here/coredns:v1.14.7", false},
	} {
		if got := isNewer(tc.image, tc.than); got != tc.want {
			t.Errorf("%s than %s: %v", tc.image, tc.than, got)
		}
	}
}
