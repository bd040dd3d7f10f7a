// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

// apiServerEnv bounds the API server's memory: half of what it takes otherwise, for a sixth more CPU time while it
// starts. The limit is a soft one, but near it the collector is all that works, so it grows with the objects of hosts.
func apiServerEnv(hosts int) []string {
	const few, each = 50, 1 // up to so many hosts the limit is enough; MiB for each more, several times what its objects are
	return []string{"GOGC=50", fmt.Sprintf("GOMEMLIMIT=%dMiB", 192+each*max(0, hosts-few))}
}

// servedAPIs are the built-in APIs that are served. Of those that reconcilers and users of a plane do not need, the API
// server itself reads Roles, Services' address ranges and EndpointSlices, and is not ready without them.
var servedAPIs = []string{
	"v1",
	"admissionregistration.k8s.io/v1",
	"apiextensions.k8s.io/v1",
	"apiregistration.k8s.io/v1",
	"authentication.k8s.io/v1",
	"authorization.k8s.io/v1",
	"coordination.k8s.io/v1",
	"discovery.k8s.io/v1",
	"events.k8s.io/v1",
	"networking.k8s.io/v1",
	"rbac.authorization.k8s.io/v1",
}

// disabledAdmission are the admission plugins that are on by default and about what a plane does not have: pods, nodes,
// volumes, ingresses, certificate requests, service accounts made by a controller.
var disabledAdmission = []string{
	"CertificateApproval",
	"CertificateSigning",
	"CertificateSubjectRestriction",
	"ClusterTrustBundleAttest",
	"DefaultIngressClass",
	"DefaultStorageClass",
	"DefaultTolerationSeconds",
	"LimitRanger",
	"NodeDeclaredFeatureValidator",
	"PersistentVolumeClaimResize",
	"PodSecurity",
	"PodTopologyLabels",
	"Priority",
	"ResourceQuota",
	"RuntimeClass",
	"ServiceAccount",
	"StorageObjectInUseProtection",
	"TaintNodesByCondition",
}

func startAPIServer(ctx context.Context, o Options, port uint16) (*child.Process, error) {
	served := make([]string, 0, len(servedAPIs)+1)
	served = append(served, "api/all=false")
	for _, api := range servedAPIs {
		served = append(served, api+"=true")
	}
	return child.Start(ctx, child.Spec{
		Name: "kube-apiserver", Path: o.APIServer, Dir: o.Dir, Env: apiServerEnv(o.Hosts),
		Args: []string{
			"--etcd-servers=unix://" + etcdSocket,
			"--bind-address=" + loopback.String(),
			"--secure-port=" + strconv.Itoa(int(port)),
			"--tls-cert-file=" + serverCert,
			"--tls-private-key-file=" + serverKey,
			"--client-ca-file=" + caCert,
			"--anonymous-auth=false",
			"--authorization-mode=RBAC",
			// Not the address: tokens stay valid when the port changes.
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + saPublic,
			"--service-account-signing-key-file=" + saPrivate,
			"--service-cluster-ip-range=10.0.0.0/24",
			"--runtime-config=" + strings.Join(served, ","),
			"--disable-admission-plugins=" + strings.Join(disabledAdmission, ","),
			// Its clients are few and of one process: nothing has to be shared out fairly.
			"--enable-priority-and-fairness=false",
			"--endpoint-reconciler-type=none",
			"--profiling=false",
			// With it, informers wait for a bookmark that comes up to a second later: those of the API server itself
			// and ours. It saves memory where a list is large.
			"--feature-gates=WatchList=false",
		},
	})
}

// waitAPIServer returns when the API server serves all of the built-in APIs.
func waitAPIServer(ctx context.Context, p *child.Process, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return waitReady(ctx, p, client, config.Host+"/readyz")
}

// restConfig is that of the plane's administrator.
func restConfig(k keys, port uint16) *rest.Config {
	return &rest.Config{
		Host: "https://" + netip.AddrPortFrom(loopback, port).String(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   k.authority.Cert,
			CertData: k.admin.Cert,
			KeyData:  k.admin.Key.Reveal(),
		},
		UserAgent: "kubexm",
		QPS:       -1, // the API server is ours alone
	}
}

// choosePort returns the port of the kubeconfig that the last process left, so that copies of it go on working, or a
// free one if there is none or it has been taken.
func choosePort(dir string) (uint16, error) {
	if config, err := clientcmd.LoadFromFile(filepath.Join(dir, kubeconfigFile)); err == nil {
		for _, cluster := range config.Clusters {
			if u, err := url.Parse(cluster.Server); err == nil {
				if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil && port != 0 {
					if port, err := freePort(uint16(port)); err == nil {
						return port, nil
					}
				}
			}
		}
	}
	return freePort(0)
}

// freePort returns a port of the loopback address that nobody listens on: wanted itself, or any if that is 0.
func freePort(wanted uint16) (uint16, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(loopback, wanted).String())
	if err != nil {
		return 0, err
	}
	defer l.Close()
	address, err := netip.ParseAddrPort(l.Addr().String())
	return address.Port(), err
}
