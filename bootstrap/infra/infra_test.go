// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// objects reads documents of YAML, in which tabs may be where blanks may.
func objects(t *testing.T, documents string) []client.Object {
	t.Helper()
	var all []client.Object
	for document := range strings.SplitSeq(documents, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(document, "\t", " ")), &object.Object); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	return all
}

// definition is how Cluster API finds the version of a kind: by the labels of its definition.
func definition(plural, contract, version string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: plural + ".infrastructure.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/" + contract: version},
	}}
}

// definitions are those of BYOH, which keeps the contract v1beta1, and of others that keep v1beta2.
func definitions() []client.Object {
	return []client.Object{
		definition("byomachines", "v1beta1", "v1beta1"), definition("metal3machines", "v1beta2", "v1beta2"),
		definition("devmachines", "v1beta2", "v1beta2"), definition("foreignmachines", "v1beta2", "v1"),
	}
}

// api is an API server with objects in it, and how often anything was patched.
func api(t *testing.T, patches *int, all ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			*patches++
			return c.Patch(ctx, o, p, options...)
		},
	}).Build()
}

func machineOf(kind string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-x"},
		Spec: clusterv1.MachineSpec{ClusterName: "prod", InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: kind, Name: "m",
		}},
	}
}

// wanted is what an adapter is to answer: a Host, or a HostPending or a HostGone that says something.
type wanted struct {
	host   *infra.Host
	notYet string
	lost   string
}

// check asks the adapter for a kind, and looks whether what it says of what could not be had can be stored.
func check(t *testing.T, kind string, want wanted, all ...client.Object) {
	t.Helper()
	machine, patches := machineOf(kind), 0
	c := api(t, &patches, all...)
	got, err := infra.Of(machine, c, c).Host(t.Context(), infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}})
	var notYet *infra.HostPending
	var lost *infra.HostGone
	switch {
	case want.notYet != "":
		if !errors.As(err, &notYet) || !strings.Contains(notYet.Message, want.notYet) || len(notYet.Message) > 4096 {
			t.Errorf("got %v and %v (%T), want that not yet: %s", got, err, err, want.notYet)
		}
	case want.lost != "":
		if !errors.As(err, &lost) || !strings.Contains(lost.Message, want.lost) {
			t.Errorf("got %v and %v (%T), want that it is lost: %s", got, err, err, want.lost)
		}
	default:
		if diff := cmp.Diff(want.host, got); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	if patches > 0 {
		t.Errorf("whoever asks where a host is has written %d times", patches)
	}
}

func TestPolicies(t *testing.T) {
	patches := 0
	for kind, want := range map[string]spec.ResetPolicy{
		"KubexmMachine": spec.ResetAlways, "ByoMachine": spec.ResetAlways, "Metal3Machine": spec.ResetNever, "DevMachine": spec.ResetNever,
		"ForeignMachine": spec.ResetWhenReachable,
	} {
		machine, c := machineOf(kind), api(t, &patches)
		adapter := infra.Of(machine, c, c)
		if got := adapter.Reset(); got != want {
			t.Errorf("%s: hosts are reset %s, not %s", kind, got, want)
		}
		if ours := kind == "KubexmMachine"; adapter.HasDoor() == ours {
			t.Errorf("%s: the bootstrap data opens a door: %t", kind, !ours)
		}
		takes := kind != "KubexmMachine" && kind != "ByoMachine"
		if why := adapter.Refuses(bootstrapv1.IgnitionFormat); (why == "") != takes {
			t.Errorf("%s: Ignition is refused with %q", kind, why)
		}
		if why := adapter.Refuses("") + adapter.Refuses(bootstrapv1.CloudConfigFormat); why != "" {
			t.Errorf("%s: cloud-config is refused with %q", kind, why)
		}
	}
	inventory := infra.Inventory(api(t, &patches), api(t, &patches))
	if inventory.Reset() != spec.ResetAlways || inventory.HasDoor() {
		t.Error("a host of the inventory is one of the pool")
	}
}

// A kind that is not installed yet is waited for: nothing says in which order things are installed.
func TestNotInstalled(t *testing.T) {
	check(t, "ByoMachine", wanted{notYet: "knows no ByoMachine of infrastructure.cluster.x-k8s.io: install"})
	check(t, "ByoMachine", wanted{lost: "the ByoMachine m does not exist"}, definitions()...)
}

// What cannot be read is said: a change would pass unseen.
func TestMachineOfUnread(t *testing.T) {
	patches := 0
	c := api(t, &patches, definitions()...).(client.WithWatch)
	refusing := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	})
	host := objects(t, bareMetalHost(consumer, provisioned))[0]
	if _, found, err := infra.MachineOf(t.Context(), refusing, host); found || err == nil || !strings.Contains(err.Error(), "get the Metal3Machine fleet/m") {
		t.Errorf("got %t, %v", found, err)
	}
}

func TestMachineOf(t *testing.T) {
	const owned = `
  ownerReferences:
  - {apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineSet, name: set, uid: s}
  - {apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, name: prod-x, uid: x}`
	machines := objects(t, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: ByoMachine
metadata:
  namespace: fleet
  name: a.b`+owned+`
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3Machine
metadata:
  namespace: fleet
  name: m`+owned+`
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: ByoMachine
metadata: {namespace: fleet, name: stray}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3Data
metadata: {namespace: fleet, name: data-0, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3DataTemplate, name: data, uid: t, controller: true},
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Machine, name: m, uid: m}]}
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPClaim
metadata: {namespace: fleet, name: data-0-v4, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta2
kind: IPAddressClaim
metadata: {namespace: fleet, name: data-0-v6, ownerReferences: [
  {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: Metal3Data, name: data-0, uid: now}]}
`)
	at := func(name string) string {
		for _, o := range machines {
			if o.GetName() == name {
				raw, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				return string(raw)
			}
		}
		t.Fatalf("there is no %s", name)
		return ""
	}
	const address = "apiVersion: ipam.metal3.io/v1alpha1\nkind: IPAddress\nmetadata: {namespace: fleet, name: a}\nspec: "
	const standard = "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddress\nmetadata: {namespace: fleet, name: a}\nspec: "
	const machine = "apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: ForeignMachine\nmetadata:\n  namespace: fleet\n  name: m"
	const openshift = "\n  ownerReferences: [{apiVersion: machine.openshift.io/v1, kind: Machine, name: y, uid: y}]"
	const label = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name: "
	const byoHost = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: ByoHost\nmetadata:\n  namespace: other\n  name: h\n" +
		"  labels: "
	const bmh = "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {namespace: fleet, name: h}\nspec:\n  consumerRef: "
	for name, tc := range map[string]struct {
		object string
		found  bool
	}{
		"of an infrastructure machine":             {machine + owned, true},
		"of one that nobody owns":                  {machine, false},
		"of one that another Machine owns":         {machine + openshift, false},
		"of a ByoHost":                             {byoHost + "{" + label + "fleet.a.b}", true},
		"of a free ByoHost":                        {byoHost + `{}`, false},
		"of a ByoHost whose label is none":         {byoHost + "{" + label + "fleet}", false},
		"of a ByoHost whose ByoMachine is gone":    {byoHost + "{" + label + "fleet.gone}", false},
		"of a ByoHost whose ByoMachine has none":   {byoHost + "{" + label + "fleet.stray}", false},
		"of a BareMetalHost":                       {bmh + consumer, true},
		"of a BareMetalHost without an apiVersion": {bmh + "{kind: Metal3Machine, name: m}", true},
		"of a free BareMetalHost":                  {bmh + "null", false},
		"of another's BareMetalHost":               {bmh + "{apiVersion: v1, kind: Metal3Machine, name: m}", false},
		"of a BareMetalHost that lies":             {bmh + "[1]", false},
		"of a Metal3Data":                          {at("data-0"), true},
		"of a Metal3Data of a template alone":      {strings.ReplaceAll(at("data-0"), "kind: Metal3Machine", "kind: Metal3Other"), false},
		"of Metal3's claim":                        {at("data-0-v4"), true},
		"of Cluster API's claim":                   {at("data-0-v6"), true},
		"of Metal3's address":                      {address + "{claim: {name: data-0-v4}}", true},
		"of Cluster API's address":                 {standard + "{claimRef: {name: data-0-v6}}", true},
		"of an address whose claim is gone":        {address + "{claim: {name: gone}}", false},
		"of an address of no claim":                {address + "{}", false},
		"of an address that lies":                  {address + "[1]", false},
	} {
		t.Run(name, func(t *testing.T) {
			patches := 0
			c := api(t, &patches, append(definitions(), machines...)...)
			got, found, err := infra.MachineOf(t.Context(), c, objects(t, tc.object)[0])
			if want := (client.ObjectKey{Namespace: "fleet", Name: "prod-x"}); found != tc.found || found && got != want || err != nil {
				t.Errorf("got %v, %t, %v; want %v, %t", got, found, err, want, tc.found)
			}
		})
	}
}

func TestWatched(t *testing.T) {
	for kind, want := range map[string]string{
		"":               "KubexmHost.infrastructure.cluster.x-k8s.io", // no Machine
		"KubexmMachine":  "KubexmMachine.infrastructure.cluster.x-k8s.io KubexmHost.infrastructure.cluster.x-k8s.io",
		"ForeignMachine": "ForeignMachine.infrastructure.cluster.x-k8s.io",
		"DevMachine":     "DevMachine.infrastructure.cluster.x-k8s.io",
		"ByoMachine":     "ByoMachine.infrastructure.cluster.x-k8s.io ByoHost.infrastructure.cluster.x-k8s.io",
		"Metal3Machine": "Metal3Machine.infrastructure.cluster.x-k8s.io BareMetalHost.metal3.io Metal3Data.infrastructure.cluster.x-k8s.io " +
			"IPClaim.ipam.metal3.io IPAddress.ipam.metal3.io IPAddressClaim.ipam.cluster.x-k8s.io IPAddress.ipam.cluster.x-k8s.io",
	} {
		var got []string
		machine := machineOf(kind)
		if kind == "" {
			machine = nil
		}
		for _, kind := range infra.Watched(machine) {
			got = append(got, kind.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v are watched, not %s", kind, got, want)
		}
	}
}
