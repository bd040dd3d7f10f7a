// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Targets is what each host of a cluster's objects must be once every host has its place, in the order of the KubexmHosts. What Cluster
// API and the control plane would make of the objects is made here of the same functions, and nothing of it is stored. Which host began
// is not known, and makes no difference to a host that is a part of the cluster: it is the first of its kind.
func Targets(all []client.Object) ([]spec.Target, error) {
	d := read(all)
	hosts := make([]hostObjects, len(d.hosts))
	shared := target.SharedOf(d.plane.Cluster, desired.ClusterConfig(d.plane, nil, nil))
	for i, h := range d.hosts {
		made, err := d.objectsOf(h)
		if err != nil {
			return nil, err
		}
		seen := shared.Host(infra.HostOf(h).Host, target.RoleOf(made.machine, made.config))
		made.config.Status.Host = bootstrapv1.HostStatus{Name: seen.Name, Address: seen.Address, InternalAddress: seen.NodeAddress()}
		if made.machine != nil {
			d.plane.Machines = append(d.plane.Machines, *made.machine)
		}
		d.plane.Configs = append(d.plane.Configs, *made.config)
		hosts[i] = made
	}
	shared = target.SharedOf(d.plane.Cluster, desired.ClusterConfig(d.plane, nil, d.plane.Members()))
	targets := make([]spec.Target, len(hosts))
	for i, made := range hosts {
		h := infra.HostOf(d.hosts[i])
		var err error
		if targets[i], err = target.New(shared, made.machine, made.config, h.Host, h.NodeLabels); err != nil {
			return nil, fmt.Errorf("host %s: %w", d.hosts[i].Name, err)
		}
	}
	return targets, nil
}

// hostObjects declare one host. Its Machine is nil if it does not become a Node.
type hostObjects struct {
	machine *clusterv1.Machine
	config  *bootstrapv1.KubexmConfig
}

// declared are a cluster's objects by what they are.
type declared struct {
	plane       *snapshot.ControlPlane
	hosts       []*infrav1.KubexmHost
	deployments map[string]*clusterv1.MachineDeployment
	templates   map[string]*bootstrapv1.KubexmConfigTemplate
}

func read(all []client.Object) *declared {
	d := &declared{
		plane:       &snapshot.ControlPlane{},
		deployments: map[string]*clusterv1.MachineDeployment{}, templates: map[string]*bootstrapv1.KubexmConfigTemplate{},
	}
	var endpoint clusterv1.APIEndpoint
	for _, object := range all {
		switch o := object.(type) {
		case *clusterv1.Cluster:
			d.plane.Cluster = o.DeepCopy()
		case *controlplanev1.KubexmControlPlane:
			d.plane.Object = o
		case *infrav1.KubexmCluster:
			endpoint = o.Spec.ControlPlaneEndpoint
		case *infrav1.KubexmHost:
			d.hosts = append(d.hosts, o)
		case *clusterv1.MachineDeployment:
			d.deployments[o.Name] = o
		case *bootstrapv1.KubexmConfigTemplate:
			d.templates[o.Name] = o
		}
	}
	// Cluster API copies it.
	if d.plane.Cluster.Spec.ControlPlaneEndpoint.IsZero() {
		d.plane.Cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	return d
}

// inventory are those that declare a host that becomes no Node.
func (d *declared) inventory(name string, role spec.Role) hostObjects {
	return hostObjects{config: desired.InventoryConfig(d.plane, bootstrapv1.HostReference{Name: name, Role: role})}
}

// objectsOf are those that declare one of the hosts, after those before it.
func (d *declared) objectsOf(h *infrav1.KubexmHost) (hostObjects, error) {
	pool := h.Labels[PoolLabel]
	switch pool {
	case controlPlanePool:
		order := spec.BootstrapInit
		if len(d.plane.Own()) > 0 {
			order = spec.BootstrapJoin
		}
		return hostObjects{
			machine: desired.Machine(d.plane, h.Name, clusterv1.ContractVersionedObjectReference{}),
			config:  desired.Config(d.plane, h.Name, order),
		}, nil
	case etcdPool:
		return d.inventory(h.Name, spec.RoleEtcd), nil
	case balancerPool:
		return d.inventory(h.Name, spec.RoleLoadBalancer), nil
	}
	deployment := d.deployments[d.plane.Cluster.Name+"-"+pool]
	if deployment == nil {
		return hostObjects{}, fmt.Errorf("host %s: there is no MachineDeployment for its pool %q", h.Name, pool)
	}
	template := d.templates[deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name]
	if template == nil {
		return hostObjects{}, fmt.Errorf("host %s: there is no KubexmConfigTemplate for its pool %q", h.Name, pool)
	}
	meta := metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}
	return hostObjects{
		machine: &clusterv1.Machine{ObjectMeta: meta, Spec: *deployment.Spec.Template.Spec.DeepCopy()},
		config:  &bootstrapv1.KubexmConfig{ObjectMeta: meta, Spec: *template.Spec.Template.Spec.DeepCopy()},
	}, nil
}
