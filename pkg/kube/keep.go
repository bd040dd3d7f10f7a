// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
)

// KeepsNewerAnnotation on a workload in a manifest keeps the image that each container has if it is a newer version of the same. While a
// cluster is upgraded, its hosts have manifests of two versions: without this, each of them would apply its own in turn.
const KeepsNewerAnnotation = "kubexm.cluster.x-k8s.io/keeps-newer-image"

// keepNewer gives the containers of a workload that is to be applied the images of the live one that are newer.
func keepNewer(o, live *unstructured.Unstructured) {
	if _, keeps := o.GetAnnotations()[KeepsNewerAnnotation]; !keeps || live == nil {
		return
	}
	// What has no containers has nothing to keep.
	wanted, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	has, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	images := map[any]any{}
	for _, c := range has {
		if c, ok := c.(map[string]any); ok {
			images[c["name"]] = c["image"]
		}
	}
	kept := false
	for _, c := range wanted {
		c, ok := c.(map[string]any)
		if !ok {
			continue
		}
		is, _ := images[c["name"]].(string)
		if to, _ := c["image"].(string); isNewer(is, to) {
			c["image"], kept = is, true
		}
	}
	if kept {
		_ = unstructured.SetNestedSlice(o.Object, wanted, "spec", "template", "spec", "containers") // where it was read
	}
}

// isNewer reports whether an image is a newer version of another one, by their tags.
func isNewer(image, than string) bool {
	repository, tag := splitImage(image)
	other, otherTag := splitImage(than)
	if repository != other {
		return false
	}
	a, err := version.ParseSemantic(tag)
	if err != nil {
		return false
	}
	b, err := version.ParseSemantic(otherTag)
	return err == nil && b.LessThan(a)
}

// splitImage returns an image's name and its tag; a port is part of the name.
func splitImage(image string) (name, tag string) {
	name, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		return name[:at], name[at+1:]
	}
	return name, ""
}
