// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proof proves that a cluster works for pods: a server on one node is reached through its Service's DNS name by a
// pod on another, and all system pods run. It leaves nothing behind but the test image, which comes from the bundle and is
// put on each host by ssh and a program of its container runtime's, as there is no registry.
package proof

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

const (
	namespace = "kubexm-smoke"
	port      = 8080
)

// Cluster is what is put to the proof.
type Cluster struct {
	Client kubernetes.Interface
	// Bundle is the directory that the test image is taken from.
	Bundle string
	// SSHConfig is an ssh_config with a host for each Node, by address.
	SSHConfig string
	// Domain is that of services and pods, cluster.local if empty.
	Domain string
	// Out is where is written what was seen, a line each.
	Out io.Writer
}

// name is a Service's DNS name.
func (c *Cluster) name(service, namespace string) string {
	return service + "." + namespace + ".svc." + cmp.Or(c.Domain, "cluster.local")
}

func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Out, format, args...) // a reader that is gone is no reason to stop
}

// Prove returns when all Nodes are Ready, all system pods run, and a pod has reached a Service on another Node by its name.
func (c *Cluster) Prove(ctx context.Context) error {
	nodes, err := c.readyNodes(ctx)
	if err != nil {
		return err
	}
	image, err := c.LoadImage(ctx, nodes)
	if err != nil {
		return err
	}
	if err := c.systemPods(ctx); err != nil {
		return err
	}
	return c.serviceByName(ctx, nodes, image)
}

// readyNodes waits until every Node is Ready and prints them.
func (c *Cluster) readyNodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes []corev1.Node
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		nodes = list.Items
		for _, n := range nodes {
			if !ready(n) {
				return false, nil
			}
		}
		return len(nodes) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("nodes are not Ready: %w", err)
	}
	for _, n := range nodes {
		c.say("node %-12s Ready  %s  %s\n", n.Name, n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion)
	}
	return nodes, nil
}

func ready(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// systemPods waits until every pod of the system namespaces runs with all its containers ready.
func (c *Cluster) systemPods(ctx context.Context) error {
	var waiting string
	var running int
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		running, waiting = 0, ""
		for _, ns := range []string{"kube-system", "kube-flannel"} {
			pods, err := c.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for _, p := range pods.Items {
				if !podReady(p) {
					waiting = ns + "/" + p.Name
					return false, nil
				}
				running++
			}
		}
		return running > 0, nil
	})
	if err != nil {
		return fmt.Errorf("pod %s does not run: %w", waiting, err)
	}
	c.say("%d system pods Running\n", running)
	return nil
}

func podReady(p corev1.Pod) bool {
	if p.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if !c.Ready {
			return false
		}
	}
	return true
}

// LoadImage puts the test image, agnhost, on Nodes and returns its reference.
func (c *Cluster) LoadImage(ctx context.Context, nodes []corev1.Node) (string, error) {
	return c.Load(ctx, nodes, "agnhost")
}

// Load puts an image of the bundle on Nodes and returns its reference.
func (c *Cluster) Load(ctx context.Context, nodes []corev1.Node, name string) (string, error) {
	store, err := artifact.OpenStore("")
	if err != nil {
		return "", err
	}
	b, err := artifact.Open(ctx, c.Bundle, store)
	if err != nil {
		return "", err
	}
	var image string
	for _, n := range nodes {
		arch := n.Status.NodeInfo.Architecture
		image = b.Images(arch)[name]
		archive, err := b.ImageArchive(arch, image)
		if err != nil {
			return "", err
		}
		content, err := archive.Open()
		if err != nil {
			return "", err
		}
		load := loaders[strings.Split(n.Status.NodeInfo.ContainerRuntimeVersion, ":")[0]]
		cmd := exec.CommandContext(ctx, "ssh", append([]string{"-F", c.SSHConfig, address(n), "sudo"}, load...)...)
		cmd.Stdin = content
		out, err := cmd.CombinedOutput()
		_ = content.Close()
		if err != nil {
			return "", fmt.Errorf("put %s on node %s: %w: %s", image, n.Name, err, out)
		}
	}
	return image, nil
}

// loaders put images on a host, by its container runtime as its Node names it.
var loaders = map[string][]string{
	"containerd": {"/usr/local/bin/ctr", "-n", "k8s.io", "images", "import", "-"},
	"cri-o":      {"/usr/local/bin/crio-images", "/var/lib/containers", "load"},
}

func address(n corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return n.Name
}

// serviceByName runs a server on the last node and asks it, by its Service's DNS name, from a pod on the first.
func (c *Cluster) serviceByName(ctx context.Context, nodes []corev1.Node, image string) error {
	from, to := nodes[0].Name, nodes[len(nodes)-1].Name
	defer c.clean()
	if _, err := c.serve(ctx, from, to, image, corev1.IPFamilyPolicySingleStack); err != nil {
		return err
	}
	return c.answered(ctx, c.name("hello", namespace), from, to)
}

// serve makes a server on one node, a client on another, and a Service for the server.
func (c *Cluster) serve(ctx context.Context, from, to, image string, families corev1.IPFamilyPolicy) (*corev1.Service, error) {
	if err := c.remove(ctx); err != nil {
		return nil, err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for name, node := range map[string]string{"server": to, "client": from} {
		if _, err := c.Client.CoreV1().Pods(namespace).Create(ctx, pod(name, node, image), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return c.Client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec: corev1.ServiceSpec{
			Selector:       map[string]string{"app": "server"},
			Ports:          []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
			IPFamilyPolicy: &families,
		},
	}, metav1.CreateOptions{})
}

// clean removes what serve made, in its own time: that of those who asked for it may be up.
func (c *Cluster) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = c.remove(ctx)
}

// answered waits until the server on one node answers a pod on another at its Service's name or address.
func (c *Cluster) answered(ctx context.Context, at, from, to string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := c.dial(ctx, at, "80", "hostname")
		if err != nil || answer != "server" {
			last = fmt.Errorf("answer %q: %w", answer, err)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("http://%s was not answered from node %s: %w (last: %w)", at, from, err, last)
	}
	c.say("http://%s answered by a pod on %s, asked from a pod on %s\n", at, to, from)
	return nil
}

// errUnanswered is of a client that asked, and got no answer.
var errUnanswered = errors.New("the client is not answered")

// dial has the client pod ask for a path over HTTP, by the API server's proxy.
func (c *Cluster) dial(ctx context.Context, name, at, path string) (string, error) {
	return c.dialFrom(ctx, "client", name, at, path)
}

// dialFrom has a pod ask.
func (c *Cluster) dialFrom(ctx context.Context, from, name, at, path string) (string, error) {
	raw, err := c.Client.CoreV1().Pods(namespace).ProxyGet("http", from, fmt.Sprint(port), "dial", map[string]string{
		"host": name, "port": at, "protocol": "http", "request": path, "tries": "1",
	}).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var reply struct {
		Responses []string `json:"responses"`
		Errors    []string `json:"errors"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return "", fmt.Errorf("%w in %s", err, raw)
	}
	if len(reply.Responses) != 1 {
		return "", fmt.Errorf("%w: it saw %v", errUnanswered, reply.Errors)
	}
	return reply.Responses[0], nil
}

func pod(name, node, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName:    node,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "agnhost", Image: image, ImagePullPolicy: corev1.PullNever,
				Args: []string{"netexec", "--http-port", fmt.Sprint(port)},
			}},
			TerminationGracePeriodSeconds: new(int64),
		},
	}
}

// remove deletes the namespace and waits until it is gone.
func (c *Cluster) remove(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := c.Client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		if err == nil {
			return false, nil
		}
		_, err = c.Client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err != nil, nil
	})
}
