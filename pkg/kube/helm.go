// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// recordTimeout bounds a request for a release's record. Those are not cut off when the context ends, so that an act
// that was cut off is on record as failed.
const recordTimeout = 10 * time.Second

// helm returns what Helm's actions run with: releases are kept in Secrets of the namespace, as the helm command does.
// Helm knows no contexts, so its requests are bound to ctx where they leave. It logs to ctx's logger.
func (c *Cluster) helm(ctx context.Context, namespace string) (*action.Configuration, error) {
	log := logr.FromContextOrDiscard(ctx).WithName("helm").V(1)
	debug := func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) }

	acting := rest.CopyConfig(c.config)
	acting.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundTo{ctx, next} })
	config := new(action.Configuration)
	if err := config.Init(getter{acting, c.mapper, namespace}, namespace, "secret", debug); err != nil {
		return nil, err
	}
	client, ok := config.KubeClient.(*helmkube.Client)
	if !ok {
		return nil, fmt.Errorf("Helm's client is a %T", config.KubeClient)
	}
	config.KubeClient = hookClient{client, ctx}

	recording := rest.CopyConfig(c.config)
	recording.Timeout = recordTimeout
	recorder, err := kubernetes.NewForConfig(recording)
	if err != nil {
		return nil, err
	}
	records := driver.NewSecrets(recorder.CoreV1().Secrets(namespace))
	records.Log = debug
	config.Releases = storage.Init(records)
	config.Releases.Log = debug
	config.Releases.MaxHistory = keptRevisions
	return config, nil
}

// boundTo is a transport whose requests end with a context, beside their own.
type boundTo struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip sends the request unless the context has ended. It stays bound while its answer is read.
func (b boundTo) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := context.Cause(b.ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	// Not undone: an answer may be a watch that is read long after this returns. It ends with b.ctx, which is short-lived.
	context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })
	return b.next.RoundTrip(r.WithContext(ctx))
}

// hookClient is Helm's client, but repairs objects of all kinds, and stops waiting for a hook when a context ends: the watch beneath
// would go on trying until the hook's timeout, and keep the release from being put on record as failed.
type hookClient struct {
	*helmkube.Client
	ctx context.Context
}

// WatchUntilReady waits for a hook's Jobs and Pods to end.
func (h hookClient) WatchUntilReady(resources helmkube.ResourceList, timeout time.Duration) error {
	_, err := bounded(h.ctx, func() (struct{}, error) {
		return struct{}{}, h.Client.WatchUntilReady(resources, timeout)
	})
	return err
}

// Update makes changes by what is in the cluster, too, for all kinds: what somebody has changed in an object whose kind Helm does not know
// would stay as long as the release is the same.
func (h hookClient) Update(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return h.UpdateThreeWayMerge(original, target, force)
}

// getter is a genericclioptions.RESTClientGetter without a kubeconfig on disk.
type getter struct {
	config    *rest.Config
	mapper    meta.RESTMapper
	namespace string
}

// ToRESTConfig returns the configuration of clients.
func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient returns a client that keeps in memory what it discovers.
func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	d, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(d), nil
}

// ToRESTMapper returns the cluster's own mapper: it looks again for kinds that it does not know.
func (g getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader returns what Helm takes the default namespace from.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{
		Context: clientcmdapi.Context{Namespace: g.namespace},
	})
}
