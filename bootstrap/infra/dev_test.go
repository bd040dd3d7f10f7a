// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestDevHost(t *testing.T) {
	for name, tc := range map[string]struct {
		fields string
		want   wanted
	}{
		"no container yet": {want: wanted{notYet: "the DevMachine m has no address yet"}},
		"a container": {
			fields: `spec: {providerID: "docker:////prod-w"}, status: {addresses: [{type: Hostname, address: prod-w},
				{type: InternalIP, address: 172.18.0.5}, {type: ExternalIP, address: 172.18.0.5},
				{type: InternalIP, address: "fc00:f853:ccd:e793::5"}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-w", Address: "172.18.0.5", InternalAddresses: []string{"172.18.0.5", "fc00:f853:ccd:e793::5"}},
				Candidates: []string{"172.18.0.5", "fc00:f853:ccd:e793::5"},
			}},
		},
		"a container that does not say its name": {
			fields: `status: {addresses: [{type: InternalIP, address: 172.18.0.5}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-m", Address: "172.18.0.5", InternalAddresses: []string{"172.18.0.5"}},
				Candidates: []string{"172.18.0.5"},
			}},
		},
		"what it says is no address": {
			fields: `status: {addresses: [{type: Hostname, address: prod-w}, {type: InternalIP, address: prod-w},
				{type: ExternalIP, address: "fe80::1%eth0"}]}`,
			want: wanted{notYet: "the DevMachine m has no address yet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevMachine, metadata: {namespace: fleet, name: m}, " +
				tc.fields + "}"
			check(t, "DevMachine", tc.want, append(definitions(), objects(t, machine)...)...)
		})
	}
}
