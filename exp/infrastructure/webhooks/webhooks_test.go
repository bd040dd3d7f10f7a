// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	return names
}

func hostWith(change func(*infrav1.KubexmHost)) *infrav1.KubexmHost {
	h := &infrav1.KubexmHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "rack1-07"},
		Spec: infrav1.KubexmHostSpec{
			Address: "172.16.0.17",
			Access: spec.Access{
				User: "ops", Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "fleet-ssh"}},
				HostKeys: spec.HostKeys{Pinned: []string{"SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"}},
			},
		},
	}
	if change != nil {
		change(h)
	}
	return h
}

// certified is an access by certificates.
func certified() spec.Access {
	return spec.Access{
		User: "ops", Credentials: spec.Credentials{UserCA: spec.UserCA{SecretRef: spec.SecretReference{Name: "users-ca"}}},
		HostKeys: spec.HostKeys{Authorities: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"}},
	}
}

func TestValidateHost(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*infrav1.KubexmHost)
		want   []string
	}{
		"a host":               {},
		"a name with a dot":    {change: func(h *infrav1.KubexmHost) { h.Name = "node1.example.com" }},
		"a name too long":      {func(h *infrav1.KubexmHost) { h.Name = strings.Repeat("n", 64) }, []string{"metadata.name"}},
		"localhost":            {func(h *infrav1.KubexmHost) { h.Name = "localhost" }, []string{"metadata.name"}},
		"no address":           {func(h *infrav1.KubexmHost) { h.Spec.Address = "" }, []string{"spec.address"}},
		"a name for address":   {func(h *infrav1.KubexmHost) { h.Spec.Address = "rack1-07" }, []string{"spec.address"}},
		"an IPv6 address":      {change: func(h *infrav1.KubexmHost) { h.Spec.Address = "2001:db8::7" }},
		"a link's address":     {func(h *infrav1.KubexmHost) { h.Spec.Address = "fe80::7%eth0" }, []string{"spec.address"}},
		"a loopback address":   {func(h *infrav1.KubexmHost) { h.Spec.InternalAddresses = []string{"127.0.0.1"} }, []string{"spec.internalAddresses[0]"}},
		"an unknown processor": {func(h *infrav1.KubexmHost) { h.Spec.Arch = "mips" }, []string{"spec.arch"}},
		"nothing of access": {
			func(h *infrav1.KubexmHost) { h.Spec.Access = spec.Access{} },
			[]string{"spec.access.user", "spec.access.credentials.secretRef.name", "spec.access.hostKeys.pinned"},
		},
		"bad access": {
			func(h *infrav1.KubexmHost) {
				h.Spec.Access.User, h.Spec.Access.Port, h.Spec.Access.Credentials.SecretRef.Name = "o ps", -1, "Not/AName"
			}, []string{"spec.access.user", "spec.access.port", "spec.access.credentials.secretRef.name"},
		},
		"one that is to connect to the manager": {
			func(h *infrav1.KubexmHost) { h.Spec.Access.Connection = spec.ConnectionCallHome }, []string{"spec.access.connection"},
		},
		"certificates": {change: func(h *infrav1.KubexmHost) { h.Spec.Access = certified() }},
		"a key and certificates": {func(h *infrav1.KubexmHost) {
			both := certified()
			h.Spec.Access.Credentials.UserCA, h.Spec.Access.HostKeys.Authorities = both.Credentials.UserCA, both.HostKeys.Authorities
		}, []string{"spec.access.credentials.userCA", "spec.access.hostKeys.authorities"}},
		"bad certificates": {func(h *infrav1.KubexmHost) {
			h.Spec.Access = certified()
			h.Spec.Access.Credentials.UserCA.Principal, h.Spec.Access.Credentials.UserCA.ValiditySeconds = "a,b", 30
			h.Spec.Access.HostKeys.Authorities[0] = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"
		}, []string{
			"spec.access.credentials.userCA.principal", "spec.access.credentials.userCA.validitySeconds", "spec.access.hostKeys.authorities[0]",
		}},
		"an authority that nobody names": {func(h *infrav1.KubexmHost) {
			h.Spec.Access = certified()
			h.Spec.Access.Credentials.UserCA = spec.UserCA{Principal: "kubexm"}
		}, []string{"spec.access.credentials.secretRef.name", "spec.access.credentials.userCA.secretRef.name"}},
		"less than nothing": {func(h *infrav1.KubexmHost) {
			h.Spec.Capacity = infrav1.HostCapacity{CPUs: -1, Memory: resource.MustParse("-1Gi")}
		}, []string{"spec.capacity.cpus", "spec.capacity.memory"}},
		"a controller without TLS": {func(h *infrav1.KubexmHost) {
			h.Spec.BMC = spec.BMC{
				Address: "http://10.0.0.9", SecretRef: spec.SecretReference{Name: "bmc"},
				Certificate: spec.BMCCertificate{SHA256Fingerprint: strings.Repeat("0a", 32)},
			}
		}, []string{"spec.bmc.address"}},
		"a short fingerprint": {func(h *infrav1.KubexmHost) {
			h.Spec.Access.HostKeys.Pinned = []string{"SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3"}
		}, []string{"spec.access.hostKeys.pinned[0]"}},
		"an MD5 fingerprint": {func(h *infrav1.KubexmHost) { h.Spec.Access.HostKeys.Pinned = []string{"MD5:00:11"} }, []string{"spec.access.hostKeys.pinned[0]"}},
		"a key of another type than it says": {
			func(h *infrav1.KubexmHost) {
				h.Spec.Access.HostKeys.Pinned = []string{"ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"}
			}, []string{"spec.access.hostKeys.pinned[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateHost(hostWith(test.change))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}

func claimed(machine string) func(*infrav1.KubexmHost) {
	return func(h *infrav1.KubexmHost) {
		h.Spec.ClaimRef = infrav1.MachineReference{Name: machine, ClusterName: "prod"}
	}
}

func TestValidateHostUpdate(t *testing.T) {
	with := func(changes ...func(*infrav1.KubexmHost)) func(*infrav1.KubexmHost) {
		return func(h *infrav1.KubexmHost) {
			for _, c := range changes {
				c(h)
			}
		}
	}
	inside := func(h *infrav1.KubexmHost) { h.Spec.InternalAddresses = []string{"10.0.0.9"} }
	paused := func(h *infrav1.KubexmHost) { h.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }
	elsewhere := func(h *infrav1.KubexmHost) {
		h.Spec.Address, h.Spec.Access.User, h.Spec.Access.Port = "10.0.0.1", "mallory", 2222
		h.Spec.Access.Credentials.SecretRef.Name = "others-ssh"
		h.Spec.Access.HostKeys.Pinned = []string{"SHA256:AAAAztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"}
		h.Spec.Access.ProxyJump.Host = "mallory.example.org"
		h.Spec.BMC.Address = "https://mallory.example.org"
	}
	all := []string{
		"spec.address", "spec.access.user", "spec.access.port", "spec.access.hostKeys", "spec.access.credentials", "spec.bmc", "spec.access.proxyJump",
	}
	for name, test := range map[string]struct {
		old, updated func(*infrav1.KubexmHost)
		want         []string
	}{
		"a claim":            {updated: claimed("m")},
		"a release":          {old: claimed("m")},
		"another machine":    {old: claimed("m"), updated: claimed("n"), want: []string{"spec.claimRef"}},
		"a free host":        {updated: elsewhere},
		"a host in use":      {old: with(claimed("m"), inside), updated: with(claimed("m"), inside, elsewhere), want: all},
		"released by the by": {old: with(claimed("m"), inside), updated: with(inside, elsewhere), want: all},
		"the port that it has": {
			old: claimed("m"), updated: with(claimed("m"), func(h *infrav1.KubexmHost) { h.Spec.Access.Port = 22 }),
		},
		"a host in use that is paused": {old: with(claimed("m"), inside, paused), updated: with(claimed("m"), inside, paused, elsewhere)},
		"paused by the by":             {old: with(claimed("m"), inside), updated: with(claimed("m"), inside, paused, elsewhere)},
		"unpaused by the by":           {old: with(claimed("m"), inside, paused), updated: with(claimed("m"), inside, elsewhere), want: all},
		"the address of a Node that is paused": {
			old: with(claimed("m"), paused), updated: with(claimed("m"), paused, elsewhere), want: []string{"spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateHostUpdate(hostWith(test.old), hostWith(test.updated))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}

func TestValidateHostDelete(t *testing.T) {
	if errs := ValidateHostDelete(hostWith(nil)); len(errs) != 0 {
		t.Errorf("a free host cannot be deleted: %v", errs)
	}
	taken := hostWith(claimed("m"))
	if errs := ValidateHostDelete(taken); len(errs) != 1 {
		t.Errorf("a host that a Machine has can be deleted: %v", errs)
	}
	taken.Annotations = map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
	if errs := ValidateHostDelete(taken); len(errs) != 0 {
		t.Errorf("clusterctl cannot move a host: %v", errs)
	}
}

func TestValidateMachine(t *testing.T) {
	machine := func(spec infrav1.KubexmMachineSpec) *infrav1.KubexmMachine {
		return &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m"}, Spec: spec}
	}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "role", Operator: "Like"}}}
	for name, test := range map[string]struct {
		spec infrav1.KubexmMachineSpec
		want []string
	}{
		"any host":              {},
		"a host's ID":           {spec: infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/rack1-07"}},
		"another namespace's":   {infrav1.KubexmMachineSpec{ProviderID: "kubexm://other/rack1-07"}, []string{"spec.providerID"}},
		"another provider's ID": {infrav1.KubexmMachineSpec{ProviderID: "byoh://fleet/rack1-07"}, []string{"spec.providerID"}},
		"no host in the ID":     {infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet"}, []string{"spec.providerID"}},
		"a bad selector":        {infrav1.KubexmMachineSpec{HostSelector: bad}, []string{"spec.hostSelector.matchExpressions[0].operator"}},
		"a bad name":            {infrav1.KubexmMachineSpec{HostName: "Rack 1"}, []string{"spec.hostName"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateMachine(machine(test.spec))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}

	has := infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/rack1-07"}
	for name, test := range map[string]struct {
		old, updated infrav1.KubexmMachineSpec
		want         []string
	}{
		"a host":  {updated: has},
		"a wish":  {updated: infrav1.KubexmMachineSpec{HostName: "rack1-08"}},
		"no host": {old: has, want: []string{"spec.providerID"}},
		"a late wish": {old: has,
			updated: infrav1.KubexmMachineSpec{ProviderID: has.ProviderID, HostName: "x", HostSelector: &metav1.LabelSelector{}},
			want:    []string{"spec.hostName", "spec.hostSelector"}},
	} {
		t.Run("update to "+name, func(t *testing.T) {
			if got := fields(ValidateMachineUpdate(machine(test.old), machine(test.updated))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
	template := &infrav1.KubexmMachineTemplate{}
	template.Spec.Template.Spec = infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/rack1-07", HostName: "Rack 1"}
	if got, want := fields(ValidateMachineTemplate(template)), []string{"spec.template.spec.providerID", "spec.template.spec.hostName"}; !slices.Equal(got, want) {
		t.Errorf("of a template, refused %v, and not %v", got, want)
	}
}

func TestValidateClusterTemplate(t *testing.T) {
	template := &infrav1.KubexmClusterTemplate{}
	if got := fields(ValidateClusterTemplate(template)); len(got) > 0 {
		t.Errorf("of an empty template, refused %v", got)
	}
	template.Spec.Template.ObjectMeta.Labels = map[string]string{"not a label": ""}
	template.Spec.Template.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "Api_Prod", Port: 70000}
	const path = "spec.template.spec.controlPlaneEndpoint."
	if got, want := fields(ValidateClusterTemplate(template)), []string{"spec.template.metadata.labels", path + "host", path + "port"}; !slices.Equal(got, want) {
		t.Errorf("refused %v, and not %v", got, want)
	}
}

func TestValidateCluster(t *testing.T) {
	type e = clusterv1.APIEndpoint
	cluster := func(endpoint e) *infrav1.KubexmCluster {
		return &infrav1.KubexmCluster{Spec: infrav1.KubexmClusterSpec{ControlPlaneEndpoint: endpoint}}
	}
	const host, port = "spec.controlPlaneEndpoint.host", "spec.controlPlaneEndpoint.port"
	for name, test := range map[string]struct {
		endpoint e
		want     []string
	}{
		"none":          {},
		"a name":        {endpoint: e{Host: "api.prod.example", Port: 6443}},
		"an address":    {endpoint: e{Host: "2001:db8::1", Port: 6443}},
		"a URL":         {e{Host: "https://api.prod.example"}, []string{host}},
		"no such ports": {e{Port: 65536}, []string{port}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateCluster(cluster(test.endpoint))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
	for name, test := range map[string]struct {
		old, updated e
		want         []string
	}{
		"a first host":          {old: e{Port: 6443}, updated: e{Host: "a", Port: 6443}},
		"another host":          {e{Host: "a", Port: 6443}, e{Host: "b", Port: 6443}, []string{host}},
		"another port, no host": {e{Host: "a", Port: 6443}, e{Port: 7443}, []string{host, port}},
	} {
		t.Run("update to "+name, func(t *testing.T) {
			if got := fields(ValidateClusterUpdate(cluster(test.old), cluster(test.updated))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}
