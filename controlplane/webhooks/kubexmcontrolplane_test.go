// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func controlPlaneWith(change func(*controlplanev1.KubexmControlPlaneSpec)) *controlplanev1.KubexmControlPlane {
	c := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	c.Spec.Version = "v1.36.3"
	c.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "KubexmMachineTemplate", Name: "prod-masters",
	}
	if change != nil {
		change(&c.Spec)
	}
	return c
}

func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	return names
}

func TestDefault(t *testing.T) {
	c := controlPlaneWith(func(s *controlplanev1.KubexmControlPlaneSpec) { s.Version = "1.36.3" })
	DefaultControlPlane(c)
	if c.Spec.Version != "v1.36.3" || ptr.Deref(c.Spec.Replicas, 0) != 1 {
		t.Errorf("the version is %s, with %d replicas", c.Spec.Version, ptr.Deref(c.Spec.Replicas, 0))
	}
	if len(c.Spec.Cluster.Network.PodCIDRs) != 0 {
		t.Errorf("a default that the Cluster may say otherwise was written: %v", c.Spec.Cluster.Network.PodCIDRs)
	}
	if got := c.Spec.Cluster.Etcd.Type; got != spec.EtcdKubexm {
		t.Errorf("of an object that is created, the type of etcd that is written is %q", got)
	}
	if got := c.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider; got != spec.EncryptionSecretbox {
		t.Errorf("of an object that is created, the encryption that is written is %q", got)
	}
	if errs := ValidateControlPlane(c); len(errs) != 0 {
		t.Errorf("the defaults are refused: %v", errs)
	}
}

// TestDefaultOfOld writes into an object that exists nothing that was not decided when it was created.
func TestDefaultOfOld(t *testing.T) {
	c := controlPlaneWith(nil)
	c.UID = "1"
	DefaultControlPlane(c)
	if got := c.Spec.Cluster.Etcd.Type; got != "" {
		t.Errorf("the type of etcd became %s", got)
	}
	if got := c.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider; got != "" {
		t.Errorf("the encryption became %s", got)
	}
}

// TestDefaultOfMoved: an object that is made again of one whose hosts were made without encryption stays so, and what a user says counts.
func TestDefaultOfMoved(t *testing.T) {
	moved := controlPlaneWith(nil)
	moved.Annotations = map[string]string{controlplanev1.AuthoritiesAnnotation: "ca=sha256:"}
	DefaultControlPlane(moved)
	if got := moved.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider; got != "" {
		t.Errorf("the encryption of an object that was moved became %s", got)
	}
	for want, change := range map[spec.EncryptionProvider]func(*controlplanev1.KubexmControlPlaneSpec){
		spec.EncryptionAESCBC: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.Kubernetes.EncryptionAtRest.Provider = spec.EncryptionAESCBC
		},
		spec.EncryptionNone: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "encryption-provider-config", Value: "/etc/kms.yaml"}}
		},
	} {
		c := controlPlaneWith(change)
		DefaultControlPlane(c)
		if got := c.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider; got != want {
			t.Errorf("the encryption became %q, want %s", got, want)
		}
		if errs := ValidateControlPlane(c); len(errs) != 0 {
			t.Errorf("%s: refused: %v", want, errs)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*controlplanev1.KubexmControlPlaneSpec)
		want   []string
	}{
		"as little as possible": {},
		"no version":            {func(s *controlplanev1.KubexmControlPlaneSpec) { s.Version = "" }, []string{"spec.version"}},
		"half a version":        {func(s *controlplanev1.KubexmControlPlaneSpec) { s.Version = "v1.36" }, []string{"spec.version"}},
		"three replicas with a load balancer": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Replicas, s.Cluster.LoadBalancer.Type = ptr.To[int32](3), spec.LoadBalancerNodeLocal
		}},
		"three replicas without one": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.Replicas = ptr.To[int32](3) },
			[]string{"spec.cluster.loadBalancer.type"},
		},
		"two replicas with etcd on them": {func(s *controlplanev1.KubexmControlPlaneSpec) { s.Replicas = ptr.To[int32](2) }, []string{"spec.replicas"}},
		"two replicas with etcd elsewhere": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Replicas, s.Cluster.LoadBalancer.Type = ptr.To[int32](2), spec.LoadBalancerNodeLocal
			s.Cluster.Etcd = spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{Endpoints: []string{"http://10.9.0.1:2379"}}}
		}},
		"eleven replicas with etcd on them": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Replicas, s.Cluster.LoadBalancer.Type = ptr.To[int32](11), spec.LoadBalancerNodeLocal
		}, []string{"spec.replicas"}},
		"an endpoint": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.100", Port: 6443}
			s.Cluster.LoadBalancer.Type, s.Cluster.ControlPlaneEndpoint.Domain = spec.LoadBalancerKubeVIP, "api.prod.example"
		}},
		"a name with a virtual address": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.prod.example", Port: 6443}
			s.Cluster.LoadBalancer.Type, s.Cluster.ControlPlaneEndpoint.Address = spec.LoadBalancerKubeVIP, "10.1.0.100"
		}},
		"three replicas behind the infrastructure's load balancer": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Replicas, s.Cluster.LoadBalancer.Type = ptr.To[int32](3), spec.LoadBalancerInfrastructure
		}},
		"no virtual address": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.LoadBalancer.Type = spec.LoadBalancerKubeVIP
		}, []string{"spec.controlPlaneEndpoint.host"}},
		"a host without a port": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint.Host = "10.1.0.100"
		}, []string{"spec.controlPlaneEndpoint"}},
		"a port that etcd has": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.100", Port: 2379}
		}, []string{"spec.controlPlaneEndpoint.port"}},
		"a bad name": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "Api_Prod", Port: 6443}
		}, []string{"spec.controlPlaneEndpoint.host"}},
		"two addresses, and another port": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.100", Port: 6443}
			s.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: "10.1.0.101", Port: 7443}
		}, []string{"spec.cluster.controlPlaneEndpoint.port", "spec.cluster.controlPlaneEndpoint.address"}},
		"two names": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "api.prod.example", Port: 6443}
			s.Cluster.ControlPlaneEndpoint.Domain = "b.prod.example"
		}, []string{"spec.cluster.controlPlaneEndpoint.domain"}},
		"an address without a name": {func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.ControlPlaneEndpoint.Address = "10.1.0.100"
		}, []string{"spec.cluster.controlPlaneEndpoint.address"}},
		"no replicas": {func(s *controlplanev1.KubexmControlPlaneSpec) { s.Replicas = ptr.To[int32](0) }, []string{"spec.replicas"}},
		"a bad label": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineTemplate.ObjectMeta.Labels = map[string]string{"a b": "c"}
			}, []string{"spec.machineTemplate.metadata.labels"},
		},
		"taints without the gate": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
			}, []string{"spec.machineTemplate.spec.taints"},
		},
		"networks that overlap, and a bad label of the hosts": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.Cluster.Network = spec.Network{PodCIDRs: []string{"10.0.0.0/16"}, ServiceCIDRs: []string{"10.0.0.0/20"}}
				s.Node.NodeLabels = map[string]string{"a b": "c"}
			}, []string{"spec.cluster.network.serviceCIDRs[0]", "spec.node.nodeLabels[a b]"},
		},
		"hosts that nobody enters": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.Node.AccessPolicy = spec.AccessClosed }, []string{"spec.node.accessPolicy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateControlPlane(controlPlaneWith(test.change))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*controlplanev1.KubexmControlPlaneSpec)
		want   []string
	}{
		"an API server's flag": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "v", Value: "3"}}
		}},
		"a sysctl": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.System.Sysctls = []spec.Sysctl{{Name: "vm.swappiness", Value: "0"}}
		}},
		"a timeout": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
		}},
		"a default, written out": {change: func(s *controlplanev1.KubexmControlPlaneSpec) {
			s.Cluster.Default()
		}},
		"who connects to whom": {
			func(s *controlplanev1.KubexmControlPlaneSpec) { s.Node.Access.Connection = spec.ConnectionCallHome },
			[]string{"spec.node.access.connection"},
		},
		"the pod network": {
			func(s *controlplanev1.KubexmControlPlaneSpec) {
				s.Cluster.Network.PodCIDRs = []string{"10.8.0.0/16"}
			}, []string{"spec.cluster.network.podCIDRs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fields(ValidateControlPlaneUpdate(controlPlaneWith(nil),
				controlPlaneWith(test.change))); !slices.Equal(got, test.want) {
				t.Errorf("refused %v, and not %v", got, test.want)
			}
		})
	}
}

func TestTaints(t *testing.T) {
	gates := feature.MutableGates.DeepCopy()
	if err := feature.MutableGates.Set(string(feature.MachineTaintPropagation) + "=true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { feature.MutableGates = gates; feature.Gates = gates })
	var taints []clusterv1.MachineTaint
	for _, key := range []string{
		"dedicated", "example.com/dedicated", "node.kubernetes.io/out-of-service",
		"node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized", clusterv1.NodeUninitializedTaint.Key,
		"node-role.kubernetes.io/master", "a b",
	} {
		taints = append(taints, clusterv1.MachineTaint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	want := []string{"taints[3].key", "taints[4].key", "taints[5].key", "taints[6].key", "taints[7].key"}
	if got := fields(validateTaints(taints, field.NewPath("taints"))); !slices.Equal(got, want) {
		t.Errorf("refused %v, and not %v", got, want)
	}
}

func TestValidateTemplate(t *testing.T) {
	template := &controlplanev1.KubexmControlPlaneTemplate{}
	if errs := ValidateControlPlaneTemplate(template); len(errs) != 0 {
		t.Errorf("an empty template is refused: %v", errs)
	}
	template.Spec.Template.Spec.Cluster.Network.PodCIDRs = []string{"10.0.0.0/33"}
	template.Spec.Template.Spec.Node.NodeLabels = map[string]string{"a b": "c"}
	template.Spec.Template.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a b": "c"}
	template.Spec.Template.Spec.Rollout.Before.CertificatesExpiryDays = 3
	template.Spec.Template.Spec.MachineNaming.Template = "always the same"
	want := []string{
		"spec.template.spec.machineTemplate.metadata.labels",
		"spec.template.spec.rollout.before.certificatesExpiryDays",
		"spec.template.spec.machineNaming.template",
		"spec.template.spec.cluster.network.podCIDRs[0]",
		"spec.template.spec.node.nodeLabels[a b]",
	}
	if got := fields(ValidateControlPlaneTemplate(template)); !slices.Equal(got, want) {
		t.Errorf("refused %v, and not %v", got, want)
	}
}
