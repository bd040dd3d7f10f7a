// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// act is the Run of every Actor: stage what is missing, then change, look and journal in one exchange.
func act(ctx context.Context, rt *Runtime, a Actor) error {
	e, err := a.Effect(rt.View)
	if err != nil {
		return err
	}
	if len(e.Blobs) > 0 {
		if err := rt.Session.Stage(ctx, blobs(ctx, rt.Artifacts, e)); err != nil {
			return err
		}
	}
	hostAct := rt.act(a, e)
	hostAct.Verify.Merge(rt.Look)
	if in := e.Stdin; in != nil {
		hostAct.Stdin = func() (io.ReadCloser, error) { return rt.Artifacts.Open(ctx, *in) }
		hostAct.Progress = func(sent int64) { rt.Report(sent, in.Size) }
	}
	seen, err := rt.Session.Do(ctx, hostAct)
	if err != nil {
		return err
	}
	rt.Seen = seen
	return nil
}

func blobs(ctx context.Context, from Artifacts, e Effect) []host.Blob {
	blobs := make([]host.Blob, len(e.Blobs))
	for i, b := range e.Blobs {
		blobs[i] = host.Blob{Digest: b.Digest, Size: b.Size, Name: b.Path, Open: func() (io.ReadCloser, error) { return from.Open(ctx, b) }}
	}
	return blobs
}

// Blobs is the content that s would have staged if it ran now, none where that is not known yet. ctx bounds the reading of it.
func Blobs(ctx context.Context, from Artifacts, v View, s Step) []host.Blob {
	a, ok := s.(Actor)
	if !ok {
		return nil
	}
	e, err := a.Effect(v)
	if err != nil {
		return nil
	}
	return blobs(ctx, from, e)
}

// act is what the host is asked to do of a's effect.
func (rt *Runtime) act(a Actor, e Effect) host.Act {
	return host.Act{Node: rt.Node, Task: rt.Task, Digest: rt.Digest, Changes: e.Changes, Verify: a.Observe(), Timeout: rt.Timeout}
}

// Sharing names the kind of exchange that s may share with its neighbours of the same kind, "" if it needs one of its own. Those
// that share one are decided from what was seen before the first of them, so none may depend on what another does: what is written
// whole does not, nor do units that watch no file.
func Sharing(s Step) string {
	switch s := s.(type) {
	case Sequence:
		if s.Done != nil || len(s.Parts) == 0 {
			return ""
		}
		kind := Sharing(s.Parts[0])
		for _, p := range s.Parts[1:] {
			if Sharing(p) != kind {
				return ""
			}
		}
		return kind
	case File:
		if s.From == nil && s.Authority == "" {
			return "settings"
		}
	case Directory, Block, Sysctl, Module:
		return "settings"
	case Service:
		if len(s.Watches) == 0 && !s.Reload {
			return "units"
		}
	}
	return ""
}

// Shared is the act of a step that shares its exchange with others. done is called when it is made.
func Shared(rt *Runtime, s Step, done func()) (host.Act, error) {
	a, ok := s.(Actor)
	if !ok || Sharing(s) == "" {
		return host.Act{}, fmt.Errorf("a step of kind %s needs an exchange of its own", KindOf(s))
	}
	e, err := a.Effect(rt.View)
	if err != nil {
		return host.Act{}, err
	}
	act := rt.act(a, e)
	act.Done = done
	return act, nil
}

// rollback is the Rollback of every step on a host: what this run's acts for this node replaced is restored.
func rollback(ctx context.Context, rt *Runtime) error {
	if rt.Session == nil {
		return nil
	}
	return rt.Session.Undo(ctx, host.Scope{Run: rt.Run, Node: rt.Node}, nil)
}

// unknown reports whether err says that a value is not there yet, which counts as a difference.
func unknown(err error) bool { return errors.Is(err, ErrUnknown) }
