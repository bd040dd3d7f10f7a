// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const byoLabel = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name"

func byoMachine(fields string) string {
	return "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ByoMachine, metadata: {namespace: fleet, name: m}, " + fields + "}"
}

// byoHost is one with a label, metadata besides, and a status. The label may be that of another ByoMachine.
func byoHost(name, label, metadata, status string) string {
	return fmt.Sprintf("\n---\n{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ByoHost, "+
		"metadata: {namespace: fleet, name: %s, labels: {%s: %s}, %s}, status: {%s}}", name, byoLabel, label, metadata, status)
}

func TestByohHost(t *testing.T) {
	const (
		succeeded = `conditions: [{type: K8sNodeBootstrapSucceeded, status: "True"}], `
		failed    = `conditions: [{type: K8sNodeBootstrapSucceeded, status: "False", reason: CloudInitExecutionFailed,
			message: "exit status 1"}], `
		network = `network: [{ipAddrs: [127.0.0.1/8, "::1/128"]}, {ipAddrs: [192.168.7.5/24, "fe80::7/64"]},
			{isDefault: true, ipAddrs: ["2001:db8::5/64", 10.0.0.5/24, 10.0.0.100/32, "fe80::5/64"]}]`
		ours      = `machineRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ByoMachine, namespace: fleet, name: m}, `
		others    = `machineRef: {kind: ByoMachine, namespace: fleet, name: other}, `
		endpoint  = `annotations: {byoh.infrastructure.cluster.x-k8s.io/endpointip: 10.0.0.100}`
		unclaimed = `status: {conditions: [{type: BYOHostReady, status: "False", reason: BYOHostsUnavailable}]}`
		noHost    = "no ByoHost in the namespace fleet is attached to the ByoMachine m yet"
	)
	found := wanted{host: &infra.Host{
		Host: spec.Host{
			Name: "rack-1", Address: "10.0.0.5", InternalAddresses: []string{"2001:db8::5", "10.0.0.5", "192.168.7.5"},
		},
		Candidates: []string{"10.0.0.5", "2001:db8::5", "192.168.7.5"},
	}}
	var long []string
	kept := []string{"10.0.0.5"}
	for i := range 1000 {
		address := fmt.Sprintf("10.1.%d.%d", i/200, i%200+1)
		long = append(long, address+"/16")
		if i < 15 {
			kept = append(kept, address)
		}
	}
	for name, tc := range map[string]struct {
		machine, hosts string
		want           wanted
	}{
		"no host yet": {
			machine: unclaimed, hosts: byoHost("rack-1", "fleet.other", "", succeeded+network),
			want: wanted{notYet: noHost + ": its condition BYOHostReady is False: BYOHostsUnavailable"},
		},
		"the data has not been run": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+network),
			want:  wanted{notYet: "the ByoHost rack-1 has not run the bootstrap data yet"},
		},
		"the data has failed": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+failed+network),
			want: wanted{notYet: "the ByoHost rack-1 has not run the bootstrap data yet: its condition K8sNodeBootstrapSucceeded is False: " +
				"CloudInitExecutionFailed: exit status 1"},
		},
		"the data has been run": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+succeeded+network) + byoHost("rack-2", "fleet.n", "", succeeded+network),
			want:  found,
		},
		"its provider ID is its own": {
			machine: "spec: {providerID: byoh://rack-1/x}",
			hosts:   byoHost("rack-1", "fleet.m", endpoint, ours+succeeded+network), want: found,
		},
		"the data has failed, and the agent waits to install Kubernetes": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+`conditions: [
				{type: K8sComponentsInstallationSucceeded, status: "False", reason: K8sInstallationSecretUnavailable},
				{type: K8sNodeBootstrapSucceeded, status: "False", reason: WaitingForMachineRefToBeAssigned}], `+network),
			want: wanted{notYet: "yet: its condition K8sNodeBootstrapSucceeded is False: WaitingForMachineRefToBeAssigned: " +
				"its condition K8sComponentsInstallationSucceeded is False: K8sInstallationSecretUnavailable"},
		},
		"its agent leaves it alone": {
			hosts: byoHost("rack-1", "fleet.m", `annotations: {cluster.x-k8s.io/paused: ""}`, ours+failed+network),
			want: wanted{notYet: "has not run the bootstrap data yet, and it is paused by its annotation cluster.x-k8s.io/paused: " +
				"its condition K8sNodeBootstrapSucceeded is False"},
		},
		"paused when the data has been run": {
			hosts: byoHost("rack-1", "fleet.m", `annotations: {cluster.x-k8s.io/paused: "",
				byoh.infrastructure.cluster.x-k8s.io/endpointip: 10.0.0.100}`, ours+succeeded+network),
			want: found,
		},
		"more addresses than anybody has": {
			hosts: byoHost("rack-1", "fleet.m", "", ours+succeeded+"network: [{ipAddrs: ["+strings.Join(long, ", ")+"]}, "+
				"{isDefault: true, ipAddrs: [10.0.0.5/24]}]"),
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "rack-1", Address: "10.0.0.5", InternalAddresses: kept},
				Candidates: kept,
			}},
		},
		"labelled, but with no reference yet": {hosts: byoHost("rack-1", "fleet.m", endpoint, succeeded+network), want: found},
		"labelled, and another's": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, others+succeeded+network), want: wanted{notYet: noHost},
		},
		"still cleaned up": {
			hosts: byoHost("rack-1", "fleet.m", `annotations: {byoh.infrastructure.cluster.x-k8s.io/unregistering: ""}`, ours+succeeded+network),
			want:  wanted{notYet: noHost},
		},
		"two of them": {
			hosts: byoHost("rack-1", "fleet.m", "", ours+succeeded+network) + byoHost("rack-2", "fleet.m", "", succeeded+network),
			want:  wanted{notYet: "the ByoHosts rack-1 and rack-2 are both attached"},
		},
		"of another namespace": {
			hosts: strings.Replace(byoHost("rack-1", "fleet.m", "", ours+succeeded+network), "namespace: fleet", "namespace: other", 1),
			want:  wanted{notYet: noHost},
		},
		"its host is gone": {
			machine: "spec: {providerID: byoh://rack-1/x}",
			want:    wanted{lost: "had the ByoHost of byoh://rack-1/x, and none is attached to it any more"},
		},
		"the control plane's address is its own": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+succeeded+"network: [{isDefault: true, ipAddrs: [10.0.0.100/24, 127.0.0.1/8]}, "+
				"{ipAddrs: [192.168.7.5/24]}]"),
			want: wanted{host: &infra.Host{
				Host:       spec.Host{Name: "rack-1", Address: "10.0.0.100", InternalAddresses: []string{"10.0.0.100", "192.168.7.5"}},
				Candidates: []string{"10.0.0.100", "192.168.7.5"},
			}},
		},
		"the control plane's address is all that it has": {
			hosts: byoHost("rack-1", "fleet.m", endpoint,
				ours+succeeded+"network: [{isDefault: true, ipAddrs: [10.0.0.100/32, nonsense, 127.0.0.1/8]}]"),
			want: wanted{host: &infra.Host{
				Host: spec.Host{Name: "rack-1", Address: "10.0.0.100", InternalAddresses: []string{"10.0.0.100"}}, Candidates: []string{"10.0.0.100"},
			}},
		},
		"no address": {
			hosts: byoHost("rack-1", "fleet.m", endpoint, ours+succeeded+"network: [{isDefault: true, ipAddrs: [nonsense, 127.0.0.1/8]}]"),
			want:  wanted{notYet: "the ByoHost rack-1 has no address in status.network"},
		},
		"the control plane has a name": {
			hosts: byoHost("rack-1", "fleet.m", "annotations: {byoh.infrastructure.cluster.x-k8s.io/endpointip: api.example.org}",
				ours+succeeded+"network: [{ipAddrs: [10.0.0.5/24]}]"),
			want: wanted{host: &infra.Host{
				Host: spec.Host{Name: "rack-1", Address: "10.0.0.5", InternalAddresses: []string{"10.0.0.5"}}, Candidates: []string{"10.0.0.5"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, "ByoMachine", tc.want, append(definitions(), objects(t, byoMachine(tc.machine)+tc.hosts)...)...)
		})
	}
}

// BYOH looks for the Node again when its ByoMachine is touched, which is done once for a Node.
func TestByohJoined(t *testing.T) {
	toldOf := func(node string) string {
		return strings.Replace(byoMachine(""), "name: m", "name: m, annotations: {bootstrap.cluster.x-k8s.io/node-joined: "+node+"}", 1)
	}
	for name, tc := range map[string]struct {
		machines string
		patches  int
	}{
		"it waits for the Node": {byoMachine("spec: {selector: {}}"), 1},
		"it has the Node":       {byoMachine("spec: {providerID: byoh://rack-1/x}"), 0},
		"it waits for another":  {toldOf("rack-2"), 1},
		"it has been told":      {toldOf("rack-1"), 0},
		"it is gone":            {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			machine, patches := machineOf("ByoMachine"), 0
			c := api(t, &patches, append(definitions(), objects(t, tc.machines)...)...)
			subject := infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}}
			subject.Config.Status.Host.Name = "rack-1"
			for range 2 {
				if err := infra.Of(machine, c, c).Joined(t.Context(), subject); err != nil {
					t.Fatal(err)
				}
			}
			if patches != tc.patches {
				t.Errorf("it is patched %d times, not %d", patches, tc.patches)
			}
			if patches == 0 {
				return
			}
			got := &unstructured.Unstructured{}
			got.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
			got.SetKind("ByoMachine")
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "m"}, got); err != nil {
				t.Fatal(err)
			}
			if node := got.GetAnnotations()["bootstrap.cluster.x-k8s.io/node-joined"]; node != "rack-1" {
				t.Errorf("the annotations are %v", got.GetAnnotations())
			}
		})
	}
}

// TestByohHostThatLeaves: whether its agent has run the bootstrap data is in a status that may be lost. What leaves was entered before.
func TestByohHostThatLeaves(t *testing.T) {
	machine, patches := machineOf("ByoMachine"), 0
	now := metav1.Now()
	machine.DeletionTimestamp = &now
	c := api(t, &patches, append(definitions(), objects(t, byoMachine("spec: {providerID: byoh://rack-1/x}")+
		byoHost("rack-1", "fleet.m", "", "network: [{isDefault: true, ipAddrs: [10.0.0.5/24]}]"))...)...)
	got, err := infra.Of(machine, c, c).Host(t.Context(), infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}})
	if err != nil || got.Address != "10.0.0.5" {
		t.Errorf("got %+v, %v", got, err)
	}
}
