// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"
)

func TestParseComponents(t *testing.T) {
	for list, want := range map[string]string{
		"Kubelet":                      "Kubelet",
		"apiserver, etcd,KUBELET,etcd": "Kubelet,Etcd,APIServer",
		JoinComponents(Components):     JoinComponents(Components),
	} {
		if got, err := ParseComponents(list); err != nil || JoinComponents(got) != want {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "Kubelet,", "kube-apiserver", "Kubelet Etcd"} {
		if got, err := ParseComponents(list); err == nil || !strings.Contains(err.Error(), "there are ContainerRuntime,Kubelet,") {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
}
