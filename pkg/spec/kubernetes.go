// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// KubernetesType is how Kubernetes is installed.
//
// +kubebuilder:validation:Enum=Binary;Kubeadm
type KubernetesType string

const (
	// KubernetesKubexm runs every component as a systemd unit, with certificates and configuration made here.
	KubernetesKubexm KubernetesType = "Binary"
	// KubernetesKubeadm installs the control plane as static pods by kubeadm's phases.
	KubernetesKubeadm KubernetesType = "Kubeadm"
)

// Kubernetes is how Kubernetes is installed and how its components are set. Its version is not here: it is a cluster's
// and a Machine's own field.
//
// +kubebuilder:validation:MinProperties=1
type Kubernetes struct {
	// type is how Kubernetes is installed. If unset, Kubeadm. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Type KubernetesType `json:"type,omitempty"`

	// apiServer is kube-apiserver.
	// +optional
	APIServer APIServer `json:"apiServer,omitempty,omitzero"`

	// controllerManager is kube-controller-manager.
	// +optional
	ControllerManager ControllerManager `json:"controllerManager,omitempty,omitzero"`

	// scheduler is kube-scheduler.
	// +optional
	Scheduler Scheduler `json:"scheduler,omitempty,omitzero"`

	// kubelet is the kubelet of every host; a host's own settings come before it.
	// +optional
	Kubelet Kubelet `json:"kubelet,omitempty,omitzero"`

	// proxy is kube-proxy.
	// +optional
	Proxy Proxy `json:"proxy,omitempty,omitzero"`

	// podSecurity is what Pods may do in namespaces that have no labels for that.
	// +optional
	PodSecurity PodSecurity `json:"podSecurity,omitempty,omitzero"`

	// encryptionAtRest is what the API server encrypts before etcd stores it. It cannot be changed later.
	// +optional
	EncryptionAtRest EncryptionAtRest `json:"encryptionAtRest,omitempty,omitzero"`

	// featureGates are set for every component, the kubelet included.
	// A gate that this Kubernetes version does not know keeps its components from starting.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// nodeCIDRMaskSize is the prefix length of the part of network.podCIDRs that each Node gets. If unset, 24, for at
	// most 254 pods with addresses of their own on each Node. A dual stack cluster has the two fields below instead. It
	// cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=28
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	NodeCIDRMaskSize int32 `json:"nodeCIDRMaskSize,omitempty"`

	// nodeCIDRMaskSizeIPv4 is, in a dual stack cluster, the prefix length of the part of the IPv4 pod network that each
	// Node gets. If unset, 24. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=28
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	NodeCIDRMaskSizeIPv4 int32 `json:"nodeCIDRMaskSizeIPv4,omitempty"`

	// nodeCIDRMaskSizeIPv6 is, in a dual stack cluster, the prefix length of the part of the IPv6 pod network that each
	// Node gets: at most 16 more than that network's own. If unset, 64 where the network's prefix length is 48 to 60,
	// 16 more than a shorter one, 8 more than a longer one. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=124
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	NodeCIDRMaskSizeIPv6 int32 `json:"nodeCIDRMaskSizeIPv6,omitempty"`
}

// APIServer is kube-apiserver.
//
// +kubebuilder:validation:MinProperties=1
type APIServer struct {
	// certSANs are further names and addresses in the API server's serving certificate, beside those of the hosts,
	// the endpoint and the kubernetes Service: DNS names, wildcards (*.example.com) and IP addresses.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	CertSANs []string `json:"certSANs,omitempty"`

	// audit is the audit log.
	// +optional
	Audit Audit `json:"audit,omitempty,omitzero"`

	// extraArgs are further command line flags of kube-apiserver. etcd-prefix and etcd-servers-overrides cannot be changed later.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// ControllerManager is kube-controller-manager.
//
// +kubebuilder:validation:MinProperties=1
type ControllerManager struct {
	// extraArgs are further command line flags of kube-controller-manager.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// Scheduler is kube-scheduler.
//
// +kubebuilder:validation:MinProperties=1
type Scheduler struct {
	// extraArgs are further command line flags of kube-scheduler.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// Kubelet is the kubelet, of all hosts in Cluster or of one host in Node.
//
// +kubebuilder:validation:MinProperties=1
type Kubelet struct {
	// maxPods is how many pods may run on a Node. If unset, 110.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	MaxPods int32 `json:"maxPods,omitempty"`

	// podPidsLimit is how many processes one pod may have. If unset, 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4194304
	PodPidsLimit int64 `json:"podPidsLimit,omitempty"`

	// extraArgs are further command line flags of the kubelet. A host's own flag replaces all of the cluster's of that name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

// ProxyMode is what kube-proxy programs services with, in its own words, or None.
//
// +kubebuilder:validation:Enum=iptables;nftables;ipvs;None
type ProxyMode string

const (
	// ProxyIPTables programs services with iptables.
	ProxyIPTables ProxyMode = "iptables"
	// ProxyNFTables programs services with nftables, which needs Linux 5.13 or later.
	ProxyNFTables ProxyMode = "nftables"
	// ProxyIPVS programs services with IPVS, which needs the kernel modules ip_vs, ip_vs_rr, ip_vs_wrr, ip_vs_sh and nf_conntrack.
	ProxyIPVS ProxyMode = "ipvs"
	// ProxyNone runs no kube-proxy: users install what takes its place.
	ProxyNone ProxyMode = "None"
)

// Masquerade is which traffic to a service's cluster IP leaves with the Node's address as its source.
//
// +kubebuilder:validation:Enum=OffCluster;All
type Masquerade string

const (
	// MasqueradeOffCluster masquerades traffic that does not come from a pod.
	MasqueradeOffCluster Masquerade = "OffCluster"
	// MasqueradeAll masquerades all traffic to cluster IPs.
	MasqueradeAll Masquerade = "All"
)

// Proxy is kube-proxy.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.ipvs) || has(self.mode) && self.mode == 'ipvs'",fieldPath=".ipvs",message="it has an effect on the mode ipvs alone: remove it, or use that mode"
// +kubebuilder:validation:XValidation:rule="!has(self.masquerade) || !has(self.mode) || self.mode != 'None'",fieldPath=".masquerade",message="it has no effect on the mode None: remove it, or use another mode"
type Proxy struct {
	// mode is what services are programmed with. If unset, iptables. With None there is no kube-proxy: users install what takes its
	// place, such as Cilium. It cannot be changed to or from None later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(self == 'None') == (oldSelf == 'None')",message="cannot be changed to or from None once the cluster exists: set it back, or create another cluster"
	Mode ProxyMode `json:"mode,omitempty"`

	// masquerade is which traffic to a service's cluster IP leaves with the Node's address as its source. If unset, OffCluster. It is of
	// kube-proxy: with the mode None it must not be set.
	// +optional
	Masquerade Masquerade `json:"masquerade,omitempty"`

	// ipvs sets the mode ipvs.
	// +optional
	IPVS IPVS `json:"ipvs,omitempty,omitzero"`
}

// IPVS sets kube-proxy's mode ipvs.
//
// +kubebuilder:validation:MinProperties=1
type IPVS struct {
	// excludeCIDRs are networks whose IPVS rules kube-proxy leaves alone, such as that of a virtual address.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	ExcludeCIDRs []string `json:"excludeCIDRs,omitempty"`
}

// FeatureState is whether a feature gate is on.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type FeatureState string

const (
	// FeatureEnabled turns a feature on.
	FeatureEnabled FeatureState = "Enabled"
	// FeatureDisabled turns a feature off.
	FeatureDisabled FeatureState = "Disabled"
)

// FeatureGate turns one of Kubernetes' features on or off.
type FeatureGate struct {
	// name is the gate's name, such as InPlacePodVerticalScaling.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// state is whether the gate is on.
	// +required
	State FeatureState `json:"state,omitempty"`
}

func (k *Kubernetes) setDefaults() {
	defaultTo(&k.Type, defaultKubernetes)
	defaultTo(&k.Kubelet.MaxPods, 110)
	defaultTo(&k.Kubelet.PodPidsLimit, 10000)
	defaultTo(&k.Proxy.Mode, defaultProxyMode)
	proxies.setDefaults(k.Proxy.Mode, &k.Proxy)
	k.APIServer.Audit.setDefaults()
	k.PodSecurity.setDefaults()
	k.EncryptionAtRest.setDefaults()
}

// setMaskDefaults fills in what part of the pods' networks each Node gets.
func (k *Kubernetes) setMaskDefaults(n *Network) {
	if !n.IsDualStack() {
		defaultTo(&k.NodeCIDRMaskSize, 24)
		return
	}
	defaultTo(&k.NodeCIDRMaskSizeIPv4, 24)
	if prefix, err := netip.ParsePrefix(n.PodCIDR(IPv6)); err == nil {
		defaultTo(&k.NodeCIDRMaskSizeIPv6, int32(nodeMaskIPv6(prefix.Bits())))
	}
}

// nodeMaskIPv6 is the prefix length of a Node's part of an IPv6 pod network with a prefix length: that of a subnet of IPv6
// where there is room for sixteen Nodes and more.
func nodeMaskIPv6(bits int) int {
	switch {
	case bits < 48:
		return bits + maxNodeBits
	case bits <= 60:
		return 64
	}
	return min(bits+8, 124)
}

// removedGates are gates that many config files still set and that no supported Kubernetes knows any more.
var removedGates = []string{"CSIStorageCapacity", "ExpandCSIVolumes", "TTLAfterFinished"}

var gateName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func (k *Kubernetes) validate(path *field.Path) field.ErrorList {
	errs := validateSANs(path.Child("apiServer", "certSANs"), k.APIServer.CertSANs)
	errs = append(errs, validateArgs(path.Child("apiServer", "extraArgs"), k.APIServer.ExtraArgs, apiServerFlags)...)
	errs = append(errs, k.APIServer.Audit.validate(path.Child("apiServer", "audit"))...)
	errs = append(errs, k.PodSecurity.validate(path.Child("podSecurity"))...)
	errs = append(errs, k.EncryptionAtRest.validate(path.Child("encryptionAtRest"), k.APIServer.ExtraArgs)...)
	errs = append(errs, validateArgs(path.Child("controllerManager", "extraArgs"), k.ControllerManager.ExtraArgs, controllerManagerFlags)...)
	errs = append(errs, validateArgs(path.Child("scheduler", "extraArgs"), k.Scheduler.ExtraArgs, schedulerFlags)...)
	errs = append(errs, k.Kubelet.validate(path.Child("kubelet"))...)
	errs = append(errs, k.Proxy.validate(path.Child("proxy"))...)
	return append(errs, validateGates(path.Child("featureGates"), k.FeatureGates)...)
}

// setOwnDefaults are those of all modes in which there is a kube-proxy.
func (p *Proxy) setOwnDefaults() { defaultTo(&p.Masquerade, MasqueradeOffCluster) }

func (p *Proxy) validate(path *field.Path) field.ErrorList { return proxies.validate(p.Mode, p, path) }

func (p *Proxy) validateNone(path *field.Path) field.ErrorList {
	if p.Masquerade == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("masquerade"), fmt.Sprintf("the mode is %s: remove it, or use another mode", p.Mode))}
}

func (p *Proxy) validateIPVS(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	exclude := path.Child("ipvs", "excludeCIDRs")
	for i, cidr := range p.IPVS.ExcludeCIDRs {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			errs = append(errs, field.Invalid(exclude.Index(i), cidr, "use a network, such as 172.16.0.0/24"))
		}
	}
	return append(errs, unique(exclude, p.IPVS.ExcludeCIDRs, itself)...)
}

// withoutIPVS refuses its settings where another is the mode.
func (p *Proxy) withoutIPVS(path *field.Path) field.ErrorList {
	if len(p.IPVS.ExcludeCIDRs) == 0 {
		return nil
	}
	return append(field.ErrorList{field.Forbidden(path.Child("ipvs", "excludeCIDRs"), fmt.Sprintf(
		"the mode is %s: remove it, or set %s to ipvs", p.Mode, path.Child("mode")))}, p.validateIPVS(path)...)
}

func (k *Kubelet) validate(path *field.Path) field.ErrorList {
	return validateArgs(path.Child("extraArgs"), k.ExtraArgs, kubeletFlags)
}

func validateSANs(path *field.Path, names []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		_, notIP := netip.ParseAddr(name)
		if notIP != nil && !isDomain(strings.TrimPrefix(name, "*.")) {
			errs = append(errs, field.Invalid(path.Index(i), name, "use an IP address or a lower-case DNS name, such as api.prod.example or *.prod.example"))
		}
	}
	return append(errs, unique(path, names, itself)...)
}

func validateGates(path *field.Path, gates []FeatureGate) field.ErrorList {
	var errs field.ErrorList
	for i, gate := range gates {
		at := path.Index(i)
		switch {
		case !gateName.MatchString(gate.Name):
			errs = append(errs, field.Invalid(at.Child("name"), gate.Name, "use a feature gate's name, such as InPlacePodVerticalScaling"))
		case slices.Contains(removedGates, gate.Name):
			errs = append(errs, field.Invalid(at.Child("name"), gate.Name,
				"this gate was removed from Kubernetes when its feature became a fixed part of it, and no component starts with it: remove it"))
		}
	}
	return append(errs, unique(path, gates, func(g FeatureGate) string { return g.Name })...)
}
