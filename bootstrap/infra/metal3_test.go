// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func metal3Machine(annotation, status string) string {
	return "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Machine, metadata: {namespace: fleet, name: m, " +
		"annotations: {" + annotation + "}}, status: {" + status + "}}"
}

func bareMetalHost(consumer, status string) string {
	return "\n---\n{apiVersion: metal3.io/v1alpha1, kind: BareMetalHost, metadata: {namespace: fleet, name: rack-1, uid: 4c4c-44}, " +
		"spec: {consumerRef: " + consumer + "}, status: {" + status + "}}"
}

const (
	hasRack1    = "metal3.io/BareMetalHost: fleet/rack-1"
	provisioned = "provisioning: {state: provisioned}"
	consumer    = "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Metal3Machine, namespace: fleet, name: m}"
	inspected   = `addresses: [{type: InternalIP, address: "fe80::a%eno1"}, {type: InternalIP, address: "2001:db8::7"},
		{type: InternalIP, address: 172.22.0.40}, {type: Hostname, address: rack-1}, {type: InternalDNS, address: rack-1}]`
	// ipam is that of Metal3 and that of Cluster API, with what is another's, or has been.
	ipam = `
---
{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, metadata: {namespace: fleet, name: data-0, uid: now}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPClaim, metadata: {namespace: fleet, name: data-0-v4, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]},
  status: {address: {name: pool-10-0-0-5}}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPAddress, metadata: {namespace: fleet, name: pool-10-0-0-5},
  spec: {claim: {name: data-0-v4}, address: 10.0.0.5}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPClaim, metadata: {namespace: fleet, name: data-0-old, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: before}]},
  status: {address: {name: pool-10-0-0-6}}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPAddress, metadata: {namespace: fleet, name: pool-10-0-0-6},
  spec: {claim: {name: data-0-old}, address: 10.0.0.6}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPClaim, metadata: {namespace: fleet, name: data-0-lies, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]},
  status: {address: {name: pool-10-0-0-6}}}
---
{apiVersion: ipam.metal3.io/v1alpha1, kind: IPClaim, metadata: {namespace: fleet, name: data-0-waits, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]}}
---
{apiVersion: ipam.cluster.x-k8s.io/v1beta2, kind: IPAddressClaim, metadata: {namespace: fleet, name: data-0-v6, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]}, status: {addressRef: {name: six}}}
---
{apiVersion: ipam.cluster.x-k8s.io/v1beta2, kind: IPAddress, metadata: {namespace: fleet, name: six},
  spec: {claimRef: {name: data-0-v6}, address: "fd00::5"}}`
)

func metal3Host(addresses, internal []string) *infra.Host {
	return &infra.Host{
		Host:       spec.Host{Name: "prod-x", ProviderID: "metal3://fleet/rack-1/m", Address: addresses[0], InternalAddresses: internal},
		Candidates: addresses, NodeLabels: map[string]string{"metal3.io/uuid": "4c4c-44"},
	}
}

func TestMetal3Host(t *testing.T) {
	lies := []string{
		"{type: InternalIP, address: rack-1}", "{type: InternalIP, address: 169.254.0.7}", "{type: ExternalIP, address: 10.9.9.9}",
	}
	var kept []string
	for i := range 100 {
		address := fmt.Sprintf("172.22.0.%d", i+1)
		lies = append(lies, "{type: InternalIP, address: "+address+"}")
		if i < 16 {
			kept = append(kept, address)
		}
	}
	pausedHost := func(status string) string {
		return strings.Replace(bareMetalHost(consumer, status),
			"metadata: {", `metadata: {annotations: {baremetalhost.metal3.io/paused: ""}, `, 1)
	}
	data := inspected + ", renderedData: {name: data-0, namespace: fleet}"
	for name, tc := range map[string]struct {
		objects string
		want    wanted
	}{
		"no host yet": {
			metal3Machine("", `conditions: [{type: AssociateBareMetalHost, status: "False", reason: AssociateBareMetalHostFailed,
				message: no available host found}]`),
			wanted{notYet: "the Metal3Machine m has no BareMetalHost yet: its condition AssociateBareMetalHost is False: " +
				"AssociateBareMetalHostFailed: no available host found"},
		},
		"the annotation is none": {
			metal3Machine("metal3.io/BareMetalHost: rack-1", ""), wanted{notYet: "the Metal3Machine m has no BareMetalHost yet"},
		},
		"the image is being written": {
			metal3Machine(hasRack1, inspected) +
				bareMetalHost(consumer, "provisioning: {state: provisioning}, errorMessage: the image has another checksum"),
			wanted{notYet: `the state of the BareMetalHost fleet/rack-1 is "provisioning", not provisioned: the image has another checksum`},
		},
		"it has no state": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(consumer, ""),
			wanted{notYet: `the state of the BareMetalHost fleet/rack-1 is "", not provisioned`},
		},
		"nobody changes its state": {
			metal3Machine(hasRack1, inspected) + pausedHost("provisioning: {state: provisioning}, errorMessage: no power"),
			wanted{notYet: `is "provisioning", not provisioned, and it is paused by its annotation baremetalhost.metal3.io/paused: no power`},
		},
		"paused when it has its image": {
			metal3Machine(hasRack1, inspected) + pausedHost(provisioned),
			wanted{host: metal3Host([]string{"172.22.0.40", "2001:db8::7"}, []string{"2001:db8::7", "172.22.0.40"})},
		},
		"it says more than can be stored": {
			metal3Machine(hasRack1, inspected) +
				bareMetalHost(consumer, "provisioning: {state: error}, errorMessage: '"+strings.Repeat("é", 100000)+"'"),
			wanted{notYet: `is "error", not provisioned: éé`},
		},
		"an inspection that lies": {
			metal3Machine(hasRack1, "addresses: ["+strings.Join(lies, ", ")+"]") + bareMetalHost(consumer, provisioned),
			wanted{host: metal3Host(kept, kept)},
		},
		"what the inspection has seen": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(consumer, provisioned),
			wanted{host: metal3Host([]string{"172.22.0.40", "2001:db8::7"}, []string{"2001:db8::7", "172.22.0.40"})},
		},
		"static addresses first": {
			metal3Machine(hasRack1, data) + bareMetalHost(consumer, provisioned) + ipam,
			wanted{host: metal3Host([]string{"10.0.0.5", "fd00::5", "172.22.0.40", "2001:db8::7"},
				[]string{"10.0.0.5", "fd00::5", "2001:db8::7", "172.22.0.40"})},
		},
		"its data are gone": {
			metal3Machine(hasRack1, data) + bareMetalHost(consumer, provisioned),
			wanted{host: metal3Host([]string{"172.22.0.40", "2001:db8::7"}, []string{"2001:db8::7", "172.22.0.40"})},
		},
		"nobody knows an address": {
			metal3Machine(hasRack1, `addresses: [{type: InternalIP, address: "fe80::a%eno1"}]`) + bareMetalHost(consumer, provisioned),
			wanted{notYet: "nobody knows an address of the Metal3Machine m"},
		},
		"the host is nobody's": {
			metal3Machine(hasRack1, inspected) + bareMetalHost("null", provisioned), wanted{notYet: "whose consumer is nobody"},
		},
		"the host is another's": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(strings.Replace(consumer, "name: m", "name: other", 1), provisioned),
			wanted{notYet: "the Metal3Machine m names the BareMetalHost fleet/rack-1, whose consumer is the Metal3Machine other"},
		},
		"the host is that of another namespace": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(strings.Replace(consumer, "namespace: fleet", "namespace: lab", 1), provisioned),
			wanted{notYet: "whose consumer is"},
		},
		"the host is another kind's": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(strings.Replace(consumer, "kind: Metal3Machine", "kind: Machine", 1), provisioned),
			wanted{notYet: "whose consumer is"},
		},
		"the host is being cleaned": {
			metal3Machine(hasRack1, inspected) + bareMetalHost(consumer, "provisioning: {state: deprovisioning}"),
			wanted{lost: "the BareMetalHost fleet/rack-1 is given up: its state is deprovisioning"},
		},
		"the host is gone": {metal3Machine(hasRack1, inspected), wanted{lost: "the BareMetalHost fleet/rack-1 does not exist any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, "Metal3Machine", tc.want, append(definitions(), objects(t, tc.objects)...)...)
		})
	}
}

// A release that keeps the older contract has other conditions, and its Metal3Data are of its own version.
func TestMetal3OfOlderContract(t *testing.T) {
	older := func(documents string) []client.Object {
		documents = strings.ReplaceAll(documents, "infrastructure.cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1beta1")
		return append(objects(t, documents), definition("metal3machines", "v1beta1", "v1beta1"))
	}
	waiting := metal3Machine("", `conditions: [{type: Ready, status: "False"},
		{type: AssociateBMH, status: "False", reason: PauseAnnotationSetFailed}]`)
	check(t, "Metal3Machine", wanted{notYet: "the Metal3Machine m has no BareMetalHost yet: its condition AssociateBMH is False: " +
		"PauseAnnotationSetFailed"}, older(waiting)...)
	all := []string{"10.0.0.5", "fd00::5", "172.22.0.40", "2001:db8::7"}
	check(t, "Metal3Machine", wanted{host: metal3Host(all, []string{"10.0.0.5", "fd00::5", "2001:db8::7", "172.22.0.40"})},
		older(metal3Machine(hasRack1, inspected+", renderedData: {name: data-0}")+bareMetalHost(consumer, provisioned)+ipam)...)
}

// An IPAM that is not installed has given no address; one that may not be read is no reason to take what may be another host's.
func TestMetal3IPAM(t *testing.T) {
	want := metal3Host([]string{"172.22.0.40", "2001:db8::7"}, []string{"2001:db8::7", "172.22.0.40"})
	for name, tc := range map[string]struct {
		answer error
		err    string
	}{
		"not installed": {answer: &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "ipam.metal3.io", Kind: "IPClaim"}}},
		"not allowed": {
			answer: apierrors.NewForbidden(schema.GroupResource{Group: "ipam.metal3.io", Resource: "ipclaims"}, "", errors.New("no")),
			err:    "list the IPClaims of the Metal3Data data-0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine, patches := machineOf("Metal3Machine"), 0
			all := metal3Machine(hasRack1, inspected+", renderedData: {name: data-0}") + bareMetalHost(consumer, provisioned) + ipam
			c := api(t, &patches, append(definitions(), objects(t, all)...)...).(client.WithWatch)
			live := interceptor.NewClient(c, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if list.(*unstructured.UnstructuredList).GroupVersionKind().Group == "ipam.metal3.io" || tc.err == "" {
						return tc.answer
					}
					return c.List(ctx, list, options...)
				},
			})
			got, err := infra.Of(machine, c, live).Host(t.Context(), infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
