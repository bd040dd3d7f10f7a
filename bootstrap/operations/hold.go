// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
)

// membershipOf reads what is known of the Cluster's hosts from the API server: others have written it just now.
func (r *KubexmOperationReconciler) membershipOf(ctx context.Context, s *scope) (*membership, error) {
	m := &membership{config: &bootstrapv1.KubexmClusterConfig{}, machines: map[string]*clusterv1.Machine{}}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s.cluster), m.config); err != nil {
		return nil, fmt.Errorf("get the KubexmClusterConfig %s: %w", s.cluster.Name, err)
	}
	of := []client.ListOption{client.InNamespace(s.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}}
	configs, machines := &bootstrapv1.KubexmConfigList{}, &clusterv1.MachineList{}
	if err := r.Reader.List(ctx, configs, of...); err != nil {
		return nil, fmt.Errorf("list the KubexmConfigs of the Cluster %s: %w", s.cluster.Name, err)
	}
	if err := r.Reader.List(ctx, machines, of...); err != nil {
		return nil, fmt.Errorf("list the Machines of the Cluster %s: %w", s.cluster.Name, err)
	}
	m.configs = configs.Items
	for i := range machines.Items {
		if ref := machines.Items[i].Spec.Bootstrap.ConfigRef; ref.GroupKind() == bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind() {
			m.machines[ref.Name] = &machines.Items[i]
		}
	}
	return m, nil
}

// hold has the hosts stand still, and waits until all of them do. One KubexmOperation at a time holds those of a Cluster.
func (r *KubexmOperationReconciler) hold(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o, m := s.operation, s.members
	mine := holder.Of(o)
	switch by, err := holder.By(ctx, r.Reader, m.config); {
	case err != nil:
		return false, ctrl.Result{}, err
	case by != "" && by != mine:
		return r.wait(s, fmt.Sprintf("the KubexmOperation %s holds the hosts: wait until it has ended", holder.Name(by)))
	case by == "":
		before := m.config.DeepCopy()
		metav1.SetMetaDataAnnotation(&m.config.ObjectMeta, bootstrapv1.HeldByAnnotation, mine)
		err := r.Client.Patch(ctx, m.config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return false, ctrl.Result{RequeueAfter: soon}, nil
		} else if err != nil {
			return false, ctrl.Result{}, fmt.Errorf("annotate the KubexmClusterConfig %s: %w", m.config.Name, err)
		}
		ctrl.LoggerFrom(ctx).Info("Held the hosts of etcd and of the control plane", "Cluster", s.cluster.Name)
		r.Events.Eventf(o, m.config, corev1.EventTypeNormal, "HostsHeld", string(o.Spec.Type),
			"the hosts of etcd and of the control plane of %s stand still until this has ended", s.cluster.Name)
	}
	var moving []string
	for i := range o.Status.Hosts {
		h := &o.Status.Hosts[i]
		at := slices.IndexFunc(m.configs, func(c bootstrapv1.KubexmConfig) bool { return c.Name == h.ConfigName })
		if at < 0 || m.configs[at].Status.HeldBy != mine {
			h.Message = "it is to stand still"
			moving = append(moving, h.Name)
			continue
		}
		h.Message = "it stands still"
	}
	if len(moving) > 0 {
		return r.wait(s, "until nothing goes on with "+strings.Join(moving, ", "))
	}
	return true, ctrl.Result{}, nil
}

// release lets the hosts go on.
func (r *KubexmOperationReconciler) release(ctx context.Context, o *bootstrapv1.KubexmOperation) error {
	name, mine := o.Labels[clusterv1.ClusterNameLabel], holder.Of(o)
	if name == "" || mine == "" {
		return nil // it was never so far
	}
	c := &bootstrapv1.KubexmClusterConfig{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, c); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("get the KubexmClusterConfig %s: %w", name, err)
	}
	if c.Annotations[bootstrapv1.HeldByAnnotation] != mine {
		return nil
	}
	before := c.DeepCopy()
	delete(c.Annotations, bootstrapv1.HeldByAnnotation)
	err := r.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the KubexmClusterConfig %s: %w", name, err)
	}
	return nil
}
