// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

// kubeadmConfig is the ConfigMap in kube-system that "kubeadm join" reads, and clusterConfiguration its key.
const (
	kubeadmConfig        = "kubeadm-config"
	clusterConfiguration = "ClusterConfiguration"
)

// TellKubeadm raises the version of Kubernetes by which hosts join to the one that the control plane has. Hosts of ours that join say it
// themselves; a single one that follows another version where it is does not, and kubeadm refuses a cluster that is said to be two minor
// versions older than itself. It is never lowered. A cluster that kubeadm has not made has nothing to be told.
func (v *View) TellKubeadm(ctx context.Context, has string) error {
	defer v.close()
	found, err := v.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, kubeadmConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the ConfigMap %s: %w", kubeadmConfig, err)
	}
	var of map[string]any
	if err := yaml.Unmarshal([]byte(found.Data[clusterConfiguration]), &of); err != nil {
		return fmt.Errorf("the ConfigMap %s: %s is not readable: %w", kubeadmConfig, clusterConfiguration, err)
	}
	told, _ := of["kubernetesVersion"].(string)
	before, err := version.ParseSemantic(told)
	after, unknown := version.ParseSemantic(has)
	if err := errors.Join(err, unknown); err != nil {
		return fmt.Errorf("the ConfigMap %s: its version is %q, and that of the control plane %q: %w", kubeadmConfig, told, has, err)
	}
	if !before.LessThan(after) {
		return nil
	}
	of["kubernetesVersion"] = has
	text, err := yaml.Marshal(of)
	if err != nil {
		return err
	}
	found.Data[clusterConfiguration] = string(text)
	if _, err := v.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, found, metav1.UpdateOptions{}); err != nil &&
		!apierrors.IsConflict(err) {
		return fmt.Errorf("write the ConfigMap %s: %w", kubeadmConfig, err)
	}
	return nil
}
