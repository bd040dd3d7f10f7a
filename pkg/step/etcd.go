// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// oldestEtcd is the oldest etcd that an API server is run with.
var oldestEtcd = version.MustParseGeneric("3.5.0")

// Etcd is a gate: it waits until an etcd that others run answers at each endpoint, says that it is well, and is new enough;
// then it makes Output.
type Etcd struct {
	onController
	// Endpoints are the client URLs of its members.
	Endpoints []string `json:"endpoints"`
	// Secret has ca.crt, tls.crt and tls.key; "" where the endpoints are http.
	Secret string `json:"secret,omitempty"`
	Output string `json:"output"`
}

// Meta makes Output.
func (e Etcd) Meta() Meta { return Meta{Name: "etcd", Makes: []string{e.Output}} }

// Probe asks each endpoint once. An error is final: credentials that are no good, or an etcd that is too old.
func (e Etcd) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	client, err := e.client(rt.Values)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var d Diff
	for _, endpoint := range e.Endpoints {
		why, err := e.ask(ctx, client, endpoint)
		if err != nil {
			return nil, err
		}
		if why != "" {
			d = append(d, Delta{"etcd " + endpoint, why, "well"})
		}
	}
	return d, nil
}

func (e Etcd) client(values Values) (*http.Client, error) {
	const patience = 5 * time.Second
	if e.Secret == "" {
		return &http.Client{Timeout: patience}, nil
	}
	var parts [3][]byte
	for i, key := range []string{"ca.crt", certKey, privateKey} {
		value, err := values.Secret(SecretRef{Name: e.Secret, Key: key})
		if err != nil {
			return nil, err
		}
		parts[i] = value
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(parts[0]) {
		return nil, fmt.Errorf("secret %s: ca.crt holds no certificate", e.Secret)
	}
	own, err := tls.X509KeyPair(parts[1], parts[2])
	if err != nil {
		return nil, fmt.Errorf("secret %s: tls.crt and tls.key are no pair", e.Secret) // the parser's error may quote them
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
	}}}, nil
}

// ask returns why an endpoint is not well, "" if it is. The error is for what waiting does not repair.
func (e Etcd) ask(ctx context.Context, client *http.Client, endpoint string) (why string, err error) {
	var health struct{ Health, Reason string }
	if err := getJSON(ctx, client, endpoint+"/health", &health); err != nil {
		return e.refused(endpoint, err)
	}
	if health.Health != "true" {
		return unhealthy(health.Reason), nil
	}
	var is struct {
		Server string `json:"etcdserver"`
	}
	if err := getJSON(ctx, client, endpoint+"/version", &is); err != nil {
		return e.refused(endpoint, err)
	}
	parsed, err := version.ParseGeneric(is.Server)
	if err != nil {
		return "", fmt.Errorf("etcd %s does not say which version it is, but %q", endpoint, is.Server)
	}
	if parsed.LessThan(oldestEtcd) {
		return "", fmt.Errorf("etcd %s is %s: Kubernetes needs %s or later; upgrade it first", endpoint, is.Server, oldestEtcd)
	}
	return "", nil
}

// refused says why an endpoint does not answer. What is wrong with certificates is final: other ones are another run.
func (e Etcd) refused(endpoint string, err error) (why string, final error) {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var remote *net.OpError
	switch {
	case errors.As(err, &unknown):
		return "", fmt.Errorf("etcd %s is not trusted: its certificate is not of an authority in ca.crt of the Secret %s; put the authority there "+
			"that has signed it", endpoint, e.Secret)
	case errors.As(err, &name):
		return "", fmt.Errorf("etcd %s is not trusted: %w; name it in etcd.external.endpoints as its certificate does, or give it another one",
			endpoint, name)
	case errors.As(err, &invalid):
		return "", fmt.Errorf("etcd %s is not trusted: %w; give it another certificate", endpoint, invalid)
	case errors.As(err, &remote) && remote.Op == "remote error" && e.Secret == "":
		return "", fmt.Errorf("etcd %s refuses a client without a certificate (%w)", endpoint, remote.Err)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "", fmt.Errorf("etcd %s refuses the certificate in tls.crt of the Secret %s (%w); put one there that is of its clients' authority "+
			"(--trusted-ca-file), for client authentication, and has not ended", endpoint, e.Secret, remote.Err)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // the endpoint is named
	}
	return fmt.Sprintf("it does not answer as it should: %v; see that it runs there, and that it is reached from where kubexm runs", err), nil
}

// unhealthy says why a member is not well, by what it says itself.
func unhealthy(reason string) string {
	text := strings.TrimSpace("it is not healthy: " + reason)
	switch {
	case strings.Contains(reason, "NOSPACE"):
		text += "; its database has reached its quota, and it refuses writes: compact and defragment it or raise --quota-backend-bytes, " +
			"then etcdctl alarm disarm"
	case strings.Contains(reason, "CORRUPT"):
		text += "; its data is not that of the others: remove the member, and let it join anew"
	case reason == "":
		text = "it is not healthy, and does not say why: see its log"
	}
	return text
}

func getJSON(ctx context.Context, client *http.Client, url string, into any) error {
	const most = 64 << 10
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return err
	}
	// An etcd that is not well says so with another status, and why in the body.
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s answers %s, which no etcd would", url, response.Status)
	}
	return nil
}

// Run waits: what is not so yet is reported, and asked again.
func (e Etcd) Run(ctx context.Context, rt *Runtime) error {
	d, err := e.Probe(ctx, rt)
	if err != nil {
		return err
	}
	if len(d) > 0 {
		return &NotYet{Reason: d[0].Subject + ": " + d[0].From}
	}
	return nil
}
