// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DNSType is the cluster's DNS server.
//
// +kubebuilder:validation:Enum=CoreDNS;None
type DNSType string

const (
	// DNSCoreDNS runs CoreDNS.
	DNSCoreDNS DNSType = "CoreDNS"
	// DNSNone leaves it to users to install a DNS server.
	DNSNone DNSType = "None"
)

// DNS is how names are resolved in the cluster.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'None' || !has(self.coreDNS)",fieldPath=".coreDNS",message="it has no effect on the type None: remove it, or use the type CoreDNS"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'None' || !has(self.etcHosts)",fieldPath=".etcHosts",message="it has no effect on the type None: remove it, or use the type CoreDNS"
type DNS struct {
	// type is the cluster's DNS server. If unset, CoreDNS. With None, users install one, as a Service with the tenth address of the
	// service network, which Pods ask. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Type DNSType `json:"type,omitempty"`

	// clusterDomain is the domain of services and pods. If unset, cluster.local. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	ClusterDomain string `json:"clusterDomain,omitempty"`

	// etcHosts are names that CoreDNS answers for itself, in all zones, before it asks anybody.
	// +optional
	// +listType=map
	// +listMapKey=address
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	EtcHosts []HostEntry `json:"etcHosts,omitempty"`

	// coreDNS sets the cluster's DNS server.
	// +optional
	CoreDNS CoreDNS `json:"coreDNS,omitempty,omitzero"`
}

// CoreDNS sets the cluster's DNS server. Texts are in the syntax of CoreDNS's Corefile.
//
// +kubebuilder:validation:MinProperties=1
type CoreDNS struct {
	// additionalConfigs are lines for the cluster's server block, such as "log".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	AdditionalConfigs string `json:"additionalConfigs,omitempty"`

	// externalZones are asked of other name servers; they come before the cluster's zone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ExternalZones []ExternalZone `json:"externalZones,omitempty"`

	// rewriteBlock is one or more rewrite plugins for the cluster's server block, each with the word rewrite.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	RewriteBlock string `json:"rewriteBlock,omitempty"`

	// upstreamServers are asked for names outside of the cluster, as IP address, address:port or tls://address.
	// If unset, the name servers of the host that CoreDNS runs on.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=259
	UpstreamServers []string `json:"upstreamServers,omitempty"`
}

// ExternalZone is a server block of CoreDNS for zones that other name servers answer.
type ExternalZone struct {
	// zones are the domains, each with a port where it is not 53 (example.com, example.io:1053).
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=259
	Zones []string `json:"zones,omitempty"`

	// nameservers answer for the zones, as IP address, address:port or tls://address.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=259
	Nameservers []string `json:"nameservers,omitempty"`

	// cacheSeconds is the longest that an answer is kept, in seconds. If unset, 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	CacheSeconds int32 `json:"cacheSeconds,omitempty"`

	// rewrite are the arguments of one rewrite plugin each, without the word rewrite
	// (name substring website.tld website.namespace.svc.cluster.local).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Rewrite []string `json:"rewrite,omitempty"`
}

// HostEntry is one line of a hosts file.
type HostEntry struct {
	// address is an IP address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// hostnames are the names that the address has.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
}

// IsUsers reports whether users install the cluster's DNS server.
func (d *DNS) IsUsers() bool { return dnsServers[d.Type].users }

func (d *DNS) setDefaults() {
	defaultTo(&d.Type, defaultDNS)
	defaultTo(&d.ClusterDomain, "cluster.local")
	dnsServers.setDefaults(d.Type, d)
}

func (d *DNS) setCoreDNSDefaults() {
	for i := range d.CoreDNS.ExternalZones {
		defaultTo(&d.CoreDNS.ExternalZones[i].CacheSeconds, 30)
	}
}

func (d *DNS) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !isDomain(d.ClusterDomain) {
		errs = append(errs, field.Invalid(path.Child("clusterDomain"), d.ClusterDomain, "use a DNS name in lower case, such as cluster.local"))
	}
	return append(errs, dnsServers.validate(d.Type, d, path)...)
}

// withoutCoreDNS refuses its settings where another is the type.
func (d *DNS) withoutCoreDNS(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	remedy := fmt.Sprintf("has no effect on the type %s: remove it, or use the type CoreDNS", d.Type)
	if len(d.EtcHosts) > 0 {
		errs = append(errs, field.Forbidden(path.Child("etcHosts"), remedy))
	}
	if !equality.Semantic.DeepEqual(d.CoreDNS, CoreDNS{}) {
		errs = append(errs, field.Forbidden(path.Child("coreDNS"), remedy))
	}
	return errs
}

func (d *DNS) validateCoreDNS(path *field.Path) field.ErrorList {
	errs := validateHostEntries(path.Child("etcHosts"), d.EtcHosts)

	core := path.Child("coreDNS")
	errs = append(errs, validateCorefile(core.Child("additionalConfigs"), d.CoreDNS.AdditionalConfigs, "")...)
	errs = append(errs, validateCorefile(core.Child("rewriteBlock"), d.CoreDNS.RewriteBlock, "rewrite")...)
	errs = append(errs, validateNameservers(core.Child("upstreamServers"), d.CoreDNS.UpstreamServers)...)

	external := core.Child("externalZones")
	first := map[string]*field.Path{}
	for i, zone := range d.CoreDNS.ExternalZones {
		errs = append(errs, zone.validate(external.Index(i), d.ClusterDomain)...)
		for j, name := range zone.Zones {
			at := external.Index(i).Child("zones").Index(j)
			if name = strings.TrimSuffix(name, ":53"); first[name] != nil {
				errs = append(errs, duplicate(at, name, fmt.Sprintf("is in %s already: remove one of them", first[name])))
				continue
			}
			first[name] = at
		}
	}
	return errs
}

// coreDNSPorts are those that CoreDNS listens on for health, readiness and metrics.
var coreDNSPorts = []string{"8080", "8181", "9153"}

func (z *ExternalZone) validate(path *field.Path, clusterDomain string) field.ErrorList {
	var errs field.ErrorList
	if len(z.Zones) == 0 {
		errs = append(errs, field.Required(path.Child("zones"), "give at least one domain, such as example.com"))
	}
	for i, zone := range z.Zones {
		at := path.Child("zones").Index(i)
		domain, port, hasPort := strings.Cut(zone, ":")
		switch {
		case !isHostPort(zone):
			errs = append(errs, field.Invalid(at, zone, "use a domain, or domain:port, such as example.com or example.io:1053"))
		case slices.Contains(coreDNSPorts, port):
			errs = append(errs, field.Invalid(at, zone, "CoreDNS itself uses this port: use another"))
		case (!hasPort || port == "53") && (isSubdomain(domain, clusterDomain) || isSubdomain(clusterDomain, domain)):
			// CoreDNS asks the server block of the most specific zone: this one would hide services and pods.
			errs = append(errs, field.Invalid(at, zone, fmt.Sprintf(
				"takes names away from %s, the domain of services and pods: use a domain beside it", clusterDomain)))
		}
	}
	if len(z.Nameservers) == 0 {
		errs = append(errs, field.Required(path.Child("nameservers"), "give the IP address of at least one name server, such as 192.168.0.53"))
	}
	errs = append(errs, validateNameservers(path.Child("nameservers"), z.Nameservers)...)
	for i, rewrite := range z.Rewrite {
		words := strings.Fields(rewrite)
		if len(words) < 2 || words[0] == "rewrite" || slices.Contains(words, "{") ||
			slices.Contains(words, "}") || strings.ContainsFunc(rewrite, isControl) {
			errs = append(errs, field.Invalid(path.Child("rewrite").Index(i), rewrite,
				"use one line with the arguments of CoreDNS's rewrite plugin, such as: name substring website.tld website.namespace.svc.cluster.local"))
		}
	}
	return errs
}

func validateNameservers(path *field.Path, servers []string) field.ErrorList {
	var errs field.ErrorList
	for i, server := range servers {
		address := strings.TrimPrefix(server, "tls://")
		ip, err := netip.ParseAddr(address)
		if err != nil {
			var withPort netip.AddrPort
			withPort, err = netip.ParseAddrPort(address)
			ip = withPort.Addr()
		}
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Index(i), server, "use a name server's IP address, address:port or tls://address, such as 192.168.0.53"))
		case ip.IsLoopback():
			errs = append(errs, field.Invalid(path.Index(i), server, "leads CoreDNS back to itself: use an address that pods can reach"))
		}
	}
	return append(errs, unique(path, servers, itself)...)
}

// validateCorefile checks that a text stays within the server block that it is put into, and that each of its
// directives begins with the given word, if any.
func validateCorefile(path *field.Path, text, directive string) field.ErrorList {
	depth := 0
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) > 0 && depth == 0 && directive != "" && words[0] != directive {
			return field.ErrorList{field.Invalid(path, line, fmt.Sprintf("line %d: begin each directive with the word %s", number+1, directive))}
		}
		for _, word := range words {
			switch {
			case strings.HasSuffix(word, "{"):
				depth++
			case word == "}":
				depth--
			}
			if depth < 0 {
				return field.ErrorList{field.Invalid(path, line, fmt.Sprintf("line %d: this brace closes nothing: remove it", number+1))}
			}
		}
	}
	if depth > 0 {
		return field.ErrorList{field.Invalid(path, text, "has a brace that is not closed: add } in a line of its own")}
	}
	return nil
}
