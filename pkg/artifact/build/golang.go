// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Go is a set of programs that are compiled from Go modules, stripped and without paths of this machine.
type Go struct {
	// Modules are required at exactly these versions.
	Modules []Module `json:"modules"`
	// LocalReplacements is the version that takes the place of replacements by a local directory in the modules'
	// own go.mod (k8s.io/api => ./staging/src/k8s.io/api). Empty: the versions that they require.
	LocalReplacements string `json:"localReplacements,omitempty"`
	// Replace forces versions of dependencies.
	Replace []Module `json:"replace,omitempty"`
	// LeaveOut are packages of the modules that are compiled as if they were empty. They must be imported for their effect
	// only, as plugins are.
	LeaveOut []string `json:"leaveOut,omitempty"`
	// Own are files of this project that are compiled with the modules: NAME/main.go is of the package kubexm.build/NAME.
	Own []string `json:"own,omitempty"`
	// Sources are what is in them.
	Sources map[string]string `json:"sources,omitempty"`
	// Programs are the main packages, by the name that the program gets.
	Programs map[string]string `json:"programs"`
	// Cgo needs a C compiler, and so builds for this machine's own architecture only.
	Cgo bool `json:"cgo,omitempty"`
	// Static links C libraries into the program.
	Static bool     `json:"static,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	// Variables are set at link time (-X).
	Variables map[string]string `json:"variables,omitempty"`
}

// Run compiles the programs into job.Out. sums are lines of go.sum that the modules must match.
func (g Go) Run(ctx context.Context, job Job, sums []string) error {
	if err := g.prepare(ctx, job, sums); err != nil {
		return err
	}
	packages := slices.Sorted(maps.Values(g.Programs))
	total, err := g.countPackages(ctx, job, packages)
	if err != nil {
		return err
	}

	// What debuggers read would be made (a tenth of the compiler's time) and then stripped.
	args := []string{
		"build", "-v", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags",
		g.ldflags(), "-tags", strings.Join(g.Tags, ","), "-o", job.Out + string(filepath.Separator),
	}
	compiled := 0
	err = command{dir: job.Work, env: g.env(job), onLine: func(line string) {
		if !strings.HasPrefix(line, "go: ") && compiled < total { // with -v each package is a line
			compiled++
			job.report("compiling", compiled, total)
		}
	}}.run(ctx, "go", append(args, packages...)...)
	if err != nil {
		return err
	}
	for name, pkg := range g.Programs {
		if err := os.Rename(filepath.Join(job.Out, programName(pkg)), filepath.Join(job.Out, name)); err != nil {
			return err
		}
	}
	return nil
}

// prepare writes the go.mod and go.sum of the build.
func (g Go) prepare(ctx context.Context, job Job, sums []string) error {
	if err := os.WriteFile(filepath.Join(job.Work, "go.mod"), []byte("module kubexm.build\n"), 0o644); err != nil {
		return err
	}
	upstream := make([]*modfile.File, 0, len(g.Modules))
	sumFiles := make([][]byte, 0, len(g.Modules)+1)
	sumFiles = append(sumFiles, []byte(strings.Join(sums, "\n")))
	var trimmed []Module // their versions are directories
	for i, m := range g.Modules {
		job.report("fetching modules", i, len(g.Modules))
		src, err := download(ctx, job.Work, m, sums)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(src.GoMod)
		if err != nil {
			return err
		}
		f, err := modfile.Parse(src.GoMod, data, nil)
		if err != nil {
			return fmt.Errorf("module %s: %w", m, err)
		}
		upstream = append(upstream, f)
		if dir, err := leaveOut(job.Work, m, src.Dir, g.LeaveOut); err != nil {
			return err
		} else if dir != "" {
			trimmed = append(trimmed, Module{Path: m.Path, Version: dir})
		}
		own, err := os.ReadFile(filepath.Join(src.Dir, "go.sum"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		sumFiles = append(sumFiles, own)
	}
	for name, text := range g.Sources {
		path := filepath.Join(job.Work, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	data, err := moduleFile(g.Modules, upstream, g.LocalReplacements, append(slices.Clone(g.Replace), trimmed...))
	if err != nil {
		return fmt.Errorf("go.mod for %v: %w", g.Modules, err)
	}
	if err := os.WriteFile(filepath.Join(job.Work, "go.sum"), sumFile(sumFiles...), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(job.Work, "go.mod"), data, 0o644)
}

// countPackages says how many packages the programs consist of. It also brings all modules here.
func (g Go) countPackages(ctx context.Context, job Job, packages []string) (int, error) {
	fetched := 0
	var list bytes.Buffer
	args := append([]string{"list", "-deps", "-tags", strings.Join(g.Tags, ",")}, packages...)
	err := command{dir: job.Work, env: g.env(job), stdout: &list, onLine: func(line string) {
		if strings.HasPrefix(line, "go: downloading ") {
			fetched++
			job.report("fetching modules", fetched, 0)
		}
	}}.run(ctx, "go", args...)
	if err != nil {
		return 0, err
	}
	return countLines(&list)
}

func (g Go) env(job Job) []string {
	cgo := "CGO_ENABLED=0"
	if g.Cgo {
		cgo = "CGO_ENABLED=1"
	}
	return goEnv("GOOS=linux", "GOARCH="+job.Arch, cgo)
}

func (g Go) ldflags() string {
	// The build id is derived from the paths and flags of the linker's inputs and serves the build cache only.
	flags := []string{"-s", "-w", "-buildid="}
	for _, name := range slices.Sorted(maps.Keys(g.Variables)) {
		flags = append(flags, "-X", name+"="+g.Variables[name])
	}
	if g.Static {
		flags = append(flags, "-extldflags", "-static")
	}
	return strings.Join(flags, " ")
}

var (
	majorSuffix  = regexp.MustCompile("^v[2-9][0-9]*$|^v1[0-9]+$")
	linkVariable = regexp.MustCompile("^[^\\s'\"]+$")
)

// programName is the name under which the go command writes the program of a main package.
func programName(pkg string) string {
	if base := path.Base(pkg); !majorSuffix.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}

// Validate reports what cannot be built.
func (g Go) Validate() error {
	if len(g.Modules) == 0 || len(g.Programs) == 0 {
		return errors.New("modules and programs must not be empty")
	}
	for _, pkg := range g.LeaveOut {
		if !slices.ContainsFunc(g.Modules, func(m Module) bool { return strings.HasPrefix(pkg, m.Path+"/") }) {
			return fmt.Errorf("package %s, which is to be left out, is in none of the modules", pkg)
		}
	}
	for name := range g.Sources {
		if !filepath.IsLocal(filepath.FromSlash(name)) || path.Dir(name) == "." {
			return fmt.Errorf("own file %q: its path must be NAME/FILE", name)
		}
	}
	written := map[string]string{}
	for name, pkg := range g.Programs {
		if other, twice := written[programName(pkg)]; twice {
			return fmt.Errorf("programs %s and %s: the go command writes both to the same file", name, other)
		}
		written[programName(pkg)] = name
	}
	for name, pkg := range g.Programs {
		// A rename must not hit a program that is yet to be renamed.
		if other, taken := written[name]; taken && g.Programs[other] != pkg {
			return fmt.Errorf("program %s: its name is the file of %s", name, other)
		}
	}
	for name, value := range g.Variables {
		if !linkVariable.MatchString(name + "=" + value) {
			return fmt.Errorf("variable %s: neither space nor quote may be in %q", name, value)
		}
	}
	return nil
}

// GoVersion is the version of the Go toolchain in PATH.
func GoVersion(ctx context.Context) (string, error) {
	if err := CheckTools(ctx, []Tool{{Command: "go", Package: "golang"}}); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := (command{env: goEnv(), stdout: &out}).run(ctx, "go", "env", "GOVERSION"); err != nil {
		return "", err
	}
	return strings.TrimSpace(out.String()), nil
}
