// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// groupVersion is that of the provider's kinds.
var groupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

const (
	attachedLabel      = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name"
	cleanupAnnotation  = "byoh.infrastructure.cluster.x-k8s.io/unregistering"
	endpointAnnotation = "byoh.infrastructure.cluster.x-k8s.io/endpointip"
	versionAnnotation  = "byoh.infrastructure.cluster.x-k8s.io/k8sversion"

	clusterFinalizer = "byocluster.infrastructure.cluster.x-k8s.io"
	machineFinalizer = "byomachine.infrastructure.cluster.x-k8s.io"

	nodeBootstrapped clusterv1beta1.ConditionType = "K8sNodeBootstrapSucceeded"
	hostReady        clusterv1beta1.ConditionType = "BYOHostReady"
)

// Host is a ByoHost.
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		BootstrapSecret *corev1.ObjectReference `json:"bootstrapSecret,omitempty"`
	} `json:"spec"`
	Status struct {
		MachineRef *corev1.ObjectReference   `json:"machineRef,omitempty"`
		Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
		Network    []Interface               `json:"network,omitempty"`
	} `json:"status"`
}

// Interface is one of a host's, in status.network.
type Interface struct {
	Connected   bool     `json:"connected,omitempty"`
	IPAddrs     []string `json:"ipAddrs,omitempty"` // 10.0.0.5/24
	MACAddr     string   `json:"macAddr"`
	NetworkName string   `json:"networkName,omitempty"`
	IsDefault   bool     `json:"isDefault,omitempty"`
}

// HostList is a list of ByoHosts.
type HostList = provider.List[Host]

// Machine is a ByoMachine.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Selector   *metav1.LabelSelector `json:"selector,omitempty"`
		ProviderID string                `json:"providerID,omitempty"`
	} `json:"spec"`
	Status struct {
		Ready      bool                      `json:"ready,omitempty"`
		Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
	} `json:"status"`
}

// MachineList is a list of ByoMachines.
type MachineList = provider.List[Machine]

// Cluster is a ByoCluster.
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		ControlPlaneEndpoint struct {
			Host string `json:"host"`
			Port int32  `json:"port"`
		} `json:"controlPlaneEndpoint"`
	} `json:"spec"`
	Status struct {
		Ready bool `json:"ready,omitempty"`
	} `json:"status"`
}

// ClusterList is a list of ByoClusters.
type ClusterList = provider.List[Cluster]

// AddToScheme adds the provider's kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	for kind, object := range map[string]runtime.Object{
		"ByoHost": &Host{}, "ByoHostList": &HostList{}, "ByoMachine": &Machine{}, "ByoMachineList": &MachineList{},
		"ByoCluster": &Cluster{}, "ByoClusterList": &ClusterList{},
	} {
		scheme.AddKnownTypeWithName(groupVersion.WithKind(kind), object)
	}
	metav1.AddToGroupVersion(scheme, groupVersion)
	return nil
}

// DeepCopyObject copies it.
func (h *Host) DeepCopyObject() runtime.Object { return provider.Copy(h) }

// DeepCopyObject copies it.
func (m *Machine) DeepCopyObject() runtime.Object { return provider.Copy(m) }

// DeepCopyObject copies it.
func (c *Cluster) DeepCopyObject() runtime.Object { return provider.Copy(c) }
