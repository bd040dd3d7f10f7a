// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// client are a Secret's values, by which an etcd that others run is reached.
type client map[string][]byte

func (c client) Secret(ref step.SecretRef) ([]byte, error) {
	if value, found := c[ref.Key]; found && ref.Name == "etcd-client" {
		return value, nil
	}
	return nil, errors.New("there is no Secret " + ref.Name)
}

func (client) Output(string) ([]byte, error) { return nil, step.ErrUnknown }

// with are the values with another pair of a client.
func (c client) with(t *testing.T, ca pki.KeyPair, request pki.LeafRequest) client {
	t.Helper()
	pair, err := ca.Sign(request)
	if err != nil {
		t.Fatal(err)
	}
	return client{"ca.crt": c["ca.crt"], "tls.crt": pair.Cert, "tls.key": pair.Key.Reveal()}
}

// client is how an administrator reaches the member.
func (p *process) client() client {
	p.t.Helper()
	c := client{}
	for key, file := range map[string]string{"ca.crt": "ca.pem",
		"tls.crt": "admin-" + p.settings.Name + ".pem", "tls.key": "admin-" + p.settings.Name + "-key.pem"} {
		content, err := os.ReadFile(p.path("ssl/" + file))
		if err != nil {
			p.t.Fatal(err)
		}
		c[key] = content
	}
	return c
}

// checks wants of the gate for an etcd that others run what it says: nothing if etcd may be used; that it waits; or that it gives up.
func checks(t *testing.T, what string, values client, waits bool, endpoint string, says ...string) {
	t.Helper()
	gate := step.Etcd{Endpoints: []string{endpoint}, Output: "checked"}
	if values != nil {
		gate.Secret = "etcd-client"
	}
	err := gate.Run(t.Context(), &step.Runtime{View: step.View{Values: values}})
	if len(says) == 0 {
		if err != nil {
			t.Errorf("%s: it says %v", what, err)
		}
		return
	}
	if err == nil {
		t.Errorf("%s: it is taken", what)
		return
	}
	t.Logf("%s: %v", what, err)
	if got := errors.As(err, new(*step.NotYet)); got != waits {
		t.Errorf("%s: it waits: %v, want %v", what, got, waits)
	}
	for _, text := range append(says, "etcd "+endpoint) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: it says %q, and should say %q", what, err, text)
		}
	}
}

// TestExternalEtcdIsRefused for what makes it of no use, in words that say at which endpoint, why, and what to do.
func TestExternalEtcdIsRefused(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{QuotaBackendBytes: 16 << 20})[0]
	p.must(p.member(), "no voting member answers here")
	endpoint, values := "https://"+p.address+":2379", p.client()
	checks(t, "as it should be", values, false, endpoint)

	other, err := pki.NewCA(pki.CARequest{CommonName: "others", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	checks(t, "another authority in ca.crt", client{"ca.crt": other.Cert, "tls.crt": values["tls.crt"], "tls.key": values["tls.key"]}, false, endpoint,
		"is not trusted", "an authority in ca.crt of the Secret etcd-client", "put the authority there")
	checks(t, "a client of another authority", values.with(t, other, pki.LeafRequest{CommonName: "kubernetes", Usages: []pki.Usage{pki.Client}}), false, endpoint,
		"refuses the certificate in tls.crt of the Secret etcd-client", "--trusted-ca-file")
	checks(t, "a certificate that is no client's", values.with(t, p.ca, pki.LeafRequest{
		CommonName: "kubernetes", Usages: []pki.Usage{pki.Server}, IPs: []netip.Addr{netip.MustParseAddr(p.address)},
	}), false, endpoint, "refuses the certificate in tls.crt of the Secret etcd-client", "for client authentication")
	checks(t, "at another address than its certificate's", values, false, "https://"+p.elsewhere(), "is not trusted", "127.76.1.1",
		"name it in etcd.external.endpoints as its certificate does")
	checks(t, "without TLS", nil, true, strings.Replace(endpoint, "https", "http", 1), "does not answer", "see that it runs there")

	through := func(change func(*http.Response) error) string {
		t.Helper()
		behind, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		own, err := tls.X509KeyPair(values["tls.crt"], values["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(values["ca.crt"])
		proxy := httputil.NewSingleHostReverseProxy(behind)
		proxy.Transport = &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
		}
		proxy.ModifyResponse = change
		server := httptest.NewServer(proxy)
		t.Cleanup(server.Close)
		return server.URL
	}
	checks(t, "through a proxy", nil, false, through(nil))
	old := through(func(r *http.Response) error {
		if r.Request.URL.Path == "/version" {
			answer(r, `{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}`)
		}
		return nil
	})
	checks(t, "an old one", nil, false, old, "is 3.4.23", "Kubernetes needs 3.5", "upgrade it first")
	checks(t, "something else", nil, true, through(func(r *http.Response) error {
		answer(r, "<html>")
		return nil
	}), "which no etcd would")

	t.Log("its database is full")
	for range 40 {
		if _, err = p.put1MiB(); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("the database does not become full")
	}
	checks(t, "NOSPACE", values, true, endpoint, "it is not healthy", "NOSPACE", "compact and defragment", "etcdctl alarm disarm")

	p.stop()
	checks(t, "unreachable", values, true, endpoint, "it does not answer", "connection refused", "see that it runs there")
}

// elsewhere is another address at which the member is reached.
func (p *process) elsewhere() string {
	p.t.Helper()
	listener, err := new(net.ListenConfig).Listen(p.t.Context(), "tcp", "127.76.1.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.address+":2379")
			if err != nil {
				_ = in.Close()
				continue
			}
			for from, to := range map[net.Conn]net.Conn{in: out, out: in} {
				go func() {
					_, _ = io.Copy(to, from) // it ends with either side
					_ = to.Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// answer puts another body into an answer.
func answer(r *http.Response, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}
