// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestKubeconfigOpensATLSServer goes the whole way: a CA, a server and a client of it, and a client made from the file.
func TestKubeconfigOpensATLSServer(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	serving, err := ca.Sign(pki.LeafRequest{
		CommonName: "kube-apiserver", IPs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Usages: []pki.Usage{pki.Server},
	})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := ca.Sign(pki.LeafRequest{CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(serving.Cert, serving.Key.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = w.Write([]byte(subject.CommonName + " of " + subject.Organization[0]))
	}))
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, ca))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()

	file, err := pki.Kubeconfig(pki.KubeconfigRequest{Cluster: "c1", Server: server.URL, CA: ca.Cert, User: "kubernetes-admin", Client: admin})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(file.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil || body.String() != "kubernetes-admin of system:masters" {
		t.Errorf("the server saw %q, %v", body.String(), err)
	}
}

func TestKubeconfig(t *testing.T) {
	ca := newCA(t, pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	client, err := ca.Sign(pki.LeafRequest{CommonName: "admin", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	good := pki.KubeconfigRequest{Cluster: "c1", Server: "https://10.0.0.10:6443", CA: ca.Cert, User: "admin", Client: client}
	file, err := pki.Kubeconfig(good)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := clientcmd.Load(file.Reveal())
	if err != nil || parsed.CurrentContext != "admin@c1" || len(parsed.Clusters)*len(parsed.AuthInfos)*len(parsed.Contexts) != 1 {
		t.Errorf("%v: %+v", err, parsed)
	}
	tests := map[string]struct {
		change func(*pki.KubeconfigRequest)
		want   string
	}{
		"a token": {func(r *pki.KubeconfigRequest) {
			r.Client, r.Token = pki.KeyPair{}, secret.New("abcdef.0123456789abcdef")
		}, ""},
		"two credentials":  {func(r *pki.KubeconfigRequest) { r.Token = secret.New("t") }, "exactly one"},
		"no credentials":   {func(r *pki.KubeconfigRequest) { r.Client = pki.KeyPair{} }, "exactly one"},
		"the wrong key":    {func(r *pki.KubeconfigRequest) { r.Client.Key = ca.Key }, "does not belong"},
		"no server":        {func(r *pki.KubeconfigRequest) { r.Server = "" }, "https://host:port"},
		"a bare address":   {func(r *pki.KubeconfigRequest) { r.Server = "10.0.0.10:6443" }, "https://host:port"},
		"a plain server":   {func(r *pki.KubeconfigRequest) { r.Server = "http://10.0.0.10:6443" }, "https://host:port"},
		"no CA":            {func(r *pki.KubeconfigRequest) { r.CA = nil }, "CA: there is no certificate"},
		"no cluster":       {func(r *pki.KubeconfigRequest) { r.Cluster = "" }, "names"},
		"no name of users": {func(r *pki.KubeconfigRequest) { r.User = "" }, "names"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := good
			test.change(&r)
			_, err := pki.Kubeconfig(r)
			wantError(t, err, test.want)
		})
	}
}
