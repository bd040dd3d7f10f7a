// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubevip holds the steps that let a virtual address move between the control plane's hosts by kube-vip.
package kubevip

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const manifest = "/etc/kubernetes/manifests/kubexm-kube-vip.yaml"

//go:embed pod.yaml
var podFile string

// release takes the virtual address $1 off the interface $2, where a kube-vip that was killed has left it.
const release = `ip address del "$1" dev "$2" 2>/dev/null || :`

// Settings of kube-vip on one host.
type Settings struct {
	// VIP is the virtual address, Interface the one that gets it, Port the API server's.
	VIP, Interface string
	Port           int32
	// Kubeconfig is that of an administrator on the host, for the election: what kubeadm calls admin.conf or, on the first
	// host while admin.conf has no rights yet, super-admin.conf.
	Kubeconfig string
	// Image is a full reference.
	Image string
}

// Claim declares that the host may get the virtual address, so that a reset takes it off. It comes before the claims of the
// runtime: what comes first is undone last, when no pod can put the address back.
func Claim(s Settings) step.Step {
	return step.New(step.Meta{Name: "kubevip/claim", Description: "record the virtual address"},
		step.Claim{Cleanup: []step.Cleanup{{
			Title: "take off the virtual address", Argv: []string{"/bin/sh", "-c", release, "sh", s.VIP + "/32", s.Interface},
		}}})
}

// Pod has the kubelet run kube-vip as a static pod: of the hosts that do, one is elected through the API and has the address,
// which it announces by ARP. The pod waits until Kubeconfig is there.
func Pod(s Settings) step.Step {
	return step.New(step.Meta{
		Name: "kubevip/pod", Description: "let the virtual address move between hosts", Disrupts: "restarts kube-vip",
		Follows: step.FollowsAlways,
	},
		step.File{Path: manifest, Mode: 0o600, Content: step.Literal(strings.NewReplacer(
			"{vip}", s.VIP,
			"{interface}", s.Interface,
			"{port}", strconv.Itoa(int(s.Port)),
			"{kubeconfig}", s.Kubeconfig,
			"{image}", s.Image,
		).Replace(podFile))})
}
