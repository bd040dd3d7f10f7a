// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adopted judges whether a cluster that somebody else has made with kubeadm can be taken over, and says what differs from what is
// declared. It is pure: what was read goes in.
//
//	Declared, Owners, Host.Problems, Cluster   what is refused, each with its remedy
//	Differences, Host.UnitLines, LostNames     flags, settings and names that the first converge would add or take away
//	Members                                    what etcd says in its static pod
//	EtcdUnits                                  members of etcd that are units of others, and become ours
package adopted

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// What is read of hosts.
const (
	NodeConfig    = "/etc/kubernetes/kubelet.conf"
	KubeletConfig = "/var/lib/kubelet/config.yaml"
	Authority     = "/etc/kubernetes/pki/ca.crt"
	Serving       = "/etc/kubernetes/pki/apiserver.crt"
)

// Checks are the names of what is compared.
const (
	checkOwner   = "owner"
	checkHost    = "host"
	checkUnit    = "unit"
	checkDeclare = "config"
	checkNode    = "node"
	checkKubeadm = "kubeadm-config"
	checkNetwork = "network"
	checkEtcd    = "etcd"
)

func problem(on, check, cause, remedy string) preflight.Problem {
	return preflight.Problem{Host: on, Check: check, Severity: preflight.Error, Cause: cause, Remedy: remedy}
}

// HostQuery is what must be seen of a host to judge it, which is to have these units besides.
func HostQuery(role spec.Role, runtime kubelet.Runtime, also ...string) host.Query {
	units := slices.Concat(UnitNames(runtime), also)
	q := host.Query{
		Units:    units,
		Paths:    []host.PathQuery{{Path: NodeConfig}, {Path: Authority, Content: true}, {Path: KubeletConfig, Content: true}},
		Commands: []host.CommandQuery{unitsQuery(units)},
	}
	if role == spec.RoleControlPlane {
		q.Paths = append(q.Paths, host.PathQuery{Path: Serving, Content: true})
		for _, pod := range Pods {
			q.Paths = append(q.Paths, host.PathQuery{Path: Manifest(pod), Content: true})
		}
	}
	return q
}

// Pods are the static pods of a control plane host. Where etcd is external it must not have one of etcd.
var Pods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Manifest is where a static pod's is.
func Manifest(pod string) string { return "/etc/kubernetes/manifests/" + pod + ".yaml" }

// Declared refuses what the config file has that this cannot take over.
func Declared(cluster string, c *spec.Cluster, roles map[string]spec.Role) []preflight.Problem {
	var problems []preflight.Problem
	for _, err := range spec.ValidateAdoption(c, field.NewPath("spec")) {
		problems = append(problems, problem(cluster, checkDeclare, fmt.Sprintf("%s is %v", err.Field, err.BadValue), err.Detail))
	}
	for name, role := range roles {
		if !role.IsNode() {
			problems = append(problems, problem(name, checkDeclare,
				fmt.Sprintf("it is declared to be a %s host: a cluster is adopted with its Nodes alone", role),
				"take it out of the config file, and add it when the cluster is adopted"))
		}
	}
	return problems
}

// Owners judges the records that hosts have: they have none, or that of this adoption, which was cut.
func Owners(cluster, namespace, authority string, hosts []Host) []preflight.Problem {
	var problems []preflight.Problem
	for _, h := range hosts {
		o := h.Facts.Owner
		switch {
		case h.Facts.OwnerUnreadable != "":
			problems = append(problems, problem(h.Name, checkOwner, "the record of its owner cannot be read: "+h.Facts.OwnerUnreadable,
				"find out whose the host is"))
		case o == nil && h.Facts.Changed():
			problems = append(problems, problem(h.Name, checkOwner, "it was changed by kubexm, and there is no record of its owner",
				"find out whose the host is; what kubexm has made is recovered (kubexm recover), not adopted"))
		case o == nil:
		case o.Cluster != cluster && o.Cluster != namespace+"/"+cluster || authority != "" && o.Authority != authority,
			o.Host != h.Name, o.Role != string(h.Role), o.MachineID != "" && o.MachineID != h.Facts.System.MachineID:
			problems = append(problems, problem(h.Name, checkOwner, "it is "+o.String(),
				"check whether the address in the config file leads to the host that is meant; a host of another cluster is reset by its owner first"))
		}
	}
	return problems
}

// Host is a declared host, with what was seen of it.
type Host struct {
	spec.Host
	Facts *host.Facts
	// Runtime is the container runtime that is declared.
	Runtime kubelet.Runtime
	// Also are units that the first converge writes on it besides those of any Node.
	Also []string
	// CgroupDriver is what a converge would give the kubelet.
	CgroupDriver string
	// Writes are the paths of the files that the first converge writes.
	Writes []string
	// Kubeadm says why the host's own kubeadm does not make anything of what is declared, "" if it does.
	Kubeadm string
}

// Problems are what is wrong with a host by itself. authority is the certificate that the control plane hosts have.
func (h Host) Problems(authority []byte) []preflight.Problem {
	var problems []preflight.Problem
	refuse := func(check, cause, remedy string) { problems = append(problems, problem(h.Name, check, cause, remedy)) }
	f := h.Facts
	if !f.Paths[NodeConfig].Exists {
		refuse(checkHost, "there is no "+NodeConfig+": the host is no Node that kubeadm has made",
			"take it out of the config file, and add it when the cluster is adopted")
		return problems
	}
	if have := f.Paths[Authority].Content; len(authority) > 0 && strings.TrimSpace(string(have)) != strings.TrimSpace(string(authority)) {
		refuse(checkHost, Authority+" is another one than on the control plane hosts: the host is of another cluster",
			"check whether its address leads to the host that is meant")
	}
	for _, u := range UnitNames(h.Runtime) {
		if s := f.Units[u]; s.Active != "active" {
			refuse(checkUnit, fmt.Sprintf("%s is %s", u, orNone(s.Active)),
				"a cluster is adopted while it runs: start it, with "+h.Runtime.Name+" as systemd's unit "+h.Runtime.Unit)
		}
	}
	if said := f.Commands[madeOf]; said.ExitCode != 0 || said.Stopped > 0 {
		refuse(checkUnit, "what its units are made of is not known: "+lastLine(said.Stderr, said.Stdout),
			"find out why systemctl show does not answer on the host, and try again")
	}
	for _, d := range h.dropIns() {
		refuse(checkUnit, d[0], d[1])
	}
	if h.Kubeadm != "" {
		refuse(checkKubeadm, "its kubeadm does not make anything of what is declared: "+h.Kubeadm,
			"install kubeadm of the cluster's version in /usr/local/bin or /usr/bin")
	}
	return append(problems, h.kubelet()...)
}

// kubelet refuses a configuration by which pods would not go on when the kubelet is restarted with ours.
func (h Host) kubelet() []preflight.Problem {
	config := struct {
		CgroupDriver             string `json:"cgroupDriver"`
		ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
		StaticPodPath            string `json:"staticPodPath"`
	}{}
	if err := yaml.Unmarshal(h.Facts.Paths[KubeletConfig].Content, &config); err != nil || config.CgroupDriver == "" {
		return []preflight.Problem{problem(h.Name, checkHost, KubeletConfig+" is not as kubeadm writes it: it has no cgroupDriver",
			"check what configures the kubelet")}
	}
	var problems []preflight.Problem
	refuse := func(what, is, wanted string) {
		problems = append(problems, problem(h.Name, checkHost,
			fmt.Sprintf("the kubelet's %s is %s, and kubexm has %s on this host: its pods would not go on", what, is, wanted),
			"change it as Kubernetes' documentation says, before the cluster is adopted"))
	}
	// What is set by flags counts, whatever the file says.
	config.CgroupDriver = or(flag(h.Facts, "cgroup-driver"), config.CgroupDriver)
	config.ContainerRuntimeEndpoint = or(flag(h.Facts, "container-runtime-endpoint"), config.ContainerRuntimeEndpoint)
	config.StaticPodPath = or(flag(h.Facts, "pod-manifest-path"), config.StaticPodPath)
	for _, f := range []struct{ name, wanted string }{{"config", KubeletConfig}, {"kubeconfig", NodeConfig}} {
		if is := flag(h.Facts, f.name); is != f.wanted && len(kubeletArguments(h.Facts)) > 0 {
			refuse("flag --"+f.name, orNone(is), f.wanted)
		}
	}
	if h.CgroupDriver != "" && config.CgroupDriver != h.CgroupDriver {
		refuse("cgroupDriver", config.CgroupDriver, h.CgroupDriver)
	}
	endpoint := config.ContainerRuntimeEndpoint
	if endpoint != "" && strings.Replace(endpoint, "/var/run/", "/run/", 1) != h.Runtime.Socket {
		refuse("containerRuntimeEndpoint", endpoint, h.Runtime.Socket)
	}
	if p := config.StaticPodPath; p != "" && p != "/etc/kubernetes/manifests" {
		refuse("staticPodPath", p, "/etc/kubernetes/manifests")
	}
	return problems
}

func orNone(s string) string {
	if s == "" {
		return "not there"
	}
	return s
}

// Node is one as the API has it.
type Node struct {
	Name, Address, Runtime, ProviderID string
	ControlPlane                       bool
}

// Seen is what the API says of the cluster.
type Seen struct {
	Cluster string
	Spec    *spec.Cluster
	Hosts   []Host
	Nodes   []Node
	// Configuration is kubeadm's ClusterConfiguration, as the cluster keeps it.
	Configuration string
	// Network is the one that is declared.
	Network component.Network
	// EtcdUnits: etcd is declared to be units of kubexm's own.
	EtcdUnits bool
	// DaemonSets are all, and Releases those of Helm in the network's namespace, as namespace/name.
	DaemonSets, Releases []string
}

// Cluster judges whether the cluster is the one that is declared. That it has no other Nodes and members, and one version, is judged
// elsewhere (recovered.Cluster).
func Cluster(s Seen) []preflight.Problem {
	return slices.Concat(s.nodes(), s.configuration(), s.network())
}

func (s Seen) nodes() []preflight.Problem {
	var problems []preflight.Problem
	for _, h := range s.Hosts {
		at := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == h.Name })
		if at < 0 {
			problems = append(problems, problem(h.Name, checkNode, "the API has no Node of this name",
				"name the host in the config file as its Node; a host that is to join is added later"))
			continue
		}
		n := s.Nodes[at]
		refuse := func(cause, remedy string) { problems = append(problems, problem(h.Name, checkNode, cause, remedy)) }
		if n.Address != h.NodeAddress() {
			refuse(fmt.Sprintf("its Node has the address %s, and %s is declared", n.Address, h.NodeAddress()),
				"declare the Node's: spec.hosts[].internalAddresses")
		}
		if n.ControlPlane != (h.Role == spec.RoleControlPlane) {
			refuse(fmt.Sprintf("it is declared to be a %s host, and its Node is not", h.Role), "correct spec.roleGroups")
		}
		if !strings.HasPrefix(n.Runtime, h.Runtime.Name+"://") {
			refuse("its runtime is "+n.Runtime, "only Nodes with "+h.Runtime.Name+" can be adopted")
		}
		if n.ProviderID != "" && n.ProviderID != h.ProviderID {
			refuse(fmt.Sprintf("its Node has the provider ID %s, and would need %s: that cannot be changed", n.ProviderID, h.ProviderID),
				"a cluster of a cloud's hosts cannot be adopted")
		}
	}
	return problems
}

// configuration refuses what cannot be changed in a cluster that runs.
func (s Seen) configuration() []preflight.Problem {
	var c struct {
		CertificatesDir string `json:"certificatesDir"`
		Networking      struct {
			PodSubnet     string `json:"podSubnet"`
			ServiceSubnet string `json:"serviceSubnet"`
			DNSDomain     string `json:"dnsDomain"`
		} `json:"networking"`
		Etcd struct {
			Local *struct {
				DataDir string `json:"dataDir"`
			} `json:"local"`
			External *struct {
				Endpoints []string `json:"endpoints"`
			} `json:"external"`
		} `json:"etcd"`
	}
	if err := yaml.Unmarshal([]byte(s.Configuration), &c); err != nil || s.Configuration == "" {
		return []preflight.Problem{problem(s.Cluster, checkKubeadm,
			"the ConfigMap kube-system/kubeadm-config has no ClusterConfiguration: kubeadm has not made this cluster",
			"only clusters of kubeadm can be adopted")}
	}
	var problems []preflight.Problem
	differ := func(what, is, declared, field string) {
		if is != declared {
			problems = append(problems, problem(s.Cluster, checkKubeadm, fmt.Sprintf("its %s is %q, and %q is declared; it cannot be changed",
				what, is, declared), "set "+field))
		}
	}
	switch external := c.Etcd.External; {
	case external == nil && (s.Spec.Etcd.IsExternal() || s.EtcdUnits):
		problems = append(problems, problem(s.Cluster, checkKubeadm, "its etcd runs in kubeadm's static pods, and another one is declared",
			"set spec.etcd: {type: kubeadm}"))
	case s.EtcdUnits:
		problems = append(problems, s.strangers(s.Cluster, checkKubeadm, "kubeadm's configuration", external.Endpoints)...)
	case external != nil && !s.Spec.Etcd.IsExternal():
		problems = append(problems, problem(s.Cluster, checkKubeadm, "its etcd is external, and one of the cluster's own is declared",
			"set spec.etcd.type: external, and spec.etcd.external: {endpoints: ["+anyOrder(external.Endpoints)+"], caFile, certFile, keyFile}; "+
				"where it runs as etcd.service on each control plane host, and is to become the cluster's own, spec.etcd.type: kubexm"))
	case external != nil:
		differ("external etcd", anyOrder(external.Endpoints), anyOrder(s.Spec.Etcd.External.Endpoints),
			"spec.etcd.external.endpoints: ["+anyOrder(external.Endpoints)+"]")
	}
	for _, h := range s.Hosts {
		if h.Role == spec.RoleControlPlane {
			problems = append(problems, s.storage(h)...)
		}
	}
	if c.Etcd.Local != nil {
		differ("directory of etcd's data", or(c.Etcd.Local.DataDir, "/var/lib/etcd"), or(s.Spec.Etcd.DataDir, "/var/lib/etcd"),
			"spec.etcd.dataDir")
	}
	differ("directory of certificates", or(c.CertificatesDir, "/etc/kubernetes/pki"), "/etc/kubernetes/pki", "nothing: move them there first")
	differ("range of Pods' addresses", c.Networking.PodSubnet, strings.Join(s.Spec.Network.PodCIDRs, ","),
		"spec.network.podCIDRs: ["+c.Networking.PodSubnet+"]")
	differ("range of Services' addresses", subnets(or(c.Networking.ServiceSubnet, "10.96.0.0/12")),
		subnets(strings.Join(s.Spec.Network.ServiceCIDRs, ",")),
		"spec.network.serviceCIDRs: ["+c.Networking.ServiceSubnet+"]")
	differ("DNS domain", or(c.Networking.DNSDomain, "cluster.local"), s.Spec.DNS.ClusterDomain,
		"spec.dns.clusterDomain: "+c.Networking.DNSDomain)
	return problems
}

// storage refuses an API server that keeps its objects where the one that is declared would not find them, whatever kubeadm's
// configuration says of it.
func (s Seen) storage(h Host) []preflight.Problem {
	var problems []preflight.Problem
	differ := func(flag, is, declared, remedy string) {
		if is != declared {
			problems = append(problems, problem(h.Name, checkEtcd, fmt.Sprintf("its API server has --%s=%s, and %q is declared: it would not find its objects",
				flag, is, declared), remedy))
		}
	}
	has := func(flag string) string { return manifestFlag(h.Facts.Paths[Manifest("kube-apiserver")].Content, flag) }
	if s.Spec.Etcd.IsExternal() {
		differ("etcd-servers", anyOrder(strings.Split(has("etcd-servers"), ",")), anyOrder(s.Spec.Etcd.External.Endpoints),
			"declare what all API servers and the ConfigMap kube-system/kubeadm-config have: spec.etcd.external.endpoints")
		if h.Facts.Paths[Manifest("etcd")].Exists {
			problems = append(problems, problem(h.Name, checkEtcd, "it has "+Manifest("etcd")+", and an external etcd is declared: a reset would remove it",
				"move etcd away from the cluster's hosts first, or set spec.etcd: {type: kubeadm} if kubeadm has made it"))
		}
	}
	if s.EtcdUnits {
		problems = append(problems, s.strangers(h.Name, checkEtcd, "its API server", strings.Split(has("etcd-servers"), ","))...)
	}
	for _, f := range []struct{ name, otherwise string }{{"etcd-prefix", "/registry"}, {"etcd-servers-overrides", ""}} {
		declared := f.otherwise
		for _, a := range s.Spec.Kubernetes.APIServer.ExtraArgs {
			if a.Name == f.name {
				declared = a.Value
			}
		}
		differ(f.name, or(has(f.name), f.otherwise), declared, "have spec.kubernetes.apiServer.extraArgs say the same")
	}
	return problems
}

// anyOrder are endpoints, of which the order does not count.
func anyOrder(endpoints []string) string {
	var all []string
	for _, e := range endpoints {
		all = append(all, strings.TrimSuffix(e, "/"))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// subnets are in their canonical form.
func subnets(list string) string {
	var all []string
	for _, text := range strings.Split(list, ",") {
		if p, err := netip.ParsePrefix(text); err == nil {
			text = p.Masked().String()
		}
		all = append(all, text)
	}
	return strings.Join(all, ",")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// network refuses one that is not what is declared.
func (s Seen) network() []preflight.Problem {
	namespace, daemonSet := s.Network.Agent()
	if namespace == "" {
		return nil // it stays whatever it is
	}
	name := config.Word(s.Spec.Network.Plugin)
	if agent := namespace + "/" + daemonSet; !slices.Contains(s.DaemonSets, agent) {
		return []preflight.Problem{problem(s.Cluster, checkNetwork, "it has no DaemonSet "+agent+", and "+name+" is declared",
			"declare spec.network.plugin: none: the network stays as it is and yours")}
	}
	namespace, release := s.Network.Release()
	if release := namespace + "/" + release; !slices.Contains(s.Releases, release) {
		return []preflight.Problem{problem(s.Cluster, checkNetwork,
			fmt.Sprintf("its %s is no release %s of Helm: kubexm could not go on with it", name, release),
			fmt.Sprintf("declare spec.network.plugin: none, and %s stays as it is and yours; or hand its objects to a release of %[1]s's own chart", name))}
	}
	return nil
}
