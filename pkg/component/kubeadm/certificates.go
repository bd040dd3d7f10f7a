// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	certs "github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

var (
	//go:embed certificates.sh
	certificates string
	//go:embed certificates-check.sh
	certificatesCheck string
	//go:embed certificates-renew.sh
	certificatesRenew string
	//go:embed serving.sh
	serving string
)

const (
	adminConf = dir + "/admin.conf"

	certificatesName = "kubeadm/certificates"

	// servingNames says for which names and addresses the API server's serving certificate was made.
	servingNames = copiesDir + "/apiserver.names"
)

// servingCert is the kubelet's, without its ending.
const servingCert = kubeletDir + "/pki/kubelet"

// NodeCertificates makes the certificate by which the API server knows the kubelet. The kubelet reads it anew when it changes.
func NodeCertificates(c Cluster, n kubelet.Node) step.Step {
	name := "system:node:" + n.Name
	cert := step.Certificate{
		Path: servingCert + ".crt", KeyPath: servingCert + ".key", Authority: "ca", Trusted: pki + "/ca.crt",
		CommonName: name, Organizations: []string{"system:nodes"},
		Usages:   []certs.Usage{certs.Server},
		Validity: step.Duration(c.Spec.Certificates.Validity()), RenewBefore: step.Duration(c.Spec.Certificates.RenewBefore()),
	}
	for _, one := range n.ServingNames(&c.Spec) {
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

// reads are the certificates that a pod reads when it starts, of those that kubeadm renews. (etcd, and anyone who goes to it, reads its
// own at each handshake.)
func reads(pod string) []string {
	var all []string
	for _, name := range []string{"apiserver", "apiserver-kubelet-client", "front-proxy-client", "controller-manager.conf", "scheduler.conf"} {
		if Restarts(name) == pod {
			all = append(all, certificate(name).Path)
		}
	}
	return all
}

// certificateFiles are those that kubeadm writes when it renews.
func certificateFiles(c Cluster) []string {
	var all []string
	for _, name := range CertificateNames(c) {
		file := certificate(name).Path
		all = append(all, file)
		if key, ok := strings.CutSuffix(file, ".crt"); ok {
			all = append(all, key+".key")
		}
	}
	return all
}

// Certificates renews what kubeadm made, all at once, when one of them ends soon. It comes after the control plane runs, and before the
// steps by which components read them anew. How soon is what c says.
func Certificates(c Cluster, n kubelet.Node) step.Step {
	return step.New(certificatesMeta("renew certificates that end soon"), step.Command{
		Title: "renew kubeadm's certificates", Argv: renewArgv(c, n), Done: certificatesLast(c, n),
	})
}

// certificatesLast holds when none of kubeadm's certificates ends soon.
func certificatesLast(c Cluster, n kubelet.Node) step.Done {
	return step.Done{Check: certificatesArgv(c, n, nil, certificates+certificatesCheck)}
}

// Renew renews the certificates with these names (CertificateNames), whenever they end, and has those read them anew who read them when
// they start: one after the other, and on one host of the cluster at a time; when one of them does not become Ready, all is rolled back.
// It does so once for each time at which it is asked for. After are outputs that must be there first.
func Renew(c Cluster, n kubelet.Node, names []string, asked time.Time, after ...string) []step.Step {
	about := certificatesMeta("renew " + strings.Join(names, ", ") + " as asked for at " + asked.UTC().Format(time.RFC3339))
	about.Takes = after
	var restarts []string
	for _, pod := range components(len(c.EtcdEndpoints) == 0) {
		if slices.ContainsFunc(names, func(name string) bool { return Restarts(name) == pod }) {
			restarts = append(restarts, pod)
		}
	}
	if len(names) == len(CertificateNames(c)) {
		names = []string{"all"} // in one go
	}
	once := step.Done{SameInput: true}
	renew := step.New(about, step.Command{Title: "renew kubeadm's certificates", Argv: renewArgv(c, n, names...)}).Until(once)
	if len(restarts) == 0 {
		return []step.Step{renew}
	}
	begin := beginChange(c, n, step.Savepoint{Unless: []step.Done{once}}).(step.Sequence)
	begin.About.Description += ", to " + about.Description
	begin.About.Takes = after
	steps := append([]step.Step{begin, renew}, eachWhenReady(c, n, restarts, restart)...)
	return append(steps, endChange())
}

// ServingCertificate makes the API server's serving certificate anew when it is to have other names or addresses. It comes before the step
// by which the API server reads it.
func ServingCertificate(c Cluster, n kubelet.Node) step.Step {
	const made = dir + "/.kubexm-serving"
	cluster := clusterConfiguration(c, n)
	cluster["certificatesDir"] = made
	return step.New(step.Meta{Name: "kubeadm/serving-certificate", Description: "make the API server's certificate for its names"},
		step.Command{
			Title: "make the API server's certificate", Done: rendered(servingNames, namesOf(c, n)),
			Argv: []string{
				"/usr/bin/env", "new=" + made, "pki=" + pki, "config=" + documents(initConfiguration(c, n), cluster),
				"/bin/sh", "-uc", fail + serving, "kubeadm",
			},
		},
		step.File{Path: servingNames, Mode: 0o600, Content: step.Literal(namesOf(c, n))},
	)
}

// namesOf are those names and addresses, a line each. kubeadm adds what is of the cluster and of the host.
func namesOf(c Cluster, n kubelet.Node) string { return strings.Join(certSANs(c, n), "\n") + "\n" }

func certificatesMeta(description string) step.Meta {
	return step.Meta{
		Name: certificatesName, Description: description, Retry: step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)},
	}
}

func renewArgv(c Cluster, n kubelet.Node, names ...string) []string {
	return certificatesArgv(c, n, names, fail+certificates+certificatesRenew)
}

// certificatesArgv is the command that runs a script about certificates. What it must know is in its environment, so that nothing
// needs to be quoted.
func certificatesArgv(c Cluster, n kubelet.Node, names []string, script string) []string {
	return []string{
		"/usr/bin/env", "config=" + renewalConfig(c, n), "within=" + seconds(renewBefore(c)), "names=" + strings.Join(names, " "),
		"dir=" + dir, "/bin/sh", "-uc", script, "kubeadm",
	}
}

// renewBefore is how long before its end a certificate is renewed: at most half of what it is made for, or one that was just
// made would be renewed at once.
func renewBefore(c Cluster) time.Duration {
	return min(c.Spec.Certificates.RenewBefore(), c.Spec.Certificates.Validity()/2)
}

// renewalConfig is what kubeadm must know to renew: with it, it asks neither the cluster nor anybody else. Names and addresses
// are those of the certificates that there are.
func renewalConfig(c Cluster, n kubelet.Node) string {
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
