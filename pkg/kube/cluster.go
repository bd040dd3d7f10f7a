// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// manager is who applies: the field manager of objects, and the value of managed-by labels.
const manager = "kubexm"

// discoveryTimeout bounds the requests by which the server's kinds are discovered: they cannot be bounded by a context.
const discoveryTimeout = 10 * time.Second

// Cluster is one cluster's API. It is safe for concurrent use.
type Cluster struct {
	config  *rest.Config
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

var _ step.Cluster = (*Cluster)(nil)

// New returns the API that config leads to. It does not connect yet.
func New(config *rest.Config) (*Cluster, error) {
	own := rest.CopyConfig(config)
	own.UserAgent = rest.DefaultKubernetesUserAgent()
	own.QPS = -1 // the server's priority and fairness decide
	own.WarningHandler = rest.NoWarnings{}

	c := &Cluster{config: own}
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, c.wrap(err)
	}
	if c.typed, err = kubernetes.NewForConfigAndClient(own, client); err != nil {
		return nil, c.wrap(err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(own, client); err != nil {
		return nil, c.wrap(err)
	}
	discovering := rest.CopyConfig(own)
	discovering.Timeout = discoveryTimeout
	if client, err = rest.HTTPClientFor(discovering); err != nil {
		return nil, c.wrap(err)
	}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(discovering, client); err != nil {
		return nil, c.wrap(err)
	}
	return c, nil
}

// FromKubeconfig returns the API that a kubeconfig leads to. See RESTConfig for which are refused.
func FromKubeconfig(kubeconfig secret.Value) (*Cluster, error) {
	config, err := RESTConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return New(config)
}

// RESTConfig is where a kubeconfig's current context leads to, and how. The kubeconfig must be complete in
// itself. One that runs a command or reads a file for its credentials is refused: who can write it could otherwise
// run and read as the controller.
func RESTConfig(kubeconfig secret.Value) (*rest.Config, error) {
	parsed, err := clientcmd.Load(kubeconfig.Reveal())
	if err != nil {
		return nil, errors.New("kubeconfig is not readable") // the parser's error may quote it
	}
	if err := selfContained(parsed); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return config, nil
}

func selfContained(k *clientcmdapi.Config) error {
	context, ok := k.Contexts[k.CurrentContext]
	if !ok {
		return fmt.Errorf("there is no context %q (current-context)", k.CurrentContext)
	}
	if cluster, ok := k.Clusters[context.Cluster]; ok && cluster.CertificateAuthority != "" {
		return fmt.Errorf("clusters[%s].certificate-authority names a file; use certificate-authority-data", context.Cluster)
	} else if ok && !isProxy(cluster.ProxyURL) { // client-go's error would show the proxy's password
		return fmt.Errorf("clusters[%s].proxy-url is not a URL of http, https or socks5", context.Cluster)
	}
	user, ok := k.AuthInfos[context.AuthInfo]
	switch {
	case !ok:
		return fmt.Errorf("there is no user %q", context.AuthInfo)
	case user.Exec != nil:
		return fmt.Errorf("users[%s].exec runs a command; use a client certificate or a token", context.AuthInfo)
	case user.AuthProvider != nil:
		return fmt.Errorf("users[%s].auth-provider is not supported; use a client certificate or a token", context.AuthInfo)
	case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
		return fmt.Errorf("users[%s] names a file; use client-certificate-data and client-key-data, or token", context.AuthInfo)
	}
	return nil
}

// isProxy reports whether a proxy-url is one that client-go knows, or none.
func isProxy(address string) bool {
	u, err := url.Parse(address)
	return address == "" || err == nil && slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)
}

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// fail wraps err with the server and what was tried, in words.
func (c *Cluster) fail(err error, format string, args ...any) error {
	return fmt.Errorf("API server %s: %s: %w", c.Server(), fmt.Sprintf(format, args...), withoutURL(err))
}

// wrap wraps err with the server.
func (c *Cluster) wrap(err error) error {
	return fmt.Errorf("API server %s: %w", c.Server(), withoutURL(err))
}

// withoutURL takes off the method and URL that net/http puts before a connection's error: the server has been named.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) && error(u) == err { //nolint:errorlint // the very same error
		return u.Err
	}
	return err
}

// bounded runs f, which takes no ctx, and returns early if ctx ends first: f must come to an end by itself.
func bounded[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}
