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
	"net/http"
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
		why, err := ask(ctx, client, endpoint)
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

// ask returns why an endpoint is not well, "" if it is. The error is for what waiting does not mend.
func ask(ctx context.Context, client *http.Client, endpoint string) (why string, err error) {
	var health struct{ Health, Reason string }
	if err := getJSON(ctx, client, endpoint+"/health", &health); err != nil {
		if unknown := new(x509.UnknownAuthorityError); errors.As(err, unknown) {
			return "", fmt.Errorf("etcd %s is not trusted: its certificate is not of the authority in ca.crt", endpoint)
		}
		return err.Error(), nil
	}
	if health.Health != "true" {
		return strings.TrimSpace("not healthy " + health.Reason), nil
	}
	var is struct {
		Server string `json:"etcdserver"`
	}
	if err := getJSON(ctx, client, endpoint+"/version", &is); err != nil {
		return err.Error(), nil
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

// Run waits: what is not so yet is told, and asked again.
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
