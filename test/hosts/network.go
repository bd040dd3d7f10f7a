// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
)

// firstHost is the last byte of the first host's address; the bytes below are left
// for virtual IP addresses that tests put on the network.
const firstHost = 11

// candidates are the subnets that pools choose from: 10.77.1.0/24 to 10.77.254.0/24,
// which no Kubernetes default (10.96/12, 10.244/16, 10.233/16) overlaps. 10.77.0.0/24
// is left to those who ask for a fixed one.
func candidates() []netip.Prefix {
	var all []netip.Prefix
	for i := range 254 {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i + 1), 0}), 24))
	}
	return all
}

// createNetwork makes the pool's Docker network and returns its IPv4 subnet: the one
// asked for, or when that is the zero value one that is free.
func createNetwork(ctx context.Context, o Options) (netip.Prefix, error) {
	if o.Subnet.IsValid() {
		return o.Subnet, tryNetwork(ctx, o, o.Subnet)
	}
	for _, subnet := range candidates() {
		taken, err := subnetTaken(ctx, subnet)
		if err != nil {
			return netip.Prefix{}, err
		}
		if taken {
			continue
		}
		err = tryNetwork(ctx, o, subnet)
		if err == nil {
			return subnet, nil
		}
		// Another process may have taken the subnet meanwhile; any other failure is final.
		if taken, listErr := subnetTaken(ctx, subnet); listErr != nil || !taken {
			return netip.Prefix{}, err
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free subnet in 10.77.0.0/16 for pool %q; remove pools that are not needed", o.Name)
}

func tryNetwork(ctx context.Context, o Options, subnet netip.Prefix) error {
	args := []string{"network", "create",
		"--subnet", subnet.String(),
		"--label", poolLabel + "=" + o.Name,
		"--label", fmt.Sprintf("%s=%d", countLabel, o.Count)}
	if o.Offline {
		args = append(args, "--internal")
	}
	if o.DualStack {
		args = append(args, "--ipv6", "--subnet", subnet6(subnet).String())
	}
	// A client that is ended here may leave a network behind.
	_, err := docker(context.WithoutCancel(ctx), nil, append(args, objectName(o.Name))...)
	return err
}

// subnet6 is the IPv6 subnet that goes with an IPv4 one: fd77:<first two bytes>:<third
// byte>00::/64.
func subnet6(subnet netip.Prefix) netip.Prefix {
	v4 := subnet.Masked().Addr().As4()
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x77, v4[0], v4[1], v4[2]}), 64)
}

// subnetTaken reports whether a Docker network or an interface of the machine
// overlaps subnet.
func subnetTaken(ctx context.Context, subnet netip.Prefix) (bool, error) {
	used, err := usedSubnets(ctx)
	if err != nil {
		return false, err
	}
	for _, other := range used {
		if other.Overlaps(subnet) {
			return true, nil
		}
	}
	return false, nil
}

func usedSubnets(ctx context.Context) ([]netip.Prefix, error) {
	var used []netip.Prefix
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			used = append(used, prefix.Masked())
		}
	}
	ids, err := docker(ctx, nil, "network", "ls", "--quiet")
	if err != nil {
		return nil, err
	}
	for _, id := range lines(ids) {
		// One by one: a network that another process removes meanwhile is no error.
		out, err := docker(ctx, nil, "network", "inspect", "--format", "{{json .IPAM.Config}}", id)
		if err != nil {
			continue
		}
		var configs []struct{ Subnet netip.Prefix }
		if err := json.Unmarshal([]byte(out), &configs); err != nil {
			return nil, fmt.Errorf("read subnets of Docker network %s: %w", id, err)
		}
		for _, config := range configs {
			used = append(used, config.Subnet)
		}
	}
	return used, nil
}

// hostAddress returns the address of host i, counted from 0.
func hostAddress(subnet netip.Prefix, i int) netip.Addr {
	address := subnet.Masked().Addr()
	for range firstHost + i {
		address = address.Next()
	}
	return address
}
