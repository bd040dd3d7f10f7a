// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"maps"
	"slices"
)

// Images are the references of a release's images by their name in the catalogue (kube-apiserver, kube-controller-manager,
// kube-scheduler, kube-proxy, etcd, coredns, pause, flannel, flannel-cni-plugin, haproxy, nginx, agnhost).
type Images map[string]string

// Refs are the references of the named images, in that order. A name that is not there is an *UnknownNameError.
func (i Images) Refs(names ...string) ([]string, error) {
	refs := make([]string, 0, len(names))
	for _, name := range names {
		ref, ok := i[name]
		if !ok {
			return nil, &UnknownNameError{What: "image", Name: name, Known: slices.Sorted(maps.Keys(i))}
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// Images are the images of a Kubernetes version's release. The error is an *UnknownVersionError.
func (c *Catalogue) Images(kubernetes string) (Images, error) {
	release, err := c.Release(kubernetes)
	if err != nil {
		return nil, err
	}
	recipes, err := c.imageRecipes(release)
	if err != nil {
		return nil, err
	}
	images := Images{}
	for _, r := range recipes {
		images[r.Name] = r.Ref
	}
	return images, nil
}

// Images are the references of the images in the bundle for an architecture.
func (b *Bundle) Images(arch string) Images {
	images := Images{}
	for _, i := range b.manifest.Items {
		if i.Kind == KindImage && i.Arch == arch {
			images[i.Name] = i.Ref
		}
	}
	return images
}

// image is the item of a reference.
func (b *Bundle) image(arch, ref string) (Item, error) {
	var known []string
	for _, i := range b.manifest.Items {
		if i.Kind != KindImage {
			continue
		}
		if i.Ref == ref && i.Arch == arch {
			return i, nil
		}
		known = append(known, i.Ref+" "+i.Arch)
	}
	return Item{}, fmt.Errorf("bundle %s: %w", b.dir, &UnknownNameError{What: "image", Name: ref + " " + arch, Known: known})
}
