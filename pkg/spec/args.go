// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Arg is one command line flag, given to a component as --name=value.
type Arg struct {
	// name is the flag's name, without leading dashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// value is the flag's value. A flag that may be repeated is listed once for each of its values.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// flagName is how Kubernetes' components and etcd name their flags.
var flagName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// reserved are flags of one component that are not the user's to set here, each with the field that sets it,
// or "" where its value follows from the cluster.
type reserved struct {
	flags map[string]string
	// repeatable are flags that the component accepts more than once.
	repeatable []string
}

// follows adds flags whose values follow from the cluster.
func (r reserved) follows(names ...string) reserved {
	for _, name := range names {
		r.flags[name] = ""
	}
	return r
}

var (
	apiServerFlags = reserved{
		flags: map[string]string{
			"feature-gates":            "kubernetes.featureGates",
			"secure-port":              "controlPlaneEndpoint.port",
			"service-cluster-ip-range": "network.serviceCIDRs",
		},
		repeatable: []string{"oidc-required-claim", "service-account-issuer", "tls-sni-cert-key"},
	}.follows("advertise-address", "allow-privileged", "client-ca-file", "enable-bootstrap-token-auth",
		"etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers",
		"kubelet-client-certificate", "kubelet-client-key", "proxy-client-cert-file", "proxy-client-key-file",
		"requestheader-allowed-names", "requestheader-client-ca-file", "requestheader-extra-headers-prefix",
		"requestheader-group-headers", "requestheader-username-headers",
		"service-account-key-file", "service-account-signing-key-file", "tls-cert-file", "tls-private-key-file")

	controllerManagerFlags = reserved{flags: map[string]string{
		"cluster-cidr":             "network.podCIDRs",
		"feature-gates":            "kubernetes.featureGates",
		"node-cidr-mask-size":      "kubernetes.nodeCIDRMaskSize",
		"node-cidr-mask-size-ipv4": "kubernetes.nodeCIDRMaskSizeIPv4",
		"node-cidr-mask-size-ipv6": "kubernetes.nodeCIDRMaskSizeIPv6",
		"service-cluster-ip-range": "network.serviceCIDRs",
	}}.follows("allocate-node-cidrs", "authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "cluster-name",
		"cluster-signing-cert-file", "cluster-signing-key-file", "kubeconfig", "leader-elect",
		"requestheader-client-ca-file", "root-ca-file", "service-account-private-key-file", "use-service-account-credentials")

	schedulerFlags = reserved{flags: map[string]string{
		"feature-gates": "kubernetes.featureGates",
	}}.follows("authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig", "leader-elect")

	kubeletFlags = reserved{flags: map[string]string{
		"cluster-domain":       "dns.clusterDomain",
		"fail-swap-on":         "system.swap",
		"feature-gates":        "kubernetes.featureGates",
		"max-pods":             "maxPods, beside extraArgs",
		"node-labels":          "nodeLabels",
		"pod-max-pids":         "podPidsLimit, beside extraArgs",
		"register-with-taints": "nodeTaints",
	}}.follows("bootstrap-kubeconfig", "cert-dir", "cgroup-driver", "client-ca-file", "cluster-dns", "config", "config-dir",
		"container-runtime-endpoint", "hostname-override", "kubeconfig", "node-ip", "pod-infra-container-image",
		"pod-manifest-path", "provider-id", "resolv-conf", "root-dir")

	etcdFlags = reserved{flags: map[string]string{
		"data-dir": "etcd.dataDir",
	}}.follows("advertise-client-urls", "cert-file", "client-cert-auth", "config-file", "force-new-cluster", "initial-advertise-peer-urls",
		"initial-cluster", "initial-cluster-state", "initial-cluster-token", "key-file", "listen-client-urls", "listen-metrics-urls",
		"listen-peer-urls", "name", "peer-cert-file", "peer-client-cert-auth", "peer-key-file", "peer-trusted-ca-file", "trusted-ca-file")
)

func validateArgs(path *field.Path, args []Arg, reserved reserved) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, arg := range args {
		at := path.Index(i)
		instead, isReserved := reserved.flags[arg.Name]
		switch {
		case !flagName.MatchString(arg.Name):
			errs = append(errs, field.Invalid(at.Child("name"), arg.Name, "use the flag's name in lower case, without leading dashes and '='"))
		case isReserved && instead != "":
			errs = append(errs, field.Forbidden(at.Child("name"), fmt.Sprintf("the flag %s has a field of its own: set %s", arg.Name, instead)))
		case isReserved:
			errs = append(errs, field.Forbidden(at.Child("name"), fmt.Sprintf("the value of the flag %s follows from the cluster: remove it", arg.Name)))
		case seen[arg.Name] && !slices.Contains(reserved.repeatable, arg.Name), slices.Contains(args[:i], arg):
			errs = append(errs, duplicate(at.Child("name"), arg.Name, "the component takes this flag once: remove all but one"))
		}
		seen[arg.Name] = true
		if arg.Value == "" {
			errs = append(errs, field.Required(at.Child("value"), "give the flag a value, \"true\" to turn it on"))
		} else if strings.ContainsFunc(arg.Value, isControl) {
			errs = append(errs, field.Invalid(at.Child("value"), arg.Value, "a flag's value is one line without control characters"))
		}
	}
	return errs
}
