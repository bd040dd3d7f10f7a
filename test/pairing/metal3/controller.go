// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// again is how long the provider waits before it looks again for what nobody tells it of.
const again = 30 * time.Second

// clusters reconciles Metal3Clusters.
type clusters struct{ *provider.Provider }

// Reconcile makes a Metal3Cluster that has an endpoint provisioned.
func (r *clusters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &Cluster{}
	owner, err := r.ReadOfCluster(ctx, request, cluster)
	if err != nil || owner == nil {
		return ctrl.Result{}, err
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return r.ReleaseAfter(ctx, &MachineList{}, owner, time.Second, cluster, clusterFinalizer)
	}
	before := provider.Copy(cluster)
	controllerutil.AddFinalizer(cluster, clusterFinalizer)
	cluster.Status.Initialization.Provisioned = cluster.Spec.ControlPlaneEndpoint.Host != ""
	return ctrl.Result{}, r.Patch(ctx, cluster, before)
}

// machines reconciles Metal3Machines.
type machines struct {
	*provider.Provider
	log func(format string, args ...any)
}

// Reconcile takes a BareMetalHost for a Metal3Machine, and finds its Node.
func (r *machines) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &Machine{}
	owner, cluster, err := r.ReadOfMachine(ctx, request, machine)
	if err != nil || owner == nil {
		return ctrl.Result{}, err
	}
	before := provider.Copy(machine)
	host, err := r.host(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !machine.DeletionTimestamp.IsZero() {
		return r.release(ctx, machine, host)
	}
	controllerutil.AddFinalizer(machine, machineFinalizer)
	after, err := r.provision(ctx, cluster, owner, machine, host)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, r.Patch(ctx, machine, before)
}

// host is the BareMetalHost that a Metal3Machine has, nil if none.
func (r *machines) host(ctx context.Context, machine *Machine) (*Host, error) {
	namespace, name, found := strings.Cut(machine.Annotations[hostAnnotation], "/")
	if !found {
		return nil, nil
	}
	host := &Host{}
	return host, r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, host)
}

// provision brings a Metal3Machine as far as it comes, and returns after how long more can be known, 0 if something will tell.
func (r *machines) provision(
	ctx context.Context, cluster *clusterv1.Cluster, owner *clusterv1.Machine, machine *Machine, host *Host,
) (time.Duration, error) {
	if !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		say(machine, "WaitingForClusterInfrastructureReady")
		return 0, nil
	}
	if !bootstrapReady(owner) {
		say(machine, "WaitingForBootstrapData")
		return 0, nil
	}
	if host == nil {
		var err error
		if host, err = r.choose(ctx, owner, machine); err != nil {
			return 0, err
		}
		if host == nil {
			say(machine, "AssociateBareMetalHostFailed")
			return again, nil
		}
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, hostAnnotation, host.Namespace+"/"+host.Name)
		meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
			Type: "AssociateBareMetalHost", Status: metav1.ConditionTrue, Reason: "AssociateBareMetalHostSuccess",
		})
	}
	machine.Status.Addresses = clusterv1.MachineAddresses{
		{Type: clusterv1.MachineHostName, Address: host.Name}, {Type: clusterv1.MachineInternalDNS, Address: host.Name},
	}
	for _, nic := range host.Status.Hardware.NICs {
		machine.Status.Addresses = append(machine.Status.Addresses, clusterv1.MachineAddress{
			Type: clusterv1.MachineInternalIP, Address: nic.IP,
		})
	}
	if host.Status.Provisioning.State != Provisioned || machine.Status.Initialization.Provisioned {
		return 0, nil
	}
	id, err := r.provide(ctx, cluster, machine, host)
	if err != nil {
		r.log("the Metal3Machine %s waits for its Node: %v", machine.Name, err)
		return again, nil
	}
	machine.Spec.ProviderID, machine.Status.Initialization.Provisioned = id, true
	return 0, nil
}

// bootstrapReady is what the provider asks: whether Cluster API says so in a condition that is deprecated.
func bootstrapReady(owner *clusterv1.Machine) bool {
	if owner.Spec.Bootstrap.DataSecretName == nil || owner.Status.Deprecated == nil || owner.Status.Deprecated.V1Beta1 == nil {
		return false
	}
	return slices.ContainsFunc(owner.Status.Deprecated.V1Beta1.Conditions, func(c clusterv1.Condition) bool {
		return c.Type == clusterv1.BootstrapReadyV1Beta1Condition && c.Status == corev1.ConditionTrue
	})
}

// choose takes any BareMetalHost that is free and matches, nil if there is none.
func (r *machines) choose(ctx context.Context, owner *clusterv1.Machine, machine *Machine) (*Host, error) {
	all := &HostList{}
	if err := r.Client.List(ctx, all, client.InNamespace(machine.Namespace),
		client.MatchingLabels(machine.Spec.HostSelector.MatchLabels)); err != nil {
		return nil, err
	}
	free := slices.DeleteFunc(all.Items, func(h Host) bool {
		return h.Spec.ConsumerRef != nil || h.Status.Provisioning.State != Available || h.Status.ErrorMessage != ""
	})
	if len(free) == 0 {
		return nil, nil
	}
	host := &free[rand.IntN(len(free))]
	before := provider.Copy(host)
	host.Spec.ConsumerRef = &corev1.ObjectReference{
		APIVersion: groupVersion.String(), Kind: "Metal3Machine", Namespace: machine.Namespace, Name: machine.Name,
	}
	host.Spec.Image = &machine.Spec.Image
	host.Spec.UserData = &corev1.SecretReference{Namespace: machine.Namespace, Name: *owner.Spec.Bootstrap.DataSecretName}
	return host, r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// provide gives the one Node that has the BareMetalHost's UID its provider ID.
func (r *machines) provide(ctx context.Context, cluster *clusterv1.Cluster, machine *Machine, host *Host) (string, error) {
	id := fmt.Sprintf("metal3://%s/%s/%s", host.Namespace, host.Name, machine.Name)
	remote, err := r.Workload(ctx, cluster)
	if err != nil {
		return "", err
	}
	nodes := &corev1.NodeList{}
	if err := remote.List(ctx, nodes, client.MatchingLabels{uuidLabel: string(host.UID)}); err != nil {
		return "", err
	}
	if len(nodes.Items) != 1 {
		return "", fmt.Errorf("%d Nodes have the label %s=%s", len(nodes.Items), uuidLabel, host.UID)
	}
	node := &nodes.Items[0]
	switch node.Spec.ProviderID {
	case id:
		return id, nil
	case "":
		before := node.DeepCopy()
		node.Spec.ProviderID = id
		return id, remote.Patch(ctx, node, client.MergeFrom(before))
	}
	return "", fmt.Errorf("the Node %s has the provider ID %s, not %s", node.Name, node.Spec.ProviderID, id)
}

// release takes the image from a host, and waits until it is wiped.
func (r *machines) release(ctx context.Context, machine *Machine, host *Host) (ctrl.Result, error) {
	if host != nil && host.Spec.ConsumerRef != nil {
		before := provider.Copy(host)
		host.Spec.Image, host.Spec.UserData = nil, nil
		if host.Status.Provisioning.State == Available {
			host.Spec.ConsumerRef = nil
		}
		if err := r.Client.Patch(ctx, host, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
		if host.Spec.ConsumerRef != nil {
			return ctrl.Result{RequeueAfter: again}, nil
		}
	}
	return ctrl.Result{}, r.Release(ctx, machine, machineFinalizer)
}

// say sets the condition by which a Metal3Machine says why it has no host.
func say(machine *Machine, reason string) {
	meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
		Type: "AssociateBareMetalHost", Status: metav1.ConditionFalse, Reason: reason,
	})
}
