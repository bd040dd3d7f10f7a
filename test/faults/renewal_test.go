// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func (m *members) killRenewal() {
	m.bring(2)
	var targets []spec.Target
	for _, n := range m.nodes(2) {
		targets = append(targets, n.Target)
	}
	renewals, err := pipeline.Renewals(targets, nil)
	if err != nil {
		m.Fatal(err)
	}
	before := m.certificates(renewals)
	p, err := pipeline.RenewCertificates("faults", targets, nil, nil, time.Now())
	if err != nil {
		m.Fatal(err)
	}
	m.carryOut(p, killed)

	after := m.certificates(renewals)
	if len(after) == 0 || len(after) != len(before) {
		m.Errorf("there were %d certificates, and are %d", len(before), len(after))
	}
	for r, old := range before {
		if is := after[r]; is != nil && is.SerialNumber.Cmp(old.SerialNumber) == 0 {
			m.Errorf("%s on %s is the one from before", r.Path, r.Host)
		}
	}
	for r, is := range after {
		for _, port := range m.ports(r) {
			m.eventually(func() error { return m.serves(r.Host, port, is) })
		}
	}
	for _, h := range m.cluster.hosts[:m.count] {
		api, err := m.cluster.apiOf(h)
		if err != nil {
			m.Fatal(err)
		}
		m.eventually(func() error { return api.Healthy(m.Context()) })
	}
	e := engine.New(m.cluster.options(nil))
	seen, err := e.Check(m.Context(), p)
	if err != nil {
		m.Fatal(err)
	}
	for _, c := range seen.Checks {
		m.Errorf("not so: %s: %v %s", c.Node, c.Diff, c.Unknown)
	}
	m.demandWhole()
}

// certificates are those of the renewals that there are; kubeadm gives some to the first host alone. It fails the test unless
// each is whole: of an authority of the cluster, and with its key.
func (m *members) certificates(renewals []pipeline.Renewal) map[pipeline.Renewal]*x509.Certificate {
	m.Helper()
	all := map[pipeline.Renewal]*x509.Certificate{}
	for _, r := range renewals {
		is, err := m.certificate(r)
		switch {
		case err != nil:
			m.Errorf("%s on %s: %v", r.Path, r.Host, err)
		case is != nil:
			all[r] = is
		}
	}
	return all
}

// certificate is nil where there is no such file.
func (m *members) certificate(r pipeline.Renewal) (*x509.Certificate, error) {
	if m.on(r.Host, "find", path.Dir(r.Path), "-maxdepth", "1", "-name", path.Base(r.Path)) == "" {
		return nil, nil
	}
	cert := []byte(m.on(r.Host, "cat", r.Path))
	var key []byte
	if path.Ext(r.Path) == ".conf" {
		config, err := clientcmd.Load(cert)
		if err != nil {
			return nil, err
		}
		user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
		cert, key = user.ClientCertificateData, user.ClientKeyData
	} else {
		key = []byte(m.on(r.Host, "cat", strings.NewReplacer(".crt", ".key", ".pem", "-key.pem").Replace(r.Path)))
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	for _, name := range authorityNames {
		if name == pki.ServiceAccountName {
			continue // a key alone
		}
		authority, _ := m.cluster.authorities.Get(name)
		by, err := authority.Certificate()
		if err != nil {
			return nil, err
		}
		if pair.Leaf.CheckSignatureFrom(by) == nil {
			return pair.Leaf, nil
		}
	}
	return nil, fmt.Errorf("no authority of the cluster has signed the certificate of %s", pair.Leaf.Subject)
}

// on is what a command says on a host.
func (m *members) on(name string, argv ...string) string {
	m.Helper()
	for _, h := range m.hosts {
		if h.Name == name {
			return m.exec(h, argv...)
		}
	}
	m.Fatalf("there is no host %s", name)
	return ""
}

// ports are those at which a certificate is shown.
func (m *members) ports(r pipeline.Renewal) []int {
	if r.Name == "etcd-member" && m.cluster.shared.Etcd.Type == spec.EtcdKubeadm {
		return nil // members that kubeadm made show etcd-server and etcd-peer
	}
	return map[string][]int{
		"apiserver": {6443}, "etcd-member": {2379, 2380}, "etcd-server": {2379}, "etcd-peer": {2380}, "kubelet": {10250},
	}[r.Name]
}

// serves returns nil when a host shows a certificate at a port.
func (m *members) serves(name string, port int, want *x509.Certificate) error {
	config, err := m.cluster.config(name)
	if err != nil {
		return err
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // it is the very one that is wanted, or it is not
	}}
	conn, err := dialer.DialContext(m.Context(), "tcp", net.JoinHostPort(config.Address, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]; !shown.Equal(want) {
		return fmt.Errorf("host %s shows at port %d a certificate from %s, not the one from %s", name, port, shown.NotBefore, want.NotBefore)
	}
	return nil
}
