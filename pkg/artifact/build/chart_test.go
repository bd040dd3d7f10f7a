// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// TestChartRun reads the chart with Helm.
func TestChartRun(t *testing.T) {
	moduleProxy(t)
	c := Chart{Module: Module{Path: "example.com/hello/v2", Version: "v2.0.1"}, Directory: "charts/hello"}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	var packed [2][]byte
	for i := range packed {
		job := newJob(t)
		if err := c.Run(t.Context(), job, nil); err != nil {
			t.Fatal(err)
		}
		var err error
		if packed[i], err = os.ReadFile(filepath.Join(job.Out, "hello-v2.0.1.tgz")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("two packs differ")
	}
	got, err := loader.LoadArchive(bytes.NewReader(packed[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got.Name() != "hello" || got.Metadata.Version != "v2.0.1" || len(got.Templates) != 1 || got.Values["a"] != "b" || len(got.Files) != 0 {
		t.Errorf("%+v", got)
	}

	for want, broken := range map[string]Chart{
		"charts/none":         {Module: c.Module, Directory: "charts/none"},
		"no such file or dir": {Module: c.Module, Directory: "c"},
		"hello/v2@v2.9.9":     {Module: Module{Path: c.Module.Path, Version: "v2.9.9"}, Directory: "c"},
	} {
		if err := broken.Run(t.Context(), newJob(t), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := (Chart{}).Validate(); err == nil {
		t.Error("an empty chart is valid")
	}
}
