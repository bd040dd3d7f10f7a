// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestWithdraw: the kubelet is set to end the API server, once or again, and who does not do so is reported.
func TestWithdraw(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	end := kubeadm.Withdraw(c, n).(step.Sequence).Parts[0].(step.Command)
	if said, ok := p.run(t.Context(), end.Done.Check); ok || said != "kube-apiserver has a manifest, or answers still" {
		t.Errorf("before, it says %q", said)
	}
	for range 2 {
		if said, ok := p.run(t.Context(), end.Argv); !ok || said != "" {
			t.Errorf("it fails with %q", said)
		}
		if said, ok := p.run(t.Context(), end.Done.Check); !ok {
			t.Errorf("then, it says %q", said)
		}
	}
	if p.read("manifests/kube-apiserver.yaml") != "" || p.read("manifests/kube-scheduler.yaml") == "" {
		t.Error("the API server's manifest is to go, and no other")
	}
	p.write("ill", "kube-apiserver")
	if said, ok := p.run(t.Context(), end.Argv); ok || !strings.Contains(said, "it answers still after 0 s") {
		t.Errorf("it fails with %q", said)
	}
}
