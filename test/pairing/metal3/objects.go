// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

var (
	// groupVersion is that of the kinds that Cluster API knows.
	groupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2"}
	// operatorVersion is the operator's.
	operatorVersion = schema.GroupVersion{Group: "metal3.io", Version: "v1alpha1"}
)

const (
	hostAnnotation   = "metal3.io/BareMetalHost"
	uuidLabel        = "metal3.io/uuid"
	clusterFinalizer = "metal3cluster.infrastructure.cluster.x-k8s.io"
	machineFinalizer = "metal3machine.infrastructure.cluster.x-k8s.io"
)

// State is that of a BareMetalHost.
type State string

// States, as far as they are played.
const (
	Available      State = "available"
	Provisioning   State = "provisioning"
	Provisioned    State = "provisioned"
	Deprovisioning State = "deprovisioning"
)

// Host is a BareMetalHost.
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Image       *Image                  `json:"image,omitempty"`
		UserData    *corev1.SecretReference `json:"userData,omitempty"`
		ConsumerRef *corev1.ObjectReference `json:"consumerRef,omitempty"`
	} `json:"spec"`
	Status struct {
		Provisioning struct {
			State State `json:"state"`
		} `json:"provisioning"`
		ErrorMessage string `json:"errorMessage"`
		Hardware     struct {
			NICs []NIC `json:"nics,omitempty"`
		} `json:"hardware"`
	} `json:"status"`
}

// Image is what is written to a disk.
type Image struct {
	URL          string `json:"url"`
	Checksum     string `json:"checksum,omitempty"`
	ChecksumType string `json:"checksumType,omitempty"`
	Format       string `json:"format,omitempty"`
}

// NIC is an interface as it was inspected.
type NIC struct {
	Name string `json:"name,omitempty"`
	IP   string `json:"ip,omitempty"`
}

// HostList is a list of BareMetalHosts.
type HostList = provider.List[Host]

// Machine is a Metal3Machine.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		ProviderID   string `json:"providerID,omitempty"`
		Image        Image  `json:"image,omitzero"`
		HostSelector struct {
			MatchLabels map[string]string `json:"matchLabels,omitempty"`
		} `json:"hostSelector,omitzero"`
	} `json:"spec"`
	Status struct {
		Addresses      clusterv1.MachineAddresses `json:"addresses,omitempty"`
		Initialization struct {
			Provisioned bool `json:"provisioned,omitempty"`
		} `json:"initialization,omitzero"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status"`
}

// MachineList is a list of Metal3Machines.
type MachineList = provider.List[Machine]

// Cluster is a Metal3Cluster.
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
		Initialization struct {
			Provisioned bool `json:"provisioned,omitempty"`
		} `json:"initialization,omitzero"`
	} `json:"status"`
}

// ClusterList is a list of Metal3Clusters.
type ClusterList = provider.List[Cluster]

// AddToScheme adds the provider's kinds, and the operator's.
func AddToScheme(scheme *runtime.Scheme) error {
	for kind, object := range map[string]runtime.Object{
		"Metal3Machine": &Machine{}, "Metal3MachineList": &MachineList{}, "Metal3Cluster": &Cluster{}, "Metal3ClusterList": &ClusterList{},
	} {
		scheme.AddKnownTypeWithName(groupVersion.WithKind(kind), object)
	}
	scheme.AddKnownTypeWithName(operatorVersion.WithKind("BareMetalHost"), &Host{})
	scheme.AddKnownTypeWithName(operatorVersion.WithKind("BareMetalHostList"), &HostList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	metav1.AddToGroupVersion(scheme, operatorVersion)
	return nil
}

// DeepCopyObject copies it.
func (h *Host) DeepCopyObject() runtime.Object { return provider.Copy(h) }

// DeepCopyObject copies it.
func (m *Machine) DeepCopyObject() runtime.Object { return provider.Copy(m) }

// DeepCopyObject copies it.
func (c *Cluster) DeepCopyObject() runtime.Object { return provider.Copy(c) }
