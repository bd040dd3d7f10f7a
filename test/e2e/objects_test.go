// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var variable = regexp.MustCompile(`\$\{([A-Z0-9_]+)\}`)

// template reads a file of templates/cluster and puts in values, as clusterctl does.
func (e *environment) template(name string, values map[string]string) []*unstructured.Unstructured {
	e.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "templates", "cluster", name))
	e.Expect(err).NotTo(HaveOccurred())
	text := variable.ReplaceAllStringFunc(string(content), func(found string) string {
		value, known := values[variable.FindStringSubmatch(found)[1]]
		e.Expect(known).To(BeTrue(), "%s: %s", name, found)
		return value
	})
	var all []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		e.Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		e.Expect(yaml.Unmarshal(document, &object.Object)).To(Succeed())
		all = append(all, object)
	}
}

// apply applies objects as kubectl apply --server-side does.
func (e *environment) apply(objects ...*unstructured.Unstructured) {
	e.t.Helper()
	for _, object := range objects {
		err := e.api.Apply(e.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("e2e"))
		e.Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	}
}

// inventory are the objects of all hosts.
func (e *environment) inventory() []*unstructured.Unstructured {
	key, err := os.ReadFile(e.pool.Hosts[0].KeyPath)
	e.Expect(err).NotTo(HaveOccurred())
	all := e.template("credentials.yaml", map[string]string{
		"NAMESPACE": namespace, "SSH_PRIVATE_KEY_BASE64": base64.StdEncoding.EncodeToString(key),
	})
	for i, host := range e.pool.Hosts {
		all = append(all, e.template("host.yaml", map[string]string{
			"NAMESPACE": namespace, "HOST_NAME": host.Name, "HOST_ADDRESS": host.Address, "HOST_ROLE": e.roles[i], "SSH_USER": host.User,
			"HOST_KEY": string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(host.HostKey))),
		})...)
	}
	return all
}

// cluster are the objects of a cluster with one worker.
func (e *environment) cluster(name string) []*unstructured.Unstructured {
	return e.template("cluster.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": name, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": strconv.Itoa(1), "WORKER_MACHINE_COUNT": strconv.Itoa(1),
	})
}

// labelled adds labels to objects, and to what is made from those that are templates.
func labelled(objects []*unstructured.Unstructured, labels map[string]string) []*unstructured.Unstructured {
	for _, object := range objects {
		with := maps.Clone(labels)
		maps.Copy(with, object.GetLabels())
		object.SetLabels(with)
		at := []string{"spec", "template", "metadata", "labels"}
		if object.GetKind() == "KubexmControlPlane" {
			at[1] = "machineTemplate"
		}
		if _, isTemplate, _ := unstructured.NestedMap(object.Object, at[:2]...); !isTemplate {
			continue
		}
		for key, value := range labels {
			_ = unstructured.SetNestedField(object.Object, value, append(at, key)...) // of maps all the way
		}
	}
	return objects
}
