// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"path/filepath"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// elsewhere are the kinds of components whose part something else has here: the plane installs definitions before it
// starts, no Pod runs, and this test is its own certificate authority.
var elsewhere = map[string]bool{
	"CustomResourceDefinition": true, "Deployment": true, "Service": true, "Certificate": true, "Issuer": true,
}

// components are what config/ has for a provider. Its webhooks are asked where its manager will serve them, and authority
// vouches for that.
func (e *environment) components(p *provider, authority []byte) []*unstructured.Unstructured {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "config", p.directory))
	e.Expect(err).NotTo(HaveOccurred())
	var all []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.Map()
		e.Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{Object: content}
		if elsewhere[object.GetKind()] {
			continue
		}
		e.redirect(object, p.webhooks, authority)
		all = append(all, object)
	}
	return all
}

// redirect turns the Services of webhooks into addresses.
func (e *environment) redirect(object *unstructured.Unstructured, port int, authority []byte) {
	hooks, found, err := unstructured.NestedSlice(object.Object, "webhooks")
	e.Expect(err).NotTo(HaveOccurred())
	if !found {
		return
	}
	for _, hook := range hooks {
		path, found, err := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(found).To(BeTrue(), "%s %s", object.GetKind(), object.GetName())
		hook.(map[string]any)["clientConfig"] = map[string]any{
			"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": base64.StdEncoding.EncodeToString(authority),
		}
	}
	e.Expect(unstructured.SetNestedSlice(object.Object, hooks, "webhooks")).To(Succeed())
}
