// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// WaitFor changes nothing: it waits until something holds on its host that comes by itself, such as that what was started answers. The
// engine asks again and again, until the step's timeout. It is the only part of its step.
type WaitFor struct {
	// Title is what is waited for, as a person would say it: "kube-apiserver is ready".
	Title string `json:"title"`
	// While, if not "", is a path: nothing is waited for while it does not exist.
	While string `json:"while,omitempty"`
	// Check is a command that only looks, as host.CommandQuery is. It exits with 0 when what is waited for is there, with NotAnyMore
	// when it will not come, and with anything else while it may. What it prints says why, and must not be secret.
	Check []string `json:"check"`
}

// NotAnyMore is the exit code by which a WaitFor's Check says that what is waited for will not come (EX_UNAVAILABLE of sysexits.h).
const NotAnyMore = 69

// Waits reports whether s does nothing but wait for its host: that it is not known whether it is so is one more reason to wait.
func Waits(s Step) bool {
	switch s := s.(type) {
	case WaitFor:
		return true
	case Sequence:
		return len(s.Parts) == 1 && Waits(s.Parts[0])
	}
	return false
}

// Meta names the kind.
func (w WaitFor) Meta() Meta { return Meta{Name: "wait-for"} }

// Observe asks.
func (w WaitFor) Observe() host.Query {
	q := host.Query{Commands: []host.CommandQuery{Done{Check: w.Check}.check()}}
	if w.While != "" {
		q.Paths = []host.PathQuery{{Path: w.While}}
	}
	return q
}

// Precheck differs while it is not there.
func (w WaitFor) Precheck(v View) (Diff, error) {
	if w.While != "" && !v.Facts.Paths[w.While].Exists {
		return nil, nil
	}
	why, err := Done{Check: w.Check}.missing(v)
	if why == "" {
		return nil, err
	}
	return Diff{{w.Title, why, "waited for"}}, nil
}

// Effect is none. The error is *NotYet while what is waited for may come.
func (w WaitFor) Effect(v View) (Effect, error) {
	r, err := answerTo(v, Done{Check: w.Check}.check())
	switch {
	case err != nil:
		return Effect{}, &NotYet{Reason: w.Title + ": " + err.Error()}
	case r.ExitCode == NotAnyMore:
		return Effect{}, fmt.Errorf("%s: not so, and it will not be: %s", w.Title, cmp.Or(said(r), "the check does not say why"))
	}
	return Effect{}, &NotYet{Reason: w.Title + ": " + cmp.Or(said(r), "not ready yet")}
}

// Run returns what Effect does.
func (w WaitFor) Run(_ context.Context, rt *Runtime) error {
	_, err := w.Effect(rt.View)
	return err
}

// Rollback does nothing.
func (w WaitFor) Rollback(context.Context, *Runtime) error { return nil }
