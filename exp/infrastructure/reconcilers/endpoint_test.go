// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

func TestEndpoint(t *testing.T) {
	member := func(name string, age time.Duration, controlPlane bool, address string) (clusterv1.Machine, infrav1.KubexmMachine) {
		owner := clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age)), Labels: map[string]string{}},
		}
		owner.Spec.InfrastructureRef.Name = name
		if controlPlane {
			owner.Labels[clusterv1.MachineControlPlaneLabel] = ""
		}
		machine := infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if address != "" {
			machine.Status.Addresses = clusterv1.MachineAddresses{
				{Type: clusterv1.MachineInternalIP, Address: "192.168.0.1"}, {Type: clusterv1.MachineExternalIP, Address: address},
			}
		}
		return owner, machine
	}
	var owners []clusterv1.Machine
	var machines []infrav1.KubexmMachine
	for _, m := range []struct {
		name         string
		age          time.Duration
		controlPlane bool
		address      string
	}{
		{"worker", 4 * time.Hour, false, "10.0.0.1"},
		{"waiting", 3 * time.Hour, true, ""},
		{"younger", 1 * time.Hour, true, "10.0.0.2"},
		{"older", 2 * time.Hour, true, "10.0.0.3"},
	} {
		owner, machine := member(m.name, m.age, m.controlPlane, m.address)
		owners, machines = append(owners, owner), append(machines, machine)
	}

	type e = clusterv1.APIEndpoint
	for name, test := range map[string]struct {
		declared, cluster, controlPlane e
		empty                           bool
		oldest                          string // address of the oldest host
		want                            e
	}{
		"declared here":                 {declared: e{Host: "api.prod.example", Port: 7443}, want: e{Host: "api.prod.example", Port: 7443}},
		"declared here, without a port": {declared: e{Host: "api.prod.example"}, want: e{Host: "api.prod.example", Port: 6443}},
		"declared by the Cluster":       {cluster: e{Host: "10.0.0.9", Port: 8443}, want: e{Host: "10.0.0.9", Port: 8443}},
		"both": {declared: e{Port: 7443},
			cluster: e{Host: "10.0.0.9", Port: 8443}, want: e{Host: "10.0.0.9", Port: 7443}},
		"declared by the control plane":        {controlPlane: e{Host: "10.0.0.8", Port: 8443}, want: e{Host: "10.0.0.8", Port: 8443}},
		"the oldest host":                      {want: e{Host: "10.0.0.3", Port: 6443}},
		"the oldest host at a declared port":   {declared: e{Port: 7443}, want: e{Host: "10.0.0.3", Port: 7443}},
		"the oldest host, reached by IPv6":     {oldest: "2001:db8::3", want: e{Host: "192.168.0.1", Port: 6443}},
		"no host":                              {empty: true},
		"a declared port does not make a host": {declared: e{Port: 7443}, empty: true, want: e{Port: 7443}},
	} {
		t.Run(name, func(t *testing.T) {
			o, m := owners, machines
			if test.empty {
				o, m = o[:2], m[:2]
			}
			if test.oldest != "" {
				m = slices.Clone(m)
				_, m[3] = member("older", 0, true, test.oldest)
			}
			if got := endpoint(test.declared, test.cluster, test.controlPlane, o, m); got != test.want {
				t.Errorf("the endpoint is %v, not %v", got, test.want)
			}
		})
	}
}
