// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hello is a module with a program, a C file and a chart.
var hello = map[string]string{
	"go.mod": "module example.com/hello/v2\n\ngo 1.24\n\nrequire example.com/greeting v1.0.0\n\nreplace example.com/greeting => ./greeting\n",
	"main.go": `package main

import (
	"example.com/greeting"
	_ "example.com/hello/v2/cloud"
)

var version string

func main() { println(greeting.Text, version) }
`,
	"cloud/cloud.go":                "package cloud\n\nimport _ \"example.com/vendor\"\n", // which nobody publishes
	"c/hello.c":                     "#include <stdio.h>\nint main(void) { printf(\"hello %s\\n\", VERSION); return 0; }\n",
	"charts/hello/Chart.yaml":       "name: hello\nversion: v2.0.1\n",
	"charts/hello/values.yaml":      "a: b\n",
	"charts/hello/templates/x.yaml": "kind: X\n",
	"charts/hello/tests/t.yaml":     "kind: Test\n",
}

// moduleProxy makes the go command find modules in a directory, and keep them in another, for one test. Checksums are
// not asked for: those of the catalogue are what is tested.
func moduleProxy(t *testing.T) {
	t.Helper()
	proxy, cache := t.TempDir(), t.TempDir()
	publish(t, proxy, "example.com/hello/v2", "v2.0.1", hello)
	publish(t, proxy, "example.com/greeting", "v1.0.0", map[string]string{
		"go.mod": "module example.com/greeting\n", "greeting.go": "package greeting\n\nconst Text = \"hello\"\n",
	})
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", cache)
	t.Cleanup(func() { // the go command makes it read-only
		_ = filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return err
		})
	})
}

func publish(t *testing.T, proxy, path, version string, files map[string]string) {
	t.Helper()
	var archive bytes.Buffer
	zw := zip.NewWriter(&archive)
	for name, content := range files {
		w, err := zw.Create(path + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o644),
		os.WriteFile(filepath.Join(dir, version+".mod"), []byte(files["go.mod"]), 0o644),
		os.WriteFile(filepath.Join(dir, version+".zip"), archive.Bytes(), 0o644),
	); err != nil {
		t.Fatal(err)
	}
}

func newJob(t *testing.T) Job {
	t.Helper()
	return Job{Arch: runtime.GOARCH, Work: t.TempDir(), Out: t.TempDir()}
}

func helloProgram() Go {
	return Go{
		Modules:           []Module{{Path: "example.com/hello/v2", Version: "v2.0.1"}},
		LocalReplacements: "v1.0.0",
		LeaveOut:          []string{"example.com/hello/v2/cloud"},
		Programs:          map[string]string{"greet": "example.com/hello/v2"},
		Variables:         map[string]string{"main.version": "v2.0.1"},
	}
}

func TestGoRun(t *testing.T) {
	moduleProxy(t)
	var programs [2][]byte
	for i := range programs {
		job := newJob(t)
		var phases []string
		last := [2]int{}
		job.Report = func(phase string, n, m int) {
			if !slices.Contains(phases, phase) {
				phases = append(phases, phase)
			}
			last = [2]int{n, m}
		}
		if err := helloProgram().Run(t.Context(), job, nil); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(job.Out, "greet")).CombinedOutput()
		if err != nil || string(out) != "hello v2.0.1\n" {
			t.Errorf("%q, %v", out, err)
		}
		if entries, err := os.ReadDir(job.Out); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
		if phases[0] != "fetching modules" || (last[1] > 0 && last[0] > last[1]) {
			t.Errorf("phases %v, at last %v", phases, last)
		}
		if programs[i], err = os.ReadFile(filepath.Join(job.Out, "greet")); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(programs[i], []byte(job.Work)) || bytes.Contains(programs[i], []byte(os.Getenv("GOMODCACHE"))) {
			t.Error("a path of this machine is in the program")
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds differ")
	}
}

func TestGoRunRefuses(t *testing.T) {
	moduleProxy(t)
	for name, tc := range map[string]struct {
		change func(*Go)
		sums   []string
		want   string
	}{
		"another sum": {
			func(*Go) {}, []string{"example.com/hello/v2 v2.0.1 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}, "the catalogue pins h1:AAAA",
		},
		"no such version": {
			func(g *Go) { g.Modules[0].Version = "v2.9.9" }, nil, "module example.com/hello/v2@v2.9.9",
		},
		"no such package": {
			func(g *Go) { g.Programs = map[string]string{"x": "example.com/hello/v2/none"} }, nil, "example.com/hello/v2/none",
		},
		"nothing left out": {
			func(g *Go) { g.LeaveOut = nil }, nil, "example.com/vendor",
		},
		"nothing to leave out": {
			func(g *Go) { g.LeaveOut = []string{"example.com/hello/v2/none"} }, nil, "example.com/hello/v2/none",
		},
		"no such dependency": {
			func(g *Go) {
				g.LocalReplacements = ""
				g.Replace = []Module{{Path: "example.com/greeting", Version: "v1.7.0"}}
			}, nil, "example.com/greeting@v1.7.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := helloProgram()
			tc.change(&g)
			job := newJob(t)
			err := g.Run(t.Context(), job, tc.sums)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGoRunCancelled(t *testing.T) {
	moduleProxy(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := helloProgram().Run(ctx, newJob(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestProgramName(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubelet":  "kubelet",
		"go.etcd.io/etcd/server/v3":      "server",
		"example.com/tool/v10":           "tool",
		"example.com/v1":                 "v1",
		"github.com/opencontainers/runc": "runc",
	} {
		if got := programName(pkg); got != want {
			t.Errorf("%s: %s, want %s", pkg, got, want)
		}
	}
}

func TestGoFlags(t *testing.T) {
	g := Go{Static: true, Variables: map[string]string{"b.X": "2", "a.X": ""}}
	if got, want := g.ldflags(), "-s -w -buildid= -X a.X= -X b.X=2 -extldflags -static"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if env := g.env(Job{Arch: "arm64"}); !slices.Contains(env, "GOARCH=arm64") || !slices.Contains(env, "CGO_ENABLED=0") {
		t.Errorf("env: %v", env)
	}
}

func TestGoValidate(t *testing.T) {
	modules := []Module{{Path: "example.com/x", Version: "v1.0.0"}}
	for want, g := range map[string]Go{
		"modules and programs":           {},
		"writes both to the same file":   {Modules: modules, Programs: map[string]string{"a": "example.com/x/tool", "b": "example.com/y/tool"}},
		"its name is the file of":        {Modules: modules, Programs: map[string]string{"a": "example.com/x/b", "b": "example.com/x/c"}},
		"is in none of the modules":      {Modules: modules, Programs: map[string]string{"a": "example.com/a"}, LeaveOut: []string{"example.com/y/z"}},
		"neither space nor quote may be": {Modules: modules, Programs: map[string]string{"a": "example.com/a"}, Variables: map[string]string{"main.x": "a b"}},
	} {
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := helloProgram().Validate(); err != nil {
		t.Error(err)
	}
}
