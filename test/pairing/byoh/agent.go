// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// agents are the agents of all hosts, each of which reconciles its own ByoHost.
type agents struct {
	client client.Client
	hosts  []*hosts.Host
	log    func(format string, args ...any)
}

// register makes the host's ByoHost, or finds the one that there is, and writes the host's addresses in it: what an agent does when it
// starts, and then no more.
func (a *agents) register(ctx context.Context, namespace string, on *hosts.Host, labels map[string]string) error {
	network, err := observe(ctx, on)
	if err != nil {
		return err
	}
	host := &Host{}
	host.Namespace, host.Name, host.Labels = namespace, on.Name, labels
	if err := a.client.Create(ctx, host); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(host), host); err != nil {
		return err
	}
	before := provider.Copy(host)
	host.Status.Network = network
	return a.client.Status().Patch(ctx, host, client.MergeFrom(before))
}

// observe are the host's interfaces with their addresses.
func observe(ctx context.Context, on *hosts.Host) ([]Interface, error) {
	var links []struct {
		Name     string   `json:"ifname"`
		MAC      string   `json:"address"`
		Flags    []string `json:"flags"`
		AddrInfo []struct {
			Local  string `json:"local"`
			Prefix int    `json:"prefixlen"`
		} `json:"addr_info"`
	}
	var routes []struct {
		Dev string `json:"dev"`
	}
	for command, into := range map[string]any{"ip -j address": &links, "ip -j route show default": &routes} {
		out, err := on.Exec(ctx, strings.Fields(command)...)
		if err == nil {
			err = json.Unmarshal([]byte(out), into)
		}
		if err != nil {
			return nil, fmt.Errorf("host %s: %s: %w", on.Name, command, err)
		}
	}
	var network []Interface
	for _, link := range links {
		i := Interface{
			NetworkName: link.Name, MACAddr: link.MAC, Connected: slices.Contains(link.Flags, "UP"),
			IsDefault: len(routes) > 0 && routes[0].Dev == link.Name,
		}
		for _, address := range link.AddrInfo {
			i.IPAddrs = append(i.IPAddrs, fmt.Sprintf("%s/%d", address.Local, address.Prefix))
		}
		network = append(network, i)
	}
	return network, nil
}

// Reconcile is one look of an agent at its ByoHost.
func (a *agents) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	at := slices.IndexFunc(a.hosts, func(h *hosts.Host) bool { return h.Name == request.Name })
	if at < 0 {
		return ctrl.Result{}, nil
	}
	host := &Host{}
	if err := a.client.Get(ctx, request.NamespacedName, host); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	on := a.hosts[at]
	switch {
	case has(host.Annotations, cleanupAnnotation):
		return ctrl.Result{}, a.cleanUp(ctx, host, on)
	case host.Status.MachineRef == nil:
		return ctrl.Result{}, a.say(ctx, host, corev1.ConditionFalse, "WaitingForMachineRefToBeAssigned")
	case host.Spec.BootstrapSecret == nil:
		return ctrl.Result{}, a.say(ctx, host, corev1.ConditionFalse, "BootstrapDataSecretUnavailable")
	case isTrue(host.Status.Conditions, nodeBootstrapped):
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: host.Spec.BootstrapSecret.Namespace, Name: host.Spec.BootstrapSecret.Name}
	if err := a.client.Get(ctx, key, secret); err != nil {
		return ctrl.Result{}, err
	}
	if err := a.bootstrap(ctx, host, on, secret.Data["value"]); err != nil {
		a.log("the agent of %s: %v", on.Name, err)
		if err := a.say(ctx, host, corev1.ConditionFalse, "CloudInitExecutionFailed"); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, a.say(ctx, host, corev1.ConditionTrue, "")
}

// bootstrap runs bootstrap data. It asks nothing of the Secret's format.
func (a *agents) bootstrap(ctx context.Context, host *Host, on *hosts.Host, data []byte) error {
	if _, err := on.Exec(ctx, "bash", "-ec", "rm -rf /run/kubeadm; [ ! -d /etc/cni/net.d ] || find /etc/cni/net.d -mindepth 1 -delete"); err != nil {
		return err
	}
	byDefault := ""
	for _, i := range host.Status.Network {
		if i.IsDefault {
			byDefault = i.NetworkName
		}
	}
	config, err := read(data, byDefault)
	if err != nil {
		return err
	}
	for i := range config.WriteFiles {
		f := &config.WriteFiles[i]
		command := on.Command(ctx, f.write()...)
		command.Stdin = strings.NewReader(f.Content)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("write %s: %w: %s", f.Path, err, out)
		}
	}
	for i, line := range config.RunCmd {
		if out, err := on.Command(ctx, "/bin/bash", "-c", line).CombinedOutput(); err != nil {
			return fmt.Errorf("run command %d: %w: %s", i, err, out)
		}
	}
	return nil
}

// cleanUp makes the host one that can be attached again. Nothing was installed by the agent, so that it resets nothing.
func (a *agents) cleanUp(ctx context.Context, host *Host, on *hosts.Host) error {
	const script = `rm -f /run/cluster-api/bootstrap-success.complete
[ -z "$1" ] || ! ip -o address show | grep -qF " $1/32 " || ip address del "$1/32" dev "$2"`
	byDefault := ""
	for _, i := range host.Status.Network {
		if i.IsDefault {
			byDefault = i.NetworkName
		}
	}
	if _, err := on.Exec(ctx, "bash", "-ec", script, "bash", host.Annotations[endpointAnnotation], byDefault); err != nil {
		return err
	}
	before := provider.Copy(host)
	host.Status.MachineRef = nil
	set(&host.Status.Conditions, nodeBootstrapped, corev1.ConditionFalse, "K8sNodeAbsent")
	if err := a.client.Status().Patch(ctx, host, client.MergeFrom(before)); err != nil {
		return err
	}
	before = provider.Copy(host)
	for _, label := range []string{clusterv1.ClusterNameLabel, attachedLabel} {
		delete(host.Labels, label)
	}
	for _, annotation := range []string{endpointAnnotation, cleanupAnnotation, versionAnnotation} {
		delete(host.Annotations, annotation)
	}
	host.Spec.BootstrapSecret = nil
	return a.client.Patch(ctx, host, client.MergeFrom(before))
}

// say sets the condition by which the agent says how far it is.
func (a *agents) say(ctx context.Context, host *Host, status corev1.ConditionStatus, reason string) error {
	before := provider.Copy(host)
	if !set(&host.Status.Conditions, nodeBootstrapped, status, reason) {
		return nil
	}
	return a.client.Status().Patch(ctx, host, client.MergeFrom(before))
}

func has(of map[string]string, key string) bool {
	_, found := of[key]
	return found
}

func isTrue(conditions clusterv1beta1.Conditions, of clusterv1beta1.ConditionType) bool {
	return slices.ContainsFunc(conditions, func(c clusterv1beta1.Condition) bool {
		return c.Type == of && c.Status == corev1.ConditionTrue
	})
}
