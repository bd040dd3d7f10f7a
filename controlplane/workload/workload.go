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
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// timeout bounds each request: a reconcile waits for it.
const timeout = 5 * time.Second

// View observes one cluster.
type View struct {
	client kubernetes.Interface
	// close ends connections that no other View would use.
	close func()
}

// Connect returns the cluster that a kubeconfig leads to. A kubeconfig that runs commands or reads files is refused. It does not connect
// yet.
func Connect(kubeconfig secret.Value) (*View, error) {
	config, err := kube.RESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout, config.UserAgent, config.WarningHandler = timeout, rest.DefaultKubernetesUserAgent(), rest.NoWarnings{}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, connections)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	v := &View{client: client, close: func() {}}
	if config.Proxy != nil {
		// client-go keeps connections for the next client of the same cluster, but not those through a proxy: they would pile up.
		v.close = func() { utilnet.CloseIdleConnectionsFor(connections.Transport) }
	}
	return v, nil
}

// Look sees all that a control plane is judged by.
func (v *View) Look(ctx context.Context, c *snapshot.ControlPlane) *snapshot.Workload {
	defer v.close()
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
