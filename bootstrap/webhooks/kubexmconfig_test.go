// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"

func access() spec.Access {
	return spec.Access{
		User: "ops", Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
		HostKeys: spec.HostKeys{Pinned: []string{fingerprint}},
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bootstrapv1.KubexmConfigSpec)
		// want are the paths of the errors, in order.
		want []string
	}{
		"nothing of its own": {change: func(*bootstrapv1.KubexmConfigSpec) {}},
		"access":             {change: func(s *bootstrapv1.KubexmConfigSpec) { s.Access = access() }},
		"a whole key": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access = access()
			s.Access.HostKeys.Pinned = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"}
		}},
		"half an access": {
			change: func(s *bootstrapv1.KubexmConfigSpec) { s.Access.Port = 70000 },
			want:   []string{"access.port"},
		},
		"bad access": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access = access()
				s.Access.User, s.Access.Credentials.SecretRef.Name = "o ps", "Not/AName"
				s.Access.HostKeys.Pinned = []string{fingerprint, "MD5:aa", fingerprint}
			},
			want: []string{"access.user", "access.credentials.secretRef.name", "access.hostKeys.pinned[1]", "access.hostKeys.pinned[2]"},
		},
		"users' certificates": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access.Credentials.UserCA = spec.UserCA{SecretRef: spec.SecretReference{Name: "users-ca"}, Principal: "kubexm@prod"}
		}},
		"users' certificates of an authority that is made": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access.Credentials.UserCA.ValiditySeconds = 120
		}},
		"bad certificates of users": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access.Credentials = spec.Credentials{
					SecretRef: spec.SecretReference{Name: "ssh"},
					UserCA:    spec.UserCA{SecretRef: spec.SecretReference{Name: "Not/AName"}, Principal: "x'y", ValiditySeconds: 10},
				}
			},
			want: []string{
				"access.credentials.userCA.secretRef.name", "access.credentials.userCA.validitySeconds", "access.credentials.userCA",
				"access.credentials.userCA.principal",
			},
		},
		"a jump host's authority that nobody makes": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access.ProxyJump = spec.ProxyJump{
					Host: "bastion.example.org", User: "jump", HostKeys: spec.HostKeys{Pinned: []string{fingerprint}},
					Credentials: spec.Credentials{UserCA: spec.UserCA{ValiditySeconds: 120}},
				}
			},
			want: []string{"access.proxyJump.credentials.secretRef.name", "access.proxyJump.credentials.userCA.secretRef.name"},
		},
		"certificates of hosts, where bootstrap data brings their keys": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access = access()
				s.Access.HostKeys = spec.HostKeys{Authorities: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"}}
			},
			want: []string{"access.hostKeys.authorities"},
		},
		"closed when it is a Node": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access, s.AccessPolicy = access(), spec.AccessClosed
			s.Access.HostKeys, s.Reset.Policy = spec.HostKeys{}, spec.ResetWhenReachable
		}},
		"half closed": {change: func(s *bootstrapv1.KubexmConfigSpec) { s.AccessPolicy = "Ajar" }, want: []string{"accessPolicy"}},
		"closed, though an image opens it": {
			change: func(s *bootstrapv1.KubexmConfigSpec) { s.Access, s.AccessPolicy = access(), spec.AccessClosed },
			want:   []string{"accessPolicy"},
		},
		"closed, and reset": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.AccessPolicy, s.Reset.Policy = spec.AccessClosed, spec.ResetAlways
			},
			want: []string{"accessPolicy"},
		},
		"a host that connects to the manager": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access.Connection = spec.ConnectionCallHome
		}},
		"one that is dialled all the same": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access = access()
				s.Access.Connection, s.Access.Port = spec.ConnectionCallHome, 2222
				s.Access.ProxyJump = spec.ProxyJump{Host: "bastion.example.org", User: "jump", Credentials: s.Access.Credentials, HostKeys: s.Access.HostKeys}
			},
			want: []string{"access.port", "access.proxyJump"},
		},
		"one that is closed": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access.Connection, s.AccessPolicy = spec.ConnectionCallHome, spec.AccessClosed
			},
			want: []string{"accessPolicy"},
		},
		"another way to connect": {
			change: func(s *bootstrapv1.KubexmConfigSpec) { s.Access.Connection = "Carrier" },
			want:   []string{"access.connection"},
		},
		"through a jump host": {change: func(s *bootstrapv1.KubexmConfigSpec) {
			s.Access = access()
			s.Access.ProxyJump = spec.ProxyJump{Host: "bastion.example.org", User: "jump", Credentials: s.Access.Credentials, HostKeys: s.Access.HostKeys}
		}},
		"half a jump host": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access = access()
				s.Access.ProxyJump = spec.ProxyJump{User: "jump"}
			},
			want: []string{"access.proxyJump.host", "access.proxyJump.credentials.secretRef.name", "access.proxyJump.hostKeys.pinned"},
		},
		"a bad jump host": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.Access = access()
				s.Access.ProxyJump = spec.ProxyJump{
					Host: "bastion:22", Port: -1, Credentials: s.Access.Credentials, HostKeys: spec.HostKeys{Pinned: []string{"MD5:aa"}},
				}
			},
			want: []string{"access.proxyJump.host", "access.proxyJump.user", "access.proxyJump.port", "access.proxyJump.hostKeys.pinned[0]"},
		},
		"the host's own": {
			change: func(s *bootstrapv1.KubexmConfigSpec) {
				s.NodeLabels = map[string]string{"a b": "c"}
				s.Files = []spec.File{{Path: "relative", Content: "x"}}
			},
			want: []string{"nodeLabels[a b]", "files[0].path"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, template := &bootstrapv1.KubexmConfig{}, &bootstrapv1.KubexmConfigTemplate{}
			test.change(&config.Spec)
			test.change(&template.Spec.Template.Spec)
			var got, ofTemplate []string
			for _, err := range ValidateConfig(config) {
				got = append(got, strings.TrimPrefix(err.Field, "spec."))
			}
			for _, err := range ValidateConfigTemplate(template) {
				ofTemplate = append(ofTemplate, strings.TrimPrefix(err.Field, "spec.template.spec."))
			}
			if want := strings.Join(test.want, " "); strings.Join(got, " ") != want || strings.Join(ofTemplate, " ") != want {
				t.Errorf("refused %v, in a template %v, and not %v", got, ofTemplate, test.want)
			}
		})
	}
}

func TestTemplateMetadata(t *testing.T) {
	template := &bootstrapv1.KubexmConfigTemplate{}
	template.Spec.Template.ObjectMeta = clusterv1.ObjectMeta{Labels: map[string]string{"a b": "c"}}
	errs := ValidateConfigTemplate(template)
	if len(errs) != 1 || errs[0].Field != "spec.template.metadata.labels" {
		t.Errorf("a bad label: %v", errs)
	}
}

func TestHostsThatAreNoNodes(t *testing.T) {
	of := func(name string, role spec.Role) *bootstrapv1.KubexmConfig {
		return &bootstrapv1.KubexmConfig{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "KubexmControlPlane", Name: "prod", Controller: ptr.To(true)}}},
			Spec:       bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: name, Role: role}},
		}
	}
	if errs := ValidateConfig(of("lb1", spec.RoleLoadBalancer)); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	if errs := ValidateConfig(of("Not A Name", spec.RoleWorker)); len(errs) != 2 {
		t.Errorf("a worker without a Machine, under no name: %v", errs)
	}
	nobodys := of("lb1", spec.RoleLoadBalancer)
	nobodys.OwnerReferences = nil
	if errs := ValidateConfig(nobodys); len(errs) != 1 || errs[0].Field != "spec.hostRef" {
		t.Errorf("a host that no control plane has chosen: %v", errs)
	}
	template := &bootstrapv1.KubexmConfigTemplate{}
	template.Spec.Template.Spec = bootstrapv1.KubexmConfigSpec{
		HostRef: bootstrapv1.HostReference{Name: "lb1", Role: spec.RoleLoadBalancer}, BootstrapMode: spec.BootstrapInit,
	}
	if errs := ValidateConfigTemplate(template); len(errs) != 2 {
		t.Errorf("one host's in a template: %v", errs)
	}
	old := of("e1", spec.RoleEtcd)
	old.Spec.BootstrapMode = spec.BootstrapJoin
	updated := of("e2", spec.RoleEtcd)
	updated.Spec.BootstrapMode = spec.BootstrapInit
	if errs := ValidateConfigUpdate(old, updated); len(errs) != 2 {
		t.Errorf("another host that begins anew: %v", errs)
	}
	if errs := ValidateConfigUpdate(old, old); len(errs) > 0 {
		t.Errorf("the same: %v", errs)
	}
	dialled, calls := &bootstrapv1.KubexmConfig{}, &bootstrapv1.KubexmConfig{}
	calls.Spec.Access.Connection = spec.ConnectionCallHome
	if errs := ValidateConfigUpdate(dialled, calls); len(errs) != 1 || errs[0].Field != "spec.access.connection" {
		t.Errorf("a host that has read its bootstrap data: %v", errs)
	}
	said := dialled.DeepCopy()
	said.Spec.Access.Connection = spec.ConnectionDial
	if errs := ValidateConfigUpdate(dialled, said); len(errs) > 0 {
		t.Errorf("a default, written out: %v", errs)
	}
	formatted := of("lb1", spec.RoleLoadBalancer)
	formatted.Spec.Format = bootstrapv1.CloudConfigFormat
	if errs := ValidateConfig(formatted); len(errs) != 1 || errs[0].Field != "spec.format" {
		t.Errorf("bootstrap data that nobody runs: %v", errs)
	}
}

// TestFormatStays: the default, which nobody writes, is the same as what it stands for.
func TestFormatStays(t *testing.T) {
	for _, tc := range []struct {
		was, is bootstrapv1.BootstrapFormat
		refused bool
	}{
		{"", bootstrapv1.CloudConfigFormat, false}, {bootstrapv1.CloudConfigFormat, "", false},
		{bootstrapv1.IgnitionFormat, bootstrapv1.IgnitionFormat, false},
		{"", bootstrapv1.IgnitionFormat, true}, {bootstrapv1.IgnitionFormat, "", true},
	} {
		old, updated := &bootstrapv1.KubexmConfig{}, &bootstrapv1.KubexmConfig{}
		old.Spec.Format, updated.Spec.Format = tc.was, tc.is
		if errs := ValidateConfigUpdate(old, updated); (len(errs) == 1 && errs[0].Field == "spec.format") != tc.refused || len(errs) > 1 {
			t.Errorf("%q becomes %q: %v", tc.was, tc.is, errs)
		}
	}
}

// TestNoNodes: what is for Nodes is refused of hosts that become none.
func TestNoNodes(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "KubexmControlPlane", Name: "prod", Controller: ptr.To(true)}}},
		Spec: bootstrapv1.KubexmConfigSpec{
			HostRef: bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd},
			Node: spec.Node{
				Kubelet: spec.Kubelet{MaxPods: 7}, NodeLabels: map[string]string{"a": "b"},
				NodeTaints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
				System:     spec.System{Swap: spec.PolicyOff, Firewall: spec.FirewallOff}, PostCommands: []string{"true"},
			},
		},
	}
	var refused []string
	for _, err := range ValidateConfig(c) {
		refused = append(refused, err.Field)
	}
	if got, want := strings.Join(refused, " "), "spec.kubelet spec.nodeLabels spec.nodeTaints spec.system.swap"; got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
}

// TestSharedUpdate: what is taken off a list of all hosts stays on them. Where a KubexmControlPlane writes the object, it has been asked.
func TestSharedUpdate(t *testing.T) {
	old := &bootstrapv1.KubexmClusterConfig{}
	old.Spec.Cluster.Hooks = []spec.Hook{{Name: "a", Task: "system", When: spec.HookAfter, Commands: []string{"true"}}}
	old.Spec.Cluster.System.Sysctls = []spec.Sysctl{{Name: "vm.swappiness", Value: "1"}}
	updated := &bootstrapv1.KubexmClusterConfig{}
	updated.Spec.Cluster.System.Swap = spec.PolicyKeep
	var refused []string
	for _, err := range ValidateClusterConfigUpdate(old, updated) {
		refused = append(refused, err.Field)
	}
	if got, want := strings.Join(refused, " "), "spec.cluster.system.swap spec.cluster.system.sysctls[0] spec.cluster.hooks[0]"; got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
	updated.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: bootstrapv1.ClusterConfigOwner, Operation: metav1.ManagedFieldsOperationApply},
	}
	if errs := ValidateClusterConfigUpdate(old, updated); len(errs) > 0 {
		t.Errorf("refused what the control plane has written: %v", errs)
	}
}

// TestClosedAccess: it is no host of the inventory's to close, and what is closed is not opened again.
func TestClosedAccess(t *testing.T) {
	refused := func(errs field.ErrorList, want string) {
		t.Helper()
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("refused %q, want %q: %v", got, want, errs)
		}
	}
	apart := &bootstrapv1.KubexmConfig{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "KubexmControlPlane", Name: "prod", Controller: ptr.To(true)}}},
		Spec: bootstrapv1.KubexmConfigSpec{
			HostRef: bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}, AccessPolicy: spec.AccessOpen,
		},
	}
	refused(ValidateConfig(apart), "spec.accessPolicy")

	old, updated := &bootstrapv1.KubexmConfig{}, &bootstrapv1.KubexmConfig{}
	old.Spec.AccessPolicy, updated.Spec.AccessPolicy = spec.AccessClosed, spec.AccessOpen
	refused(ValidateConfigUpdate(old, updated), "") // nothing was closed yet
	reachable := metav1.Condition{
		Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AccessClosedReason,
	}
	old.Status.Conditions = []metav1.Condition{reachable}
	refused(ValidateConfigUpdate(old, updated), "spec.accessPolicy")
	updated.Spec.AccessPolicy = ""
	refused(ValidateConfigUpdate(old, updated), "spec.accessPolicy")
	refused(ValidateConfigUpdate(old, old), "")
	refused(ValidateConfigUpdate(updated, old), "") // and back
}
