// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// clusters reconciles ByoClusters.
type clusters struct{ *provider.Provider }

// Reconcile makes a ByoCluster ready, whatever its endpoint is.
func (r *clusters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &Cluster{}
	owner, err := r.ReadOfCluster(ctx, request, cluster)
	if err != nil || owner == nil {
		return ctrl.Result{}, err
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return r.ReleaseAfter(ctx, &MachineList{}, owner, again, cluster, clusterFinalizer)
	}
	before := provider.Copy(cluster)
	controllerutil.AddFinalizer(cluster, clusterFinalizer)
	if cluster.Spec.ControlPlaneEndpoint.Port == 0 {
		cluster.Spec.ControlPlaneEndpoint.Port = 6443
	}
	if err := r.Client.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	before = provider.Copy(cluster)
	cluster.Status.Ready = true
	return ctrl.Result{}, r.Client.Status().Patch(ctx, cluster, client.MergeFrom(before))
}

// machines reconciles ByoMachines.
type machines struct{ *provider.Provider }

// Reconcile attaches a ByoHost to a ByoMachine, and finds its Node. Whatever fails is tried again ever more rarely.
func (r *machines) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &Machine{}
	owner, cluster, err := r.ReadOfMachine(ctx, request, machine)
	if err != nil || owner == nil {
		return ctrl.Result{}, err
	}
	host, err := r.attached(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !machine.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, machine, host)
	}
	before := provider.Copy(machine)
	if controllerutil.AddFinalizer(machine, machineFinalizer) {
		if err := r.Client.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	switch {
	case !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false):
		return ctrl.Result{}, r.say(ctx, machine, "WaitingForClusterInfrastructure")
	case owner.Spec.Bootstrap.DataSecretName == nil:
		return ctrl.Result{}, r.say(ctx, machine, "WaitingForBootstrapDataSecret")
	case host == nil:
		if host, err = r.attach(ctx, cluster, owner, machine); err != nil {
			return ctrl.Result{}, err
		}
	}
	if machine.Spec.ProviderID != "" {
		return ctrl.Result{}, nil
	}
	id, err := r.provide(ctx, cluster, host)
	if err != nil {
		return ctrl.Result{}, err
	}
	before = provider.Copy(machine)
	machine.Spec.ProviderID = id
	if err := r.Client.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	before = provider.Copy(machine)
	machine.Status.Ready = true
	set(&machine.Status.Conditions, hostReady, corev1.ConditionTrue, "")
	return ctrl.Result{}, r.Client.Status().Patch(ctx, machine, client.MergeFrom(before))
}

// attached is the ByoHost that says that it is the ByoMachine's, nil if none does.
func (r *machines) attached(ctx context.Context, machine *Machine) (*Host, error) {
	all := &HostList{}
	if err := r.Client.List(ctx, all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		ref := all.Items[i].Status.MachineRef
		if ref != nil && ref.Namespace == machine.Namespace && ref.Name == machine.Name {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// attach takes the first ByoHost of any namespace that is in no Cluster and matches the selector.
func (r *machines) attach(ctx context.Context, cluster *clusterv1.Cluster, owner *clusterv1.Machine, machine *Machine) (*Host, error) {
	selector := labels.NewSelector()
	if machine.Spec.Selector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(machine.Spec.Selector); err != nil {
			return nil, err
		}
	}
	free, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	all := &HostList{}
	if err := r.Client.List(ctx, all, client.MatchingLabelsSelector{Selector: selector.Add(*free)}); err != nil {
		return nil, err
	}
	if len(all.Items) == 0 {
		return nil, errors.Join(errors.New("no hosts found"), r.say(ctx, machine, "BYOHostsUnavailable"))
	}
	host := &all.Items[0]
	before := provider.Copy(host)
	host.Status.MachineRef = &corev1.ObjectReference{
		APIVersion: groupVersion.String(), Kind: "ByoMachine", Namespace: machine.Namespace, Name: machine.Name, UID: machine.UID,
	}
	if err := r.Client.Status().Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, err
	}
	before = provider.Copy(host)
	metav1.SetMetaDataLabel(&host.ObjectMeta, clusterv1.ClusterNameLabel, cluster.Name)
	metav1.SetMetaDataLabel(&host.ObjectMeta, attachedLabel, machine.Namespace+"."+machine.Name)
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, endpointAnnotation, cluster.Spec.ControlPlaneEndpoint.Host)
	metav1.SetMetaDataAnnotation(&host.ObjectMeta, versionAnnotation, owner.Spec.Version)
	host.Spec.BootstrapSecret = &corev1.ObjectReference{
		Kind: "Secret", Namespace: machine.Namespace, Name: *owner.Spec.Bootstrap.DataSecretName,
	}
	return host, r.Client.Patch(ctx, host, client.MergeFrom(before))
}

// provide gives the Node of a ByoHost its provider ID. That there is no such Node yet is an error.
func (r *machines) provide(ctx context.Context, cluster *clusterv1.Cluster, host *Host) (string, error) {
	remote, err := r.Workload(ctx, cluster)
	if err != nil {
		return "", err
	}
	node := &corev1.Node{}
	if err := remote.Get(ctx, client.ObjectKey{Name: host.Name}, node); err != nil {
		return "", err
	}
	if node.Spec.ProviderID != "" {
		if !regexp.MustCompile(`^byoh://` + regexp.QuoteMeta(host.Name) + `/.+$`).MatchString(node.Spec.ProviderID) {
			return "", fmt.Errorf("the provider ID %q of the Node %s has an invalid format", node.Spec.ProviderID, node.Name)
		}
		return node.Spec.ProviderID, nil
	}
	before := node.DeepCopy()
	node.Spec.ProviderID = "byoh://" + host.Name + "/" + rand.String(6)
	return node.Spec.ProviderID, remote.Patch(ctx, node, client.MergeFrom(before))
}

// release lets the ByoMachine go. It does not wait for the agent, which is asked to clean up.
func (r *machines) release(ctx context.Context, machine *Machine, host *Host) error {
	if host != nil {
		before := provider.Copy(host)
		metav1.SetMetaDataAnnotation(&host.ObjectMeta, cleanupAnnotation, "")
		if err := r.Client.Patch(ctx, host, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return r.Release(ctx, machine, machineFinalizer)
}

// say sets the condition by which a ByoMachine says why it has no host.
func (r *machines) say(ctx context.Context, machine *Machine, reason string) error {
	before := provider.Copy(machine)
	if !set(&machine.Status.Conditions, hostReady, corev1.ConditionFalse, reason) {
		return nil
	}
	err := r.Client.Status().Patch(ctx, machine, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// set reports whether it changed a condition.
func set(all *clusterv1beta1.Conditions, of clusterv1beta1.ConditionType, status corev1.ConditionStatus, reason string) bool {
	wanted := clusterv1beta1.Condition{Type: of, Status: status, Reason: reason, LastTransitionTime: metav1.Now().Rfc3339Copy()}
	if status == corev1.ConditionFalse {
		wanted.Severity = clusterv1beta1.ConditionSeverityInfo
	}
	at := slices.IndexFunc(*all, func(c clusterv1beta1.Condition) bool { return c.Type == of })
	if at < 0 {
		*all = append(*all, wanted)
		return true
	}
	if c := (*all)[at]; c.Status == status && c.Reason == reason {
		return false
	}
	(*all)[at] = wanted
	return true
}
