// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"slices"

	cryptossh "golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// ControlPlane and Worker are the roles of hosts, by the label role, and the names of what is declared for each. Machines of workers
// have a label Worker.
const ControlPlane, Worker = "control-plane", "worker"

// Of is an object of the fleet.
func Of(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }

func (f *Fleet) declare() {
	f.T.Helper()
	f.Create(f.inventory()...)
	object := &controlplanev1.KubexmControlPlane{ObjectMeta: Of(Name), Spec: f.Options.ControlPlane}
	object.Spec.Replicas, object.Spec.Version = ptr.To(int32(f.Options.ControlPlanes)), f.Bundle.Version(artifact.Kubernetes)
	object.Spec.MachineTemplate.Spec.InfrastructureRef = machines(ControlPlane)
	f.Create(
		&clusterv1.Cluster{ObjectMeta: Of(Name), Spec: clusterv1.ClusterSpec{
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: Name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: Name},
		}},
		f.infrastructure(), hostsOf(ControlPlane), object,
	)
	if f.Options.Workers > 0 {
		f.declareWorkers()
	}
}

func (f *Fleet) infrastructure() *infrav1.KubexmCluster {
	object := &infrav1.KubexmCluster{ObjectMeta: Of(Name)}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(f.Options.Domains))) {
		object.Spec.FailureDomains = append(object.Spec.FailureDomains, clusterv1.FailureDomain{Name: name, ControlPlane: ptr.To(true)})
	}
	return object
}

func (f *Fleet) declareWorkers() {
	f.T.Helper()
	md := &clusterv1.MachineDeployment{ObjectMeta: Of(Worker), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: Name, Replicas: ptr.To(int32(f.Options.Workers)),
	}}
	md.Spec.Template.Labels = map[string]string{Worker: ""}
	md.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: Name, Version: f.Bundle.Version(artifact.Kubernetes), InfrastructureRef: machines(Worker),
		Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: Worker,
		}},
	}
	f.Create(&bootstrapv1.KubexmConfigTemplate{ObjectMeta: Of(Worker)}, hostsOf(Worker), md)
}

// inventory are the hosts' objects.
func (f *Fleet) inventory() []client.Object {
	f.T.Helper()
	key, err := os.ReadFile(f.Pool.Hosts[0].KeyPath)
	must(f.T, err)
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: Of("ssh"), Type: corev1.SecretTypeSSHAuth, Data: map[string][]byte{infra.KeyPrivateKey: key}},
	}
	for i, h := range f.Pool.Hosts {
		object := &infrav1.KubexmHost{ObjectMeta: Of(h.Name), Spec: infrav1.KubexmHostSpec{
			Address: h.Address, Access: spec.Access{
				User: h.User, Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
				HostKeys: spec.HostKeys{Pinned: []string{cryptossh.FingerprintSHA256(h.HostKey)}},
			},
		}}
		if len(f.Options.Domains) > 0 {
			object.Spec.FailureDomain = f.Options.Domains[i]
		}
		object.Labels = map[string]string{"role": ControlPlane}
		if i >= f.Options.ControlPlanes && f.Options.Workers > 0 {
			object.Labels["role"] = Worker
		}
		objects = append(objects, object)
	}
	return objects
}

// machines refers to the template of KubexmMachines on hosts of a role, which hostsOf is.
func machines(role string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: role}
}

func hostsOf(role string) *infrav1.KubexmMachineTemplate {
	template := &infrav1.KubexmMachineTemplate{ObjectMeta: Of(role)}
	template.Spec.Template.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}
	return template
}
