// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	certs "github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/turn"
)

var (
	//go:embed certificates.sh
	certificates string
	//go:embed certificates-check.sh
	certificatesCheck string
	//go:embed certificates-renew.sh
	certificatesRenew string
	//go:embed certificates-restart.sh
	certificatesRestart string
	//go:embed certificates-alone.sh
	certificatesAlone string
)

const (
	// etcdSSL is what a host that has a member of etcd goes to it with.
	etcdSSL   = "/etc/kubexm/etcd/ssl"
	adminConf = dir + "/admin.conf"
	// renewLimit is how long a host may renew, with the wait for those that renew before it.
	renewLimit = turn.Limit
	// askLimit is how long nobody may answer that could give a host its turn, before no one is thought to be served from there.
	askLimit = time.Minute

	certificatesName = "kubeadm/certificates"
	restarts         = "restarts kube-apiserver, kube-controller-manager, kube-scheduler"
)

// servingCert is the kubelet's, without its ending.
const servingCert = kubeletDir + "/pki/kubelet"

// NodeCertificates makes the certificate by which the API server knows the kubelet. The kubelet reads it anew when it changes.
func NodeCertificates(c Cluster, n Node) step.Step {
	name := "system:node:" + n.Name
	cert := step.Certificate{
		Path: servingCert + ".crt", KeyPath: servingCert + ".key", Authority: "ca", Trusted: pki + "/ca.crt",
		CommonName: name, Organizations: []string{"system:nodes"},
		Usages:   []certs.Usage{certs.Server},
		Validity: step.Duration(c.Spec.Certificates.Validity()), RenewBefore: step.Duration(c.Spec.Certificates.RenewBefore()),
	}
	for _, one := range append([]string{n.Name, n.Address, n.SecondAddress}, n.Addresses...) {
		address, err := netip.ParseAddr(one)
		switch {
		case err == nil && !slices.Contains(cert.Addresses, address.Unmap()):
			cert.Addresses = append(cert.Addresses, address.Unmap())
		case err != nil && one != "" && !slices.Contains(cert.DNSNames, one):
			cert.DNSNames = append(cert.DNSNames, one)
		}
	}
	return step.New(step.Meta{Name: "kubeadm/node-certificates", Description: "make the kubelet's serving certificate"},
		step.Directory{Path: kubeletDir + "/pki", Mode: 0o755}, cert)
}

// CertificateNames are the certificates that kubeadm has on a control plane host of c, as "kubeadm certs renew" names them.
func CertificateNames(c Cluster) []string {
	names := []string{
		"admin.conf", "apiserver", "apiserver-kubelet-client", "controller-manager.conf", "front-proxy-client", "scheduler.conf",
		"super-admin.conf",
	}
	if len(c.EtcdEndpoints) == 0 {
		names = append(names, "apiserver-etcd-client", "etcd-healthcheck-client", "etcd-peer", "etcd-server")
	}
	slices.Sort(names)
	return names
}

// Restarts is the component that is restarted for a certificate, "" when those who use it read it anew.
func Restarts(name string) string {
	switch name {
	case "apiserver", "apiserver-kubelet-client", "front-proxy-client":
		return "kube-apiserver"
	case "controller-manager.conf":
		return "kube-controller-manager"
	case "scheduler.conf":
		return "kube-scheduler"
	}
	return ""
}

// Certificates renews what kubeadm made, all at once, when one of them ends soon, and restarts the components that read them when
// they start: one after the other, and on one host of the cluster at a time. It comes after the control plane runs. That somebody
// else has renewed and not restarted is found, too. How soon is what c says, which must not leave it to people.
func Certificates(c Cluster, n Node) step.Step {
	return step.New(certificatesMeta("renew certificates that end soon"), step.Command{
		Title: "renew kubeadm's certificates", Argv: renewArgv(c, n),
		Done: step.Done{Check: certificatesArgv(c, n, nil, certificates+certificatesCheck)},
	})
}

// Renew renews the certificates with these names (CertificateNames), whenever they end; see Certificates. It does so once for
// each time at which it is asked for. After are outputs that must be there first.
func Renew(c Cluster, n Node, names []string, asked time.Time, after ...string) step.Step {
	about := certificatesMeta("renew " + strings.Join(names, ", ") + " as asked for at " + asked.UTC().Format(time.RFC3339))
	about.Takes, about.Disrupts = after, ""
	var components []string
	for _, name := range names {
		if c := Restarts(name); c != "" {
			components = append(components, c)
		}
	}
	if len(components) > 0 {
		slices.Sort(components)
		about.Disrupts = "restarts " + strings.Join(slices.Compact(components), ", ")
	}
	if len(names) == len(CertificateNames(c)) {
		names = []string{"all"} // in one go
	}
	return step.New(about, step.Command{Title: "renew kubeadm's certificates", Argv: renewArgv(c, n, names...)}).
		Until(step.Done{SameInput: true})
}

func certificatesMeta(description string) step.Meta {
	return step.Meta{
		Name: certificatesName, Description: description, Timeout: step.Duration(renewLimit + time.Minute), Disrupts: restarts,
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)},
	}
}

func renewArgv(c Cluster, n Node, names ...string) []string {
	const anyOutdated = `[ -n "$(outdated)" ]`
	return certificatesArgv(c, n, names, ready+turn.Script+certificatesAlone,
		inTurn(c, n, ready+certificates+certificatesRenew, certificates+anyOutdated, certificates+certificatesRestart)...)
}

// inTurn is the environment in which certificates-alone.sh runs the script act when it is this host's turn. That comes after before,
// which disturbs nobody, and only if the script disrupts succeeds; either may be "".
func inTurn(c Cluster, n Node, before, disrupts, act string) []string {
	return []string{
		"before=" + before, "disrupts=" + disrupts, "renewal=" + ready + turn.Script + act, "ssl=" + etcdSSL,
		"admin=" + adminConf, "server=https://" + net.JoinHostPort(n.Address, itoa(c.Spec.ControlPlaneEndpoint.Port)),
		"term=" + seconds(turn.Term), "asking=" + seconds(turn.Asking), "limit=" + seconds(renewLimit),
		"wait=" + seconds(askLimit), "patience=" + seconds(turn.Patience),
	}
}

// certificatesArgv is the command that runs a script about certificates. What it must know is in its environment, so that nothing
// needs to be quoted.
func certificatesArgv(c Cluster, n Node, names []string, script string, also ...string) []string {
	argv := append([]string{
		"/usr/bin/env", "name=" + n.Name, "host=" + inURL(n.Address), "port=" + itoa(c.Spec.ControlPlaneEndpoint.Port),
		"config=" + renewalConfig(c, n), "within=" + seconds(renewBefore(c)), "names=" + strings.Join(names, " "),
		"dir=" + dir,
	}, also...)
	return append(argv, "/bin/sh", "-uc", script, "kubeadm")
}

// renewBefore is how long before its end a certificate is renewed: at most half of what it is made for, or one that was just
// made would be renewed at once.
func renewBefore(c Cluster) time.Duration {
	return min(c.Spec.Certificates.RenewBefore(), c.Spec.Certificates.Validity()/2)
}

// renewalConfig is what kubeadm must know to renew: with it, it asks neither the cluster nor anybody else. Names and addresses
// are those of the certificates that there are.
func renewalConfig(c Cluster, n Node) string {
	return documents(
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": localEndpoint(c, n),
			"nodeRegistration": object{"name": n.Name, "criSocket": n.Runtime.Socket},
		},
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
			"clusterName": c.Name, "kubernetesVersion": c.Version, "controlPlaneEndpoint": c.Spec.ControlPlaneEndpoint.HostPort(), "etcd": etcd(c),
			"certificateValidityPeriod": c.Spec.Certificates.Validity().String(),
		},
	)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// inURL is an address as it stands in a URL: one of IPv6 in brackets.
func inURL(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}
