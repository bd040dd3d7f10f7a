// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is what every player of an infrastructure provider is made of: kinds that are installed while everything else already
// runs, and controllers that run beside the test as a user who may do anything in the management cluster.
package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

// Provider has its kinds installed, and controllers that run or not.
type Provider struct {
	// Client reads and writes the management cluster, the provider's kinds too, without a cache.
	Client client.Client
	// Manager has the controllers. It is added to before Run.
	Manager ctrl.Manager

	stop  context.CancelFunc
	ended chan error
}

// Install installs the kinds, and returns when they are served.
func Install(
	ctx context.Context, at *rest.Config, definitions []*apiextensionsv1.CustomResourceDefinition, addToScheme func(*runtime.Scheme) error,
) (*Provider, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	direct, err := client.New(at, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := install(ctx, direct, definitions); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(at, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// A process may play more than once.
		Controller: config.Controller{SkipNameValidation: new(true)},
		// What was just written is read.
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return direct, nil },
	})
	return &Provider{Client: direct, Manager: manager}, err
}

// Run runs the controllers until Stop.
func (p *Provider) Run(ctx context.Context) {
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.Manager.Start(ctx) }()
}

// Stop ends the controllers, and returns when they have ended.
func (p *Provider) Stop() error {
	p.stop()
	return <-p.ended
}

// Definitions are the CustomResourceDefinitions of a List in YAML.
func Definitions(content []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all struct {
		metav1.TypeMeta `json:",inline"`
		Items           []*apiextensionsv1.CustomResourceDefinition `json:"items"`
	}
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	return all.Items, nil
}

func install(ctx context.Context, c client.Client, all []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range all {
		if err := c.Create(ctx, definition); err != nil {
			return err
		}
	}
	for _, definition := range all {
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition)
			return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), err
		}); err != nil {
			return fmt.Errorf("%s is not served: %w", definition.Name, err)
		}
	}
	return nil
}

// Workload is a client of the Cluster's own API, by the Secret that Cluster API's contract has for it. That there is none yet is an error.
func (p *Provider) Workload(ctx context.Context, cluster *clusterv1.Cluster) (client.Client, error) {
	raw, err := kubeconfig.FromSecret(ctx, p.Client, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return nil, err
	}
	at, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, err
	}
	return client.New(at, client.Options{})
}

// OfCluster are a Cluster's objects of a kind, which is that of the list.
func (p *Provider) OfCluster(kind client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []ctrl.Request {
		all, isList := kind.DeepCopyObject().(client.ObjectList)
		if !isList {
			return nil
		}
		var requests []ctrl.Request
		err := p.Client.List(ctx, all, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{
			clusterv1.ClusterNameLabel: cluster.GetName(),
		})
		if err == nil {
			err = meta.EachListItem(all, func(item runtime.Object) error {
				object, err := meta.Accessor(item)
				if err == nil {
					requests = append(requests, ctrl.Request{
						NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()},
					})
				}
				return err
			})
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the objects of a Cluster", "Cluster", cluster.GetName())
		}
		return requests
	}
}
