// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
)

// Foreign is what the API of a cluster says that somebody else has made.
type Foreign struct {
	// Nodes are as of any cluster, and Details, in the same order, what else must be known of them.
	Nodes   []Node
	Details []adopted.Node
	// Configuration is kubeadm's ClusterConfiguration, "" if it is not there.
	Configuration string
	// DaemonSets are all, and Releases those that Helm has deployed in the namespace that was asked for, as namespace/name.
	DaemonSets, Releases []string
}

// ForeignOf asks the API of the cluster with this trust, and for releases of Helm in a namespace, "" for none.
func ForeignOf(ctx context.Context, trust *planner.Trust, releases string) (*Foreign, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*apiTimeout)
	defer cancel()
	api, err := clientOf(trust)
	if err != nil {
		return nil, err
	}
	f := &Foreign{}
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		is := nodeOf(trust.Cluster, n)
		f.Nodes = append(f.Nodes, is)
		f.Details = append(f.Details, adopted.Node{
			Name: is.Name, Address: is.Address, Runtime: is.Runtime, ProviderID: n.Spec.ProviderID, ControlPlane: is.Role == "control-plane",
		})
	}
	config, err := api.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err == nil {
		f.Configuration = config.Data["ClusterConfiguration"]
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	sets, err := api.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		f.DaemonSets = append(f.DaemonSets, sets.Items[i].Namespace+"/"+sets.Items[i].Name)
	}
	if releases == "" {
		return f, nil
	}
	secrets, err := api.CoreV1().Secrets(releases).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,status=deployed"})
	if err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		f.Releases = append(f.Releases, releases+"/"+secrets.Items[i].Labels["name"])
	}
	return f, nil
}

// GiveProviderID sets that of a Node which has none. One that is set cannot be changed.
func GiveProviderID(ctx context.Context, trust *planner.Trust, node, id string) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	api, err := clientOf(trust)
	if err != nil {
		return err
	}
	n, err := api.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil || n.Spec.ProviderID == id {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"providerID": id}})
	if err != nil {
		return err
	}
	_, err = api.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func clientOf(trust *planner.Trust) (*kubernetes.Clientset, error) {
	config, err := restConfigOf(trust)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
