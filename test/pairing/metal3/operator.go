// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// drive is where the host's cloud-init has its config drive, in the form of OpenStack.
const drive = "/var/lib/cloud/seed/config_drive/openstack"

// operator reconciles BareMetalHosts: it has the power of their hosts, and their disks.
type operator struct {
	*provider.Provider
	pool *hosts.Pool
}

// register makes a host's BareMetalHost, which was inspected when other hosts had its address: a lease was given to another since.
func (o *operator) register(ctx context.Context, namespace string, on, leased *hosts.Host, labels map[string]string) error {
	host := &Host{}
	host.Namespace, host.Name, host.Labels = namespace, on.Name, labels
	if err := o.Client.Create(ctx, host); err != nil {
		return err
	}
	before := provider.Copy(host)
	host.Status.Provisioning.State = Available
	host.Status.Hardware.NICs = []NIC{
		{Name: "eth1", IP: leased.Address}, {Name: "eth0", IP: "fe80::42:acff:fe11:2%eth0"}, {Name: "eth0", IP: on.Address},
	}
	return o.Client.Status().Patch(ctx, host, client.MergeFrom(before))
}

// Reconcile gives a host the image that it is to have, or takes all from it that it has.
func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	at := slices.IndexFunc(o.pool.Hosts, func(h *hosts.Host) bool { return h.Name == request.Name })
	if at < 0 {
		return ctrl.Result{}, nil
	}
	host := &Host{}
	if err := o.Client.Get(ctx, request.NamespacedName, host); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	on := o.pool.Hosts[at]
	switch state := host.Status.Provisioning.State; {
	case host.Spec.Image != nil && (state == Available || state == Provisioning):
		return ctrl.Result{}, o.provision(ctx, host, on)
	case host.Spec.Image == nil && (state == Provisioned || state == Provisioning || state == Deprovisioning):
		if err := o.enter(ctx, host, Deprovisioning); err != nil {
			return ctrl.Result{}, err
		}
		if err := o.pool.Reinstall(ctx, on); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, o.enter(ctx, host, Available)
	}
	return ctrl.Result{}, nil
}

// provision has a host, which is as its image is, boot with the user data as that is now. What becomes of the Secret is nobody's business
// afterwards.
func (o *operator) provision(ctx context.Context, host *Host, on *hosts.Host) error {
	if err := o.enter(ctx, host, Provisioning); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.UserData.Name}, secret); err != nil {
		return err
	}
	meta, err := json.Marshal(map[string]string{
		"uuid": string(host.UID), "name": host.Name, "local-hostname": host.Name, "local_hostname": host.Name,
		"metal3-name": host.Name, "metal3-namespace": host.Namespace,
	})
	if err != nil {
		return err
	}
	for _, version := range []string{"2015-10-15", "latest"} {
		for name, content := range map[string]string{"meta_data.json": string(meta), "user_data": string(secret.Data["value"])} {
			write := on.Command(ctx, "sh", "-ec", `mkdir -p "$1"; umask 077; cat >"$1/$2"`, "sh", drive+"/"+version, name)
			write.Stdin = strings.NewReader(content)
			if out, err := write.CombinedOutput(); err != nil {
				return fmt.Errorf("write the config drive of %s: %w: %s", on.Name, err, out)
			}
		}
	}
	if err := on.Restart(ctx); err != nil {
		return err
	}
	return o.enter(ctx, host, Provisioned)
}

func (o *operator) enter(ctx context.Context, host *Host, state State) error {
	before := provider.Copy(host)
	host.Status.Provisioning.State = state
	return o.Client.Status().Patch(ctx, host, client.MergeFrom(before))
}
