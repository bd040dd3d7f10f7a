// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command smoke proves that a cluster works for pods: a server on one node is reached through its Service's DNS name by a
// pod on another, and all system pods run. It prints what it saw and leaves nothing behind.
//
// The test image comes from the bundle and is put on each host by the ssh and ctr commands, as there is no registry.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

const (
	namespace = "kubexm-smoke"
	port      = 8080
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	bundle := flag.String("bundle", "build/bundle", "bundle that the test image is taken from")
	sshConfig := flag.String("ssh-config", "", "ssh_config with a host for each node, by address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := run(ctx, *kubeconfig, *bundle, *sshConfig); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, bundlePath, sshConfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := readyNodes(ctx, client)
	if err != nil {
		return err
	}
	image, err := load(ctx, bundlePath, sshConfig, nodes)
	if err != nil {
		return err
	}
	if err := systemPods(ctx, client); err != nil {
		return err
	}
	return serviceByName(ctx, client, nodes, image)
}

// readyNodes waits until every Node is Ready and prints them.
func readyNodes(ctx context.Context, client kubernetes.Interface) ([]corev1.Node, error) {
	var nodes []corev1.Node
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
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
		fmt.Printf("node %-12s Ready  %s  %s\n", n.Name, n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion)
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
func systemPods(ctx context.Context, client kubernetes.Interface) error {
	var waiting string
	var running int
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		running, waiting = 0, ""
		for _, ns := range []string{"kube-system", "kube-flannel"} {
			pods, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
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
	fmt.Printf("%d system pods Running\n", running)
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

// load puts the test image on every node and returns its reference.
func load(ctx context.Context, bundlePath, sshConfig string, nodes []corev1.Node) (string, error) {
	store, err := artifact.OpenStore("")
	if err != nil {
		return "", err
	}
	b, err := artifact.Open(ctx, bundlePath, store)
	if err != nil {
		return "", err
	}
	var image string
	for _, n := range nodes {
		arch := n.Status.NodeInfo.Architecture
		image = b.Images(arch)["agnhost"]
		archive, err := b.ImageArchive(arch, image)
		if err != nil {
			return "", err
		}
		content, err := archive.Open()
		if err != nil {
			return "", err
		}
		cmd := exec.CommandContext(ctx, "ssh", "-F", sshConfig, address(n), "sudo", "/usr/local/bin/ctr", "-n", "k8s.io", "images", "import", "-")
		cmd.Stdin = content
		out, err := cmd.CombinedOutput()
		_ = content.Close()
		if err != nil {
			return "", fmt.Errorf("put %s on node %s: %w: %s", image, n.Name, err, out)
		}
	}
	return image, nil
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
func serviceByName(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node, image string) error {
	from, to := nodes[0].Name, nodes[len(nodes)-1].Name
	if err := remove(ctx, client); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() {
		// The outer context may have ended; what was made goes all the same.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = remove(ctx, client)
	}()
	for name, node := range map[string]string{"server": to, "client": from} {
		if _, err := client.CoreV1().Pods(namespace).Create(ctx, pod(name, node, image), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hello"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "server"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}
	if _, err := client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	name := "hello." + namespace + ".svc.cluster.local"
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := dial(ctx, client, name)
		if err != nil || answer != "server" {
			last = fmt.Errorf("answer %q: %w", answer, err)
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("http://%s was not answered from node %s: %w (last: %w)", name, from, err, last)
	}
	fmt.Printf("http://%s answered by a pod on %s, asked from a pod on %s\n", name, to, from)
	return nil
}

// dial has the client pod ask for the server's host name over HTTP, by the API server's proxy.
func dial(ctx context.Context, client kubernetes.Interface, name string) (string, error) {
	raw, err := client.CoreV1().Pods(namespace).ProxyGet("http", "client", fmt.Sprint(port), "dial", map[string]string{
		"host": name, "port": "80", "protocol": "http", "request": "hostname", "tries": "1",
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
		return "", fmt.Errorf("the client saw %v", reply.Errors)
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
func remove(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		if err == nil {
			return false, nil
		}
		_, err = client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return err != nil, nil
	})
}
