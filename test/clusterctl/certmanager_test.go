// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

const certManagerModule = "github.com/cert-manager/cert-manager"

// certManager is what cert-manager publishes as cert-manager.yaml: its chart with its definitions, rendered.
func (l *environment) certManager(version string) []byte {
	l.t.Helper()
	deploy := filepath.Join(l.source(certManagerModule+"@"+version), "deploy")
	chart := filepath.Join(deploy, "charts", "cert-manager")
	files := []*loader.BufferedFile{
		l.buffered(filepath.Join(chart, "Chart.template.yaml"), "Chart.yaml"),
		l.buffered(filepath.Join(chart, "values.yaml"), "values.yaml"),
	}
	for _, pattern := range []string{filepath.Join(chart, "templates", "*"), filepath.Join(deploy, "crds", "*.yaml")} {
		found, err := filepath.Glob(pattern)
		l.Expect(err).NotTo(HaveOccurred())
		for _, path := range found {
			files = append(files, l.buffered(path, "templates/"+filepath.Base(path)))
		}
	}
	loaded, err := loader.LoadFiles(files)
	l.Expect(err).NotTo(HaveOccurred())
	loaded.Metadata.Version, loaded.Metadata.AppVersion = version, version

	// Images of ours have no user of their own.
	user := map[string]any{"securityContext": map[string]any{"runAsUser": 1000}}
	values, err := chartutil.ToRenderValues(loaded, map[string]any{
		"securityContext": user["securityContext"], "cainjector": user, "webhook": user,
		"startupapicheck": map[string]any{"enabled": false}, // a Job with one more image
	}, chartutil.ReleaseOptions{Name: "cert-manager", Namespace: "cert-manager", IsInstall: true}, chartutil.DefaultCapabilities)
	l.Expect(err).NotTo(HaveOccurred())
	rendered, err := engine.Render(loaded, values)
	l.Expect(err).NotTo(HaveOccurred())

	documents := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: cert-manager}\n"}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(rendered[name]) != "" {
			documents = append(documents, rendered[name])
		}
	}
	return []byte(strings.Join(documents, "\n---\n"))
}

func (l *environment) buffered(path, name string) *loader.BufferedFile {
	content, err := os.ReadFile(path)
	l.Expect(err).NotTo(HaveOccurred())
	return &loader.BufferedFile{Name: name, Data: content}
}
