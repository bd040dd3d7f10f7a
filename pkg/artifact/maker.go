// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
)

// Preference says which of a component's sources is taken when it has both.
type Preference string

const (
	// FromSource builds, and downloads what cannot be built.
	FromSource Preference = "source"
	// FromUpstream downloads what upstream publishes and builds the rest.
	FromUpstream Preference = "upstream"
)

// order is a recipe with the source that is taken.
type order struct {
	Builder int    `json:"builder"`
	Recipe  Recipe `json:"recipe"`
	// Go is the toolchain, for what it compiles.
	Go string `json:"go,omitempty"`
	// Locked says that the sums of all that is downloaded are given, and that the store remembers what that was.
	Locked bool `json:"locked,omitempty"`
}

// builderVersion is raised when the same recipe would give other files than before.
const builderVersion = 1

func newOrder(r Recipe, prefer Preference, goVersion string) order {
	o := order{Builder: builderVersion, Recipe: r}
	if r.Build != nil && (prefer != FromUpstream || len(r.Download) == 0) {
		o.Recipe.Download = nil
		if r.Build.Go != nil {
			o.Go = goVersion
		}
	} else {
		o.Recipe.Build = nil
	}
	return o
}

func (o order) String() string {
	return fmt.Sprintf("%s %s %s", o.Recipe.Component, o.Recipe.Version, o.Recipe.Arch)
}

// source says in one line where it comes from.
func (o order) source() string {
	switch b := o.Recipe.Build; {
	case b == nil:
		return o.Recipe.Download[0].URL
	case b.Go != nil:
		return "go:" + b.Go.Modules[0].String()
	case b.C != nil:
		return "go:" + b.C.Module.String()
	case b.Chart != nil:
		return "go:" + b.Chart.Module.String()
	case b.Tree != nil:
		return "go:" + b.Tree.Module.String()
	case b.Packages != nil:
		return "debian:" + b.Packages.Suite
	default:
		return "debian:" + b.Debian.Suite
	}
}

// mode is the permissions of what comes out.
func (o order) mode() fs.FileMode {
	if o.Recipe.Kind == KindBinary || o.Recipe.Kind == kindPart {
		return 0o755
	}
	return 0o644
}

// maker turns orders into files of the store.
type maker struct {
	store    *Store
	fetcher  fetch.Fetcher
	progress *progress
}

// cached says whether the store has what the order gives.
func (m *maker) cached(o order) (bool, error) {
	key, _, err := keyOf(o)
	if err != nil {
		return false, err
	}
	_, ok, err := m.store.lookup(key)
	return ok, err
}

// check reports all that stands in the way of the orders that are not in the store yet, before any is begun.
func (m *maker) check(ctx context.Context, orders []order) error {
	var tools []build.Tool
	var errs []error
	for _, o := range orders {
		ok, err := m.cached(o)
		if err != nil {
			return err
		}
		if ok || o.Recipe.Build == nil {
			continue
		}
		if o.Recipe.Build.native() && o.Recipe.Arch != runtime.GOARCH {
			errs = append(errs, fmt.Errorf("%s: it is built with the tools of its own architecture, and this machine is %s: make its part of the bundle on such a machine", o, runtime.GOARCH))
		}
		tools = append(tools, o.Recipe.Needs...)
	}
	return errors.Join(append(errs, build.CheckTools(ctx, tools))...)
}

// fulfil makes what is ordered unless it is there.
func (m *maker) fulfil(ctx context.Context, o order) (record, error) {
	event := Event{Component: o.Recipe.Component, Version: o.Recipe.Version, Arch: o.Recipe.Arch}
	return m.produce(ctx, event, o, o.mode(), func(ctx context.Context, ws workspace) error {
		if o.Recipe.Build == nil {
			return m.download(ctx, o, ws, event)
		}
		return runBuild(ctx, o.Recipe, build.Job{Arch: o.Recipe.Arch, Work: ws.work, Out: ws.out, Report: func(phase string, n, of int) {
			e := event
			e.Phase, e.N, e.M = Phase(phase), int64(n), int64(of)
			m.progress.send(e)
		}})
	})
}

// produce has the store keep what fill makes, and tells of it.
func (m *maker) produce(
	ctx context.Context, event Event, recipe any, mode fs.FileMode, fill func(context.Context, workspace) error,
) (record, error) {
	started := time.Now()
	done := event
	done.Phase = PhaseCached
	waiting := event
	waiting.Phase = PhaseWaiting
	r, err := m.store.produce(ctx, recipe, mode, func() { m.progress.send(waiting) }, func(ctx context.Context, ws workspace) error {
		done.Phase = PhaseDone
		return fill(ctx, ws)
	})
	if err != nil {
		return record{}, fmt.Errorf("%s %s %s: %w", event.Component, event.Version, event.Arch, err)
	}
	if done.Phase == PhaseDone {
		done.Elapsed = time.Since(started)
	}
	m.progress.send(done)
	return r, nil
}

func runBuild(ctx context.Context, r Recipe, job build.Job) error {
	switch b := r.Build; {
	case b.Go != nil:
		return b.Go.Run(ctx, job, r.GoSums)
	case b.C != nil:
		return b.C.Run(ctx, job, r.GoSums)
	case b.Chart != nil:
		return b.Chart.Run(ctx, job, r.GoSums)
	case b.Tree != nil:
		return b.Tree.Run(ctx, job, r.GoSums)
	case b.Packages != nil:
		return b.Packages.Run(ctx, job)
	default:
		return b.Debian.Run(ctx, job)
	}
}

// download fetches an order's files. They grow outside of the workspace, so that an interrupted download goes on next time.
func (m *maker) download(ctx context.Context, o order, ws workspace, event Event) error {
	for n, f := range o.Recipe.Download {
		dst := ws.part + "-" + strconv.Itoa(n)
		sum, err := m.fetcher.Fetch(ctx, f, dst, func(done, total int64) {
			e := event
			e.Phase, e.N, e.M = PhaseDownloading, done, total
			m.progress.send(e)
		})
		if err != nil {
			return err
		}
		info, err := os.Stat(dst)
		if err != nil {
			return err
		}
		*ws.fetched = append(*ws.fetched, LockedFile{URL: f.URL, Size: info.Size(), SHA256: sum})
		if len(f.Extract) > 0 {
			err = errors.Join(fetch.Extract(dst, ws.out, f.Extract), os.Remove(dst))
		} else {
			err = os.Rename(dst, filepath.Join(ws.out, f.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
