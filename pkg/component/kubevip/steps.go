// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/vip"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	manifest = "/etc/kubernetes/manifests/kubexm-kube-vip.yaml"

	// authority is the cluster's, trusted where a host has it, and clients the group that may do everything.
	authority = "ca"
	trusted   = "/etc/kubernetes/pki/ca.crt"
	clients   = "system:masters"

	// own is all that the pod sees of the host's files, in the place where kube-vip looks for a kubeconfig.
	own        = "/etc/kubernetes/pki/kube-vip"
	kubeconfig = own + "/admin.conf"
)

var (
	//go:embed pod.yaml
	podFile string
	//go:embed kubeconfig.yaml
	kubeconfigFile string
)

// Settings of kube-vip on one host.
type Settings struct {
	// Host is its name.
	Host string
	// VIP is the virtual address, Interface the one that gets it, Port the API server's.
	VIP, Interface string
	Port           int32
	// Image is a full reference.
	Image        string
	Certificates spec.Certificates
}

// Claim declares that the host may get the virtual address, so that a reset takes it off. It comes before the claims of the
// runtime: what comes first is undone last, when no pod can put the address back.
func Claim(s Settings) step.Step {
	return step.New(step.Meta{Name: "kubevip/claim", Description: "record the virtual address"},
		step.Claim{Cleanup: []step.Cleanup{vip.Release(s.VIP)}})
}

// Credentials make the client by which kube-vip takes part in the election. The first host needs the address before any role is
// bound in the cluster, because roles are bound at the address: so the client is of the group that needs none. The host has the
// authority's key, with which anybody there could make one. kube-vip reads the certificate anew, which a kubeconfig that holds
// one (as kubeadm's do) would keep it from: it would take part until that one ends, and no longer.
func Credentials(s Settings) step.Step {
	return step.New(step.Meta{
		Name: "kubevip/credentials", Description: "make kube-vip's client of the API", Follows: step.FollowsUnlessDisruptive,
	}, append(append([]step.Step{step.Directory{Path: own, Mode: 0o700}}, step.Authority(authority, own+"/ca.crt", "")...),
		step.Certificate{
			Path: own + "/kube-vip.crt", KeyPath: own + "/kube-vip.key", Authority: authority, Trusted: trusted,
			CommonName: "kubexm:kube-vip:" + s.Host, Organizations: []string{clients}, Usages: []pki.Usage{pki.Client},
			Validity: step.Duration(s.Certificates.Validity()), RenewBefore: step.Duration(s.Certificates.RenewBefore()),
		},
		step.File{Path: kubeconfig, Mode: 0o600, Content: step.Literal(strings.ReplaceAll(kubeconfigFile, "{port}", strconv.Itoa(int(s.Port))))},
	)...)
}

// Pod has the kubelet run kube-vip as a static pod: of the hosts that do, one is elected through the API and has the address,
// which it announces by ARP.
func Pod(s Settings) step.Step {
	return step.New(step.Meta{
		Name: "kubevip/pod", Description: "let the virtual address move between hosts", Disrupts: "restarts kube-vip",
		Follows: step.FollowsAlways,
	},
		step.File{Path: manifest, Mode: 0o600, Content: step.Literal(strings.NewReplacer(
			"{vip}", s.VIP,
			"{interface}", s.Interface,
			"{port}", strconv.Itoa(int(s.Port)),
			"{credentials}", own,
			"{image}", s.Image,
		).Replace(podFile))})
}
