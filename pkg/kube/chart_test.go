// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// files are a chart's, by their path.
type files map[string]string

// configMapChart makes one ConfigMap out of the value "word".
var configMapChart = files{
	"Chart.yaml":        "apiVersion: v2\nname: words\nversion: 1.0.0\n",
	"values.yaml":       "word: default\nnested: {a: 1}\n",
	"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word | quote }}}\n",
}

// with returns the chart with some files changed.
func (f files) with(changed files) files {
	all := maps.Clone(f)
	maps.Copy(all, changed)
	return all
}

// testRelease packs a chart as a release of the test's own namespace.
func testRelease(t *testing.T, f files, values []byte) step.HelmRelease {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := archive.WriteHeader(&tar.Header{Name: "words/" + name, Mode: 0o644, Size: int64(len(f[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(f[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return step.HelmRelease{Name: "r", Namespace: "test", Chart: packed.Bytes(), Values: values}
}
