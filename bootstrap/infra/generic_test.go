// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func foreignMachine(fields string) string {
	return "{apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: ForeignMachine, metadata: {namespace: fleet, name: m}, " + fields + "}"
}

func TestGenericHost(t *testing.T) {
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprintf("{type: InternalIP, address: 'fd00::%x'}", i+1))
	}
	long = append(long, "{type: InternalIP, address: 10.0.0.5}")
	var kept []string
	for i := range 16 {
		kept = append(kept, fmt.Sprintf("fd00::%x", i+1))
	}
	for name, tc := range map[string]struct {
		fields string
		want   wanted
	}{
		"addresses before it is provisioned": {
			fields: `spec: {providerID: foreign://m}, status: {addresses: [{type: Hostname, address: Node-1},
				{type: InternalIP, address: 'fe80::1%eth0'}, {type: InternalIP, address: 10.0.0.5}, {type: ExternalIP, address: 203.0.113.5}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "node-1", ProviderID: "foreign://m", Address: "203.0.113.5", InternalAddresses: []string{"10.0.0.5"}},
				Candidates: []string{"203.0.113.5", "10.0.0.5"},
			}},
		},
		"both families, IPv4 first of each type": {
			fields: `status: {addresses: [{type: InternalIP, address: 'FD00::5'}, {type: InternalIP, address: 10.0.0.5},
				{type: ExternalIP, address: '2001:db8::5'}, {type: ExternalIP, address: 203.0.113.5}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-x", Address: "203.0.113.5", InternalAddresses: []string{"fd00::5", "10.0.0.5"}},
				Candidates: []string{"203.0.113.5", "2001:db8::5", "10.0.0.5", "fd00::5"},
			}},
		},
		"IPv6 alone": {
			fields: `status: {addresses: [{type: InternalIP, address: 'fd00::5%eth0'}, {type: InternalIP, address: 'fd00::5/64'}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-x", Address: "fd00::5", InternalAddresses: []string{"fd00::5"}},
				Candidates: []string{"fd00::5"},
			}},
		},
		"what is no address, or nobody's, or there already": {
			fields: `status: {addresses: [{type: InternalIP, address: ''}, {type: InternalIP, address: 10.0.0},
				{type: InternalIP, address: 10.0.0.5/99}, {type: InternalIP, address: '10.0.0.5; reboot'}, {type: InternalIP, address: 127.0.0.1},
				{type: InternalIP, address: 169.254.1.1}, {type: InternalIP, address: 0.0.0.0},
				{type: InternalIP, address: 224.0.0.1}, {type: InternalIP, address: '::1'}, {type: InternalIP, address: 10.0.0.5/24},
				{type: InternalIP, address: '::ffff:10.0.0.5'}, {type: ExternalIP, address: 10.0.0.5}]}`,
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-x", Address: "10.0.0.5", InternalAddresses: []string{"10.0.0.5"}},
				Candidates: []string{"10.0.0.5"},
			}},
		},
		"more addresses than anybody has": {
			fields: "status: {addresses: [" + strings.Join(long, ", ") + "]}",
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "prod-x", Address: "10.0.0.5", InternalAddresses: kept},
				Candidates: append([]string{"10.0.0.5"}, kept[:15]...),
			}},
		},
		"no address yet": {want: wanted{notYet: "the ForeignMachine m has no address yet"}},
		"no address, and it says why": {
			fields: `status: {conditions: [{type: Ready, status: "False", reason: QuotaExceeded, message: "no more\nmachines"}]}`,
			want:   wanted{notYet: "has no address yet: its condition Ready is False: QuotaExceeded: no more machines"},
		},
		"it says more than can be stored": {
			fields: `status: {conditions: [{type: Ready, status: "False", message: "` + strings.Repeat("é", 100000) + `"}]}`,
			want:   wanted{notYet: "has no address yet: its condition Ready is False"},
		},
		"its name is none": {
			fields: `status: {addresses: [{type: Hostname, address: "a b$(reboot)"}, {type: InternalIP, address: 10.0.0.5}]}`,
			want:   wanted{notYet: `its Hostname is "a b$(reboot)", and no Node can be called so`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, "ForeignMachine", tc.want, append(definitions(), objects(t, foreignMachine(tc.fields))...)...)
		})
	}
	t.Run("the object is gone", func(t *testing.T) {
		check(t, "ForeignMachine", wanted{lost: "the ForeignMachine m does not exist"}, definitions()...)
	})
}

// What is declared of the access, and what the Machine has learnt, is kept.
func TestGenericKeepsWhatIsDeclared(t *testing.T) {
	access := spec.Access{
		User: "ops", Port: 2222, HostKeys: spec.HostKeys{Pinned: []string{"SHA256:x"}},
		Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
	}
	machine, patches := machineOf("ForeignMachine"), 0
	machine.Spec.ProviderID = "foreign://known"
	machine.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"}}
	subject := infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{Spec: bootstrapv1.KubexmConfigSpec{Access: access}}}
	c := api(t, &patches, append(definitions(), objects(t, foreignMachine(""))...)...)
	adapter := infra.Of(machine, c, c)
	got, err := adapter.Host(t.Context(), subject)
	want := &infra.Host{
		Host:   spec.Host{Name: "prod-x", ProviderID: "foreign://known", Address: "10.0.0.7", InternalAddresses: []string{"10.0.0.7"}},
		Access: access, Candidates: []string{"10.0.0.7"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if err := adapter.Joined(t.Context(), subject); err != nil || patches > 0 {
		t.Errorf("error %v, %d patches: nobody waits for the Node", err, patches)
	}
}

func TestGenericCannotBeRead(t *testing.T) {
	machine, patches := machineOf("ForeignMachine"), 0
	c := api(t, &patches, append(definitions(), objects(t, foreignMachine("status: {addresses: somewhere}"))...)...)
	got, err := infra.Of(machine, c, c).Host(t.Context(), infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}})
	if err == nil || !strings.Contains(err.Error(), "read the ForeignMachine m") {
		t.Errorf("got %v, %v", got, err)
	}
}
