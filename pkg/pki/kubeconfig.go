// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// KubeconfigRequest says what a kubeconfig is to be.
type KubeconfigRequest struct {
	// Cluster and User are names within the file; the context is called User@Cluster.
	Cluster, User string
	// Server is the API server's URL: https://host:port.
	Server string
	// CA are the certificates that vouch for the server, in PEM.
	CA []byte
	// Client is the user's certificate and key. Token is a bearer token, for instance a bootstrap token. Exactly one of
	// the two.
	Client KeyPair
	Token  secret.Value
}

// Kubeconfig returns a kubeconfig that needs no other file: certificates and keys are within it.
func Kubeconfig(r KubeconfigRequest) (secret.Value, error) {
	if err := r.validate(); err != nil {
		return secret.Value{}, fmt.Errorf("kubeconfig of user %q in cluster %q: %w", r.User, r.Cluster, err)
	}
	name := r.User + "@" + r.Cluster
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{r.Cluster: {Server: r.Server, CertificateAuthorityData: r.CA}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{r.User: {
			ClientCertificateData: r.Client.Cert, ClientKeyData: r.Client.Key.Reveal(), Token: string(r.Token.Reveal()),
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: r.Cluster, AuthInfo: r.User}},
		CurrentContext: name,
	})
	if err != nil {
		return secret.Value{}, fmt.Errorf("kubeconfig of user %q in cluster %q: %w", r.User, r.Cluster, err)
	}
	return secret.New(out), nil
}

func (r KubeconfigRequest) validate() error {
	if r.Cluster == "" || r.User == "" {
		return errors.New("both names are needed")
	}
	u, err := url.Parse(r.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("server %q is not of the form https://host:port", r.Server)
	}
	if _, err := first(r.CA); err != nil {
		return fmt.Errorf("CA: %w", err)
	}
	switch {
	case r.Client.IsZero() == r.Token.IsZero():
		return errors.New("exactly one of a client certificate and a token is needed")
	case !r.Client.IsZero():
		if _, _, err := r.Client.load(); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	return nil
}
