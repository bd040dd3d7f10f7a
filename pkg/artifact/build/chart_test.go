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
		"charts/none":                        {Module: c.Module, Directory: "charts/none"},
		"no Chart.yaml":                      {Module: c.Module, Directory: "c"},
		"no such file or dir":                {Module: c.Module, Directory: c.Directory, Add: map[string]string{"none": "crds"}},
		`"a: c" is there 0 times`:            {Module: c.Module, Directory: c.Directory, Edits: []Edit{{File: "values.yaml", From: "a: c", To: "a: d"}}},
		`edit of none: "a" is there 0 times`: {Module: c.Module, Directory: c.Directory, Edits: []Edit{{File: "none", From: "a", To: "b"}}},
		"hello/v2@v2.9.9":                    {Module: Module{Path: c.Module.Path, Version: "v2.9.9"}, Directory: "c"},
	} {
		if err := broken.Run(t.Context(), newJob(t), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, invalid := range []Chart{
		{},
		{Module: c.Module, Directory: c.Directory, Add: map[string]string{"../c": "crds"}},
		{Module: c.Module, Directory: c.Directory, Add: map[string]string{"c": "/crds"}},
		{Module: c.Module, Directory: c.Directory, Edits: []Edit{{File: "values.yaml", To: "b"}}},
	} {
		if err := invalid.Validate(); err == nil {
			t.Errorf("%+v is valid", invalid)
		}
	}
}

// TestChartAdds: directories of the module are in the chart under another name, and a text of its is another one.
func TestChartAdds(t *testing.T) {
	moduleProxy(t)
	c := Chart{
		Module: Module{Path: "example.com/hello/v2", Version: "v2.0.1"}, Directory: "charts/hello", Add: map[string]string{"c": "crds"},
		Edits: []Edit{{File: "Chart.yaml", From: "v2.0.1", To: "v2.0.2"}, {File: "values.yaml", From: "b", To: "c"}},
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	job := newJob(t)
	if err := c.Run(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	got, err := loader.Load(filepath.Join(job.Out, "hello-v2.0.2.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got.Raw {
		names = append(names, f.Name)
	}
	const want = "Chart.yaml crds/hello.c templates/x.yaml values.yaml"
	if strings.Join(names, " ") != want {
		t.Errorf("it has %s, want %s", names, want)
	}
	if text := string(got.Raw[len(got.Raw)-1].Data); text != "a: c\n" {
		t.Errorf("values are %q", text)
	}
}
