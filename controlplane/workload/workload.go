// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is the cluster as seen through its own API: is it initialized, are the control plane's components
// healthy.
//
// It connects by itself and does not use Cluster API's cluster cache: that one tries a server that did not answer again
// after half a minute, and a control plane comes up in less.
package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// timeout bounds each request: a reconcile waits for it.
const timeout = 5 * time.Second

// View observes one cluster.
type View struct{ client kubernetes.Interface }

// Connect returns the cluster that a kubeconfig leads to. Of the kubeconfig only what it holds itself is used: no
// commands, no files. It does not connect yet.
func Connect(kubeconfig secret.Value) (*View, error) {
	parsed, err := clientcmd.Load(kubeconfig.Reveal())
	if err != nil {
		return nil, errors.New("the kubeconfig is not readable") // the parser's error may quote it
	}
	context, ok := parsed.Contexts[parsed.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("the kubeconfig has no context %q (current-context)", parsed.CurrentContext)
	}
	cluster, user := parsed.Clusters[context.Cluster], parsed.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("the kubeconfig's context %q names a cluster or user that is not there", parsed.CurrentContext)
	}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: cluster.Server, BearerToken: user.Token, Timeout: timeout,
		UserAgent: rest.DefaultKubernetesUserAgent(), WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{
			CAData: cluster.CertificateAuthorityData, CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
			ServerName: cluster.TLSServerName,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &View{client: client}, nil
}

// Look sees all that a control plane is judged by.
func (v *View) Look(ctx context.Context, c *snapshot.ControlPlane) *snapshot.Workload {
	w := &snapshot.Workload{Components: make(map[string][]snapshot.Component)}
	shown, err := pipeline.ShownOf(c.Shared())
	if err != nil {
		w.Err = err
		return w
	}
	_, err = v.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, shown.Initialized, metav1.GetOptions{})
	if w.Initialized = err == nil; err != nil {
		if !apierrors.IsNotFound(err) {
			w.Err = err
		}
		return w
	}
	for _, m := range c.Own() {
		node := m.Status.NodeRef.Name
		if node == "" {
			continue
		}
		for _, part := range shown.Components {
			seen := snapshot.Component{Condition: conditions[part.Name]}
			if part.IsPod {
				seen.Problem, err = v.problem(ctx, part.Name+"-"+node)
			} else {
				seen.Problem, seen.Unknown = unit(c, &m)
			}
			if err != nil {
				w.Err = err
				return w
			}
			w.Components[m.Name] = append(w.Components[m.Name], seen)
		}
	}
	return w
}

// conditions of a Machine say how the components of its host are. Of a static pod, the API server tells, by its file's and its Node's
// name, and of a unit, only what was seen on its host.
var conditions = map[string]string{
	"kube-apiserver": snapshot.APIServerPodHealthy, "kube-controller-manager": snapshot.ControllerManagerPodHealthy,
	"kube-scheduler": snapshot.SchedulerPodHealthy, "etcd": snapshot.EtcdPodHealthy,
}

// unit is what is wrong with a unit on a Machine's host, or why that is not known: a host that does not answer may do its work all the
// same.
func unit(c *snapshot.ControlPlane, m *clusterv1.Machine) (problem string, unknown bool) {
	config := c.ConfigOf(m)
	return c.HostProblem(m).String(), config != nil && snapshot.IsSilent(config)
}

func (v *View) problem(ctx context.Context, name string) (string, error) {
	pod, err := v.client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "the Pod " + name + " does not exist", nil
	}
	if err != nil {
		return "", err
	}
	return Problem(pod), nil
}

// Problem is what is wrong with a Pod, "" if it is healthy.
func Problem(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("the container %s of the Pod %s waits: %s: %s", c.Name, pod.Name, w.Reason, w.Message), ": ")
		}
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("the container %s of the Pod %s ended with %d: %s", c.Name, pod.Name, t.ExitCode, t.Reason)
		}
	}
	return fmt.Sprintf("the Pod %s is %s and not ready", pod.Name, pod.Status.Phase)
}
