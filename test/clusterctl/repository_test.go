// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The core of Cluster API, as it is published.
const (
	coreModule = "sigs.k8s.io/cluster-api"
	coreImage  = "registry.k8s.io/cluster-api/cluster-api-controller:"
)

// writeRelease has our own command write a version of our providers, with its image.
func (l *environment) writeRelease(version string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "go", "run", "./hack/release", "-version", version, "-out", l.release)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	l.Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// configuration is clusterctl's, in the form of its file.
type configuration struct {
	Providers   []map[string]string `json:"providers"`
	CertManager map[string]string   `json:"cert-manager"`
}

// configure adds to clusterctl's configuration of our release what is not ours, from directories too.
func (l *environment) configure() {
	l.t.Helper()
	content, err := os.ReadFile(filepath.Join(l.release, "clusterctl.yaml"))
	l.Expect(err).NotTo(HaveOccurred())
	var c configuration
	l.Expect(yaml.Unmarshal(content, &c)).To(Succeed())
	core, certManager := l.others.Version("cluster-api"), l.others.Version("cert-manager")
	c.Providers = append(c.Providers, map[string]string{
		"name": "cluster-api", "type": "CoreProvider", "url": l.publish("cluster-api", core, map[string][]byte{
			"core-components.yaml": l.coreComponents(core), "metadata.yaml": l.coreMetadata(),
		}),
	})
	c.CertManager = map[string]string{
		"version": certManager,
		"url":     l.publish("cert-manager", certManager, map[string][]byte{"cert-manager.yaml": l.certManager(certManager)}),
	}
	content, err = yaml.Marshal(c)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(os.WriteFile(l.config(), content, 0o600)).To(Succeed())
}

// config is clusterctl's configuration file.
func (l *environment) config() string { return filepath.Join(l.dir, "clusterctl.yaml") }

// publish writes a version's files to where clusterctl reads them, and returns the URL of its components.
func (l *environment) publish(label, version string, files map[string][]byte) string {
	dir := filepath.Join(l.dir, "repository", label, version)
	l.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	components := ""
	for name, content := range files {
		l.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
		if name != "metadata.yaml" {
			components = name
		}
	}
	return "file://" + filepath.Join(dir, components)
}

// source is the directory of a module.
func (l *environment) source(module string) string {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = l.t.TempDir(), append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	l.Expect(os.WriteFile(filepath.Join(cmd.Dir, "go.mod"), []byte("module read\n"), 0o600)).To(Succeed())
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	l.Expect(json.Unmarshal(out, &found)).To(Succeed())
	l.Expect(err).NotTo(HaveOccurred(), found.Error)
	return found.Dir
}

func (l *environment) coreMetadata() []byte {
	content, err := os.ReadFile(filepath.Join(l.source(coreModule+"@"+l.others.Version("cluster-api")), "metadata.yaml"))
	l.Expect(err).NotTo(HaveOccurred())
	return content
}

// coreComponents are what the core's own release makes of its config/, with an image that is not pulled.
func (l *environment) coreComponents(version string) []byte {
	l.t.Helper()
	dir := filepath.Join(l.source(coreModule+"@"+version), "core", "config", "default")
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	l.Expect(err).NotTo(HaveOccurred())
	return l.join(all, func(d *appsv1.Deployment) {
		for i := range d.Spec.Template.Spec.Containers {
			container := &d.Spec.Template.Spec.Containers[i]
			container.Image, container.ImagePullPolicy = coreImage+version, corev1.PullIfNotPresent
		}
	})
}

// join writes objects as one file, with Deployments changed.
func (l *environment) join(all resmap.ResMap, change func(*appsv1.Deployment)) []byte {
	l.t.Helper()
	var documents []string
	for _, resource := range all.Resources() {
		content, err := resource.AsYAML()
		l.Expect(err).NotTo(HaveOccurred())
		if resource.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			l.Expect(yaml.Unmarshal(content, deployment)).To(Succeed())
			change(deployment)
			content, err = yaml.Marshal(deployment)
			l.Expect(err).NotTo(HaveOccurred())
		}
		documents = append(documents, string(content))
	}
	return []byte(strings.Join(documents, "---\n"))
}
