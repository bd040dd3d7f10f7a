// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NetworkPlugin is what connects pods.
//
// +kubebuilder:validation:Enum=Flannel;Calico;None
type NetworkPlugin string

const (
	// NetworkFlannel connects pods by flannel.
	NetworkFlannel NetworkPlugin = "Flannel"
	// NetworkCalico connects pods by Calico, and keeps to NetworkPolicies.
	NetworkCalico NetworkPlugin = "Calico"
	// NetworkNone leaves it to users to install what connects pods, such as Cilium.
	NetworkNone NetworkPlugin = "None"
)

// Network is how pods and services are addressed and connected.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.flannel) || !has(self.plugin) || self.plugin == 'Flannel'",fieldPath=".flannel",message="it has an effect on the plugin Flannel alone: remove it, or use that plugin"
// +kubebuilder:validation:XValidation:rule="!has(self.calico) || has(self.plugin) && self.plugin == 'Calico'",fieldPath=".calico",message="it has an effect on the plugin Calico alone: remove it, or use that plugin"
type Network struct {
	// plugin is what connects pods. If unset, Flannel. With Calico, NetworkPolicies have an effect. With None, users install what
	// connects pods: until then no Node is Ready, and a host waits for no more than that its kubelet has registered. It cannot be
	// changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Plugin NetworkPlugin `json:"plugin,omitempty"`

	// podCIDRs is the IPv4 network that pods get addresses from, or two networks for dual stack, one of IPv4 and one of
	// IPv6: the family of the first is the primary one. If unset, 10.233.64.0/18. It cannot be changed later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	PodCIDRs []string `json:"podCIDRs,omitempty"`

	// serviceCIDRs is the IPv4 network that services get addresses from, or two networks for dual stack, of the families
	// of podCIDRs and in their order. If unset, 10.233.0.0/18. It cannot be changed later.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	ServiceCIDRs []string `json:"serviceCIDRs,omitempty"`

	// hostCIDRs are the networks in which the cluster's hosts reach each other, for hosts that are in others, too: of a host's addresses,
	// those in one of these are its Node's and its etcd member's, those in the first before others. A host that has none there is refused.
	// There is one at least of each of the cluster's families. If unset, all of a host's addresses may be. Once the cluster exists,
	// more can be added at the end.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	HostCIDRs []string `json:"hostCIDRs,omitempty"`

	// flannel sets the flannel plugin.
	// +optional
	Flannel Flannel `json:"flannel,omitempty,omitzero"`

	// calico sets the calico plugin.
	// +optional
	Calico Calico `json:"calico,omitempty,omitzero"`
}

// FlannelBackend is how flannel carries packets from host to host.
//
// +kubebuilder:validation:Enum=VXLAN;HostGateway
type FlannelBackend string

const (
	// FlannelVXLAN wraps packets in VXLAN (UDP port 8472).
	FlannelVXLAN FlannelBackend = "VXLAN"
	// FlannelHostGW routes packets by the hosts' addresses; all hosts must be on one network segment.
	FlannelHostGW FlannelBackend = "HostGateway"
)

// Flannel sets the flannel plugin.
//
// +kubebuilder:validation:MinProperties=1
type Flannel struct {
	// backend is how packets are carried from host to host. If unset, VXLAN. It cannot be changed later.
	// +optional
	Backend FlannelBackend `json:"backend,omitempty"`

	// mtu is the pods' maximum transmission unit in bytes. If unset, flannel finds it. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
}

// DNSAddresses are the cluster IPs of the cluster's DNS server: the tenth of each service network, in their order. Networks
// that are not valid are passed over.
func (n *Network) DNSAddresses() []string { return n.serviceAddresses(10) }

// APIAddresses are the first addresses of each service network, in their order: the first of them is the cluster IP of the
// Service kubernetes. Networks that are not valid are passed over.
func (n *Network) APIAddresses() []string { return n.serviceAddresses(1) }

func (n *Network) serviceAddresses(index int) []string {
	var addresses []string
	for _, cidr := range n.ServiceCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue
		}
		address := prefix.Masked().Addr()
		for range index {
			address = address.Next()
		}
		addresses = append(addresses, address.String())
	}
	return addresses
}

// IsDualStack reports whether pods and services have addresses of both families.
func (n *Network) IsDualStack() bool { return len(n.PodCIDRs) == 2 }

// Family is the family of a network or address: IPv4 or IPv6.
type Family string

const (
	// IPv4 addresses have 32 bits.
	IPv4 Family = "IPv4"
	// IPv6 addresses have 128 bits.
	IPv6 Family = "IPv6"
)

func (f Family) other() Family {
	if f == IPv4 {
		return IPv6
	}
	return IPv4
}

// FamilyOf is the family of an address, "" where the text is none.
func FamilyOf(address string) Family {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return ""
	case ip.Is4():
		return IPv4
	}
	return IPv6
}

// familyOfCIDR is the family of a network, "" where the text is none.
func familyOfCIDR(cidr string) Family {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	return FamilyOf(prefix.Addr().String())
}

// PrimaryFamily is the family of the first pod network: that of Nodes' first addresses, and of what asks for one family.
func (n *Network) PrimaryFamily() Family {
	if len(n.PodCIDRs) > 0 && familyOfCIDR(n.PodCIDRs[0]) == IPv6 {
		return IPv6
	}
	return IPv4
}

// families are the cluster's, the primary one first.
func (n *Network) families() []Family {
	families := []Family{n.PrimaryFamily()}
	if n.IsDualStack() {
		families = append(families, families[0].other())
	}
	return families
}

// Usable are those of addresses that are of the cluster's families and in the hosts' networks, in their order but for those of the primary
// family, which come first, and then those of earlier networks.
func (n *Network) Usable(addresses []string) []string {
	var usable []string
	for _, family := range n.families() {
		var some []string
		for _, address := range addresses {
			if FamilyOf(address) == family && n.hostNetwork(address) >= 0 {
				some = append(some, address)
			}
		}
		slices.SortStableFunc(some, func(a, b string) int { return n.hostNetwork(a) - n.hostNetwork(b) })
		usable = append(usable, some...)
	}
	return usable
}

// HasHost reports whether an address is in one of the networks in which hosts reach each other. Where none are declared, all are.
func (n *Network) HasHost(address string) bool { return n.hostNetwork(address) >= 0 }

// hostNetwork is the index of the hosts' network that has the address, 0 where none are declared, and -1 where none has it.
func (n *Network) hostNetwork(address string) int {
	if len(n.HostCIDRs) == 0 {
		return 0
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(n.HostCIDRs, func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(ip)
	})
}

// PodCIDR is the first pod network of a family, "" where there is none.
func (n *Network) PodCIDR(family Family) string {
	for _, cidr := range n.PodCIDRs {
		if familyOfCIDR(cidr) == family {
			return cidr
		}
	}
	return ""
}

// IsUsers reports whether users install what connects pods.
func (n *Network) IsUsers() bool { return networks[n.Plugin].users }

// ports are those at which the plugin listens on Nodes.
func (n *Network) ports() []Port { return networks.ports(n.Plugin, n) }

func (n *Network) setDefaults() {
	defaultTo(&n.Plugin, defaultNetwork)
	if len(n.PodCIDRs) == 0 {
		n.PodCIDRs = []string{"10.233.64.0/18"}
	}
	if len(n.ServiceCIDRs) == 0 {
		n.ServiceCIDRs = []string{"10.233.0.0/18"}
	}
	networks.setDefaults(n.Plugin, n)
}

// widths are the prefix lengths that a network may have, for each family, with an example.
type widths map[Family]struct {
	widest, narrowest int
	example           string
}

var (
	podWidths = widths{IPv4: {8, 28, "10.233.64.0/18"}, IPv6: {8, 116, "fd85:ee78:d8a6:8607::1:0/112"}}
	// kube-apiserver takes at most 2^20 service addresses, and kubeadm asks for ten; the tenth is CoreDNS.
	serviceWidths = widths{IPv4: {12, 28, "10.233.0.0/18"}, IPv6: {108, 124, "fd85:ee78:d8a6:8607::1000/116"}}
)

func (n *Network) validate(path *field.Path) field.ErrorList {
	pods, services := path.Child("podCIDRs"), path.Child("serviceCIDRs")
	errs := validateCIDRs(pods, n.PodCIDRs, podWidths)
	errs = append(errs, validateCIDRs(services, n.ServiceCIDRs, serviceWidths)...)
	for i, service := range n.ServiceCIDRs {
		for j, pod := range n.PodCIDRs {
			if overlap(service, pod) {
				errs = append(errs, field.Invalid(services.Index(i), service, fmt.Sprintf(
					"overlaps %s %s: use networks that have no address in common", pods.Index(j), pod)))
			}
		}
	}
	if len(errs) == 0 {
		errs = append(errs, n.validateFamilies(pods, services)...)
	}
	errs = append(errs, n.validateHostCIDRs(path)...)
	return append(errs, networks.validate(n.Plugin, n, path)...)
}

// validateHostCIDRs wants networks in which hosts can be.
func (n *Network) validateHostCIDRs(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("hostCIDRs")
	for i, cidr := range n.HostCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at.Index(i), cidr, "use a network, such as 192.168.0.0/24"))
			continue
		case misspelt(prefix) != "":
			errs = append(errs, field.Invalid(at.Index(i), cidr, misspelt(prefix)))
			continue
		case prefix.Addr().BitLen()-prefix.Bits() < 2:
			errs = append(errs, field.Invalid(at.Index(i), cidr, "is too small for hosts that reach each other: use a network, such as 192.168.0.0/24"))
			continue
		case isSpecial(prefix.Addr()):
			errs = append(errs, field.Invalid(at.Index(i), cidr,
				"is loopback, link-local, multicast or all addresses: use the network of an interface by which hosts reach each other"))
			continue
		}
		for _, other := range []struct {
			name  string
			cidrs []string
		}{{"podCIDRs", n.PodCIDRs}, {"serviceCIDRs", n.ServiceCIDRs}} {
			for j, theirs := range other.cidrs {
				if overlap(cidr, theirs) {
					errs = append(errs, field.Invalid(at.Index(i), cidr, fmt.Sprintf(
						"overlaps %s %s: no host can be there; use networks that have no address in common", path.Child(other.name).Index(j), theirs)))
				}
			}
		}
	}
	if len(errs) == 0 && len(n.HostCIDRs) > 0 {
		errs = n.validateHostFamilies(at)
	}
	return append(errs, unique(at, n.HostCIDRs, itself)...)
}

// validateHostFamilies wants networks of the cluster's families, and of no other. Each is valid in itself.
func (n *Network) validateHostFamilies(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	families, found := n.families(), map[Family]bool{}
	for i, cidr := range n.HostCIDRs {
		family := familyOfCIDR(cidr)
		if found[family] = true; !slices.Contains(families, family) {
			errs = append(errs, field.Invalid(at.Index(i), cidr, fmt.Sprintf("is of %s, which the cluster's pods and services are not: remove it", family)))
		}
	}
	for _, family := range families {
		if !found[family] { // a network that is added later would give hosts another address
			errs = append(errs, field.Required(at, fmt.Sprintf("the cluster's pods and services are of %s, too: add a network of it", family)))
		}
	}
	return errs
}

// misspelt says how a network is to be written, "" if it is.
func misspelt(prefix netip.Prefix) string {
	switch {
	case prefix.Addr().Is4In6():
		return "is an IPv4 network in IPv6 form: write it as an IPv4 network"
	case prefix != prefix.Masked():
		return "has bits set behind its prefix: write " + prefix.Masked().String()
	}
	return ""
}

// fixed refuses what cannot be changed in a cluster that had another.
func (n *Network) fixed(before *Network, path *field.Path, refuse refuser) {
	if fixed := networks[n.Plugin].fixed; fixed != nil && n.Plugin == before.Plugin {
		fixed(n, before, path, refuse)
	}
}

// validateHostCIDRsUpdate refuses another choice of addresses: hosts would have others than the rest of the cluster knows.
func (n *Network) validateHostCIDRsUpdate(before *Network, at *field.Path) field.ErrorList {
	was, is := before.HostCIDRs, n.HostCIDRs
	switch {
	case slices.Equal(was, is):
		return nil
	case len(was) == 0:
		return field.ErrorList{field.Invalid(at, is, "cannot be declared once the cluster exists, as its hosts' addresses were chosen without: remove it, "+
			"or create another cluster")}
	case len(is) < len(was) || !slices.Equal(was, is[:len(was)]):
		return field.ErrorList{field.Invalid(at, is, fmt.Sprintf(
			"can only be added to at its end once the cluster exists: set it back to %q, and add networks after these", fmt.Sprint(was)))}
	}
	return nil
}

// validateFamilies checks that pods and services have the same families in the same order. Each list is valid in itself.
func (n *Network) validateFamilies(pods, services *field.Path) field.ErrorList {
	switch p, s := len(n.PodCIDRs), len(n.ServiceCIDRs); {
	case p > s:
		return field.ErrorList{field.Required(services.Index(1), missing(n.ServiceCIDRs[0], pods, serviceWidths))}
	case s > p:
		return field.ErrorList{field.Required(pods.Index(1), missing(n.PodCIDRs[0], services, podWidths))}
	}
	if pod, service := familyOfCIDR(n.PodCIDRs[0]), familyOfCIDR(n.ServiceCIDRs[0]); pod != service {
		return field.ErrorList{field.Invalid(services.Index(0), n.ServiceCIDRs[0], fmt.Sprintf(
			"is of %s, and %s %s of %s: write both in one order, that of the cluster's primary family first", service, pods.Index(0), n.PodCIDRs[0], pod))}
	}
	return nil
}

// missing is what is to be said of a list with one network, of which another list has two.
func missing(first string, other *field.Path, w widths) string {
	family := familyOfCIDR(first).other()
	return fmt.Sprintf("%s has two networks, and a dual stack cluster has two of both: add one of %s, such as %s", other, family, w[family].example)
}

// fixed refuses another backend and another MTU. Flannel's Pods read both when they start, and its chart starts none anew when they change:
// those that run would keep theirs, with the port closed that they use, and each host would change over when its Pod happens to.
func (f *Flannel) fixed(before *Flannel, path *field.Path, refuse refuser) {
	if was, is := before.Backend, f.Backend; was != is {
		refuse(path.Child("backend"), was, is)
	}
	if was, is := before.MTU, f.MTU; was != is {
		refuse(path.Child("mtu"), was, is)
	}
}

func (f *Flannel) ports() []Port {
	if f.Backend == FlannelVXLAN {
		return []Port{{Number: 8472, Protocol: UDP, For: "flannel", When: "`flannel.backend: VXLAN`"}}
	}
	return nil
}

// without refuses settings of one plugin, where another is chosen.
func (n *Network) without(path *field.Path, set bool, of NetworkPlugin) field.ErrorList {
	if !set {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("has no effect on the plugin %s: remove it, or use the plugin %s", n.Plugin, of))}
}

func validateCIDRs(path *field.Path, cidrs []string, w widths) field.ErrorList {
	if len(cidrs) == 0 {
		return field.ErrorList{field.Required(path, "give one IPv4 network, such as "+w[IPv4].example)}
	}
	var errs field.ErrorList
	for i, cidr := range cidrs {
		at, family := path.Index(i), familyOfCIDR(cidr)
		prefix, err := netip.ParsePrefix(cidr)
		limits := w[family]
		switch {
		case i > 1: // a Cluster object may say more than our schema allows
			errs = append(errs, field.Invalid(at, cidr, "a cluster has one network, or two for dual stack: remove it"))
		case err != nil:
			errs = append(errs, field.Invalid(at, cidr, "use a network, such as "+w[IPv4].example))
		case misspelt(prefix) != "":
			errs = append(errs, field.Invalid(at, cidr, misspelt(prefix)))
		case prefix.Bits() < limits.widest || prefix.Bits() > limits.narrowest:
			errs = append(errs, field.Invalid(at, cidr, fmt.Sprintf("use a prefix length of %d to %d", limits.widest, limits.narrowest)))
		case isSpecial(prefix.Addr()):
			errs = append(errs, field.Invalid(at, cidr, "is loopback, link-local or multicast: use a private network, such as "+limits.example))
		case i == 1 && familyOfCIDR(cidrs[0]) == family:
			errs = append(errs, field.Invalid(at, cidr, fmt.Sprintf(
				"is of %s as %s is: of the two networks of a dual stack cluster, one is of IPv4 and one of IPv6; replace or remove it", family, path.Index(0))))
		case len(cidrs) == 1 && family == IPv6:
			errs = append(errs, field.Invalid(at, cidr,
				"a cluster of IPv6 alone is not supported by this version of kubexm: add an IPv4 network for dual stack, such as "+w[IPv4].example))
		}
	}
	return errs
}
