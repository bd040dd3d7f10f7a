// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// addonLabel is on releases that were installed as addons, and on the Secrets that Helm keeps them in.
const addonLabel = "kubexm.cluster.x-k8s.io/addon"

// AddonsBeside are the Helm releases, as namespace/name, that were installed as addons and are not among those to keep.
func (c *Cluster) AddonsBeside(ctx context.Context, keep []string) ([]string, error) {
	found, err := c.addonsBeside(ctx, keep)
	var names []string
	for _, d := range found {
		names = append(names, d.namespace+"/"+d.name)
	}
	return names, err
}

func (c *Cluster) addonsBeside(ctx context.Context, keep []string) ([]*desired, error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(c.config))
	if err != nil {
		return nil, c.wrap(err)
	}
	// A Secret for each revision, and their contents are large.
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).
		List(ctx, metav1.ListOptions{LabelSelector: "owner=helm," + addonLabel})
	if err != nil {
		return nil, c.fail(err, "listing Helm releases of addons")
	}
	var found []*desired
	seen := map[string]bool{}
	for _, s := range list.Items {
		d := &desired{name: s.Labels["name"], namespace: s.Namespace}
		if key := d.namespace + "/" + d.name; !seen[key] && !slices.Contains(keep, key) {
			seen[key] = true
			found = append(found, d)
		}
	}
	return found, nil
}

// UninstallAddons uninstalls the Helm releases that were installed as addons and are not among those to keep. What an earlier attempt has
// left unfinished is gone on with.
func (c *Cluster) UninstallAddons(ctx context.Context, keep []string) error {
	found, err := c.addonsBeside(ctx, keep)
	if err != nil {
		return err
	}
	var failures []error
	for _, d := range found {
		err := c.alone(ctx, d, func(ctx context.Context, _ string) error {
			config, err := c.helm(ctx, d.namespace)
			if err != nil {
				return err
			}
			is, err := d.settle(ctx, config)
			if err != nil || is == nil {
				return err
			}
			return d.uninstall(ctx, config)
		})
		if err != nil {
			failures = append(failures, c.fail(err, "uninstalling %s", d))
		}
	}
	return errors.Join(failures...)
}

// uninstall removes the release's objects, and then its record. It must be alone.
func (d *desired) uninstall(ctx context.Context, config *action.Configuration) error {
	uninstall := action.NewUninstall(config)
	uninstall.Timeout = timeLeft(ctx)
	_, err := run(ctx, func() (*release.UninstallReleaseResponse, error) { return uninstall.Run(d.name) })
	return err
}
