// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
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
		blobs := make([]host.Blob, len(e.Blobs))
		for i, b := range e.Blobs {
			blobs[i] = host.Blob{Digest: b.Digest, Size: b.Size, Name: b.Path, Open: func() (io.ReadCloser, error) {
				return rt.Artifacts.Open(ctx, b)
			}}
		}
		if err := rt.Session.Stage(ctx, blobs); err != nil {
			return err
		}
	}
	q := a.Observe()
	q.Merge(rt.Look)
	hostAct := host.Act{
		Node: rt.Node, Task: rt.Task, Digest: rt.Digest, Changes: e.Changes, Verify: q, Timeout: rt.Timeout,
	}
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

// rollback is the Rollback of every step on a host: what this run's acts for this node replaced is put back.
func rollback(ctx context.Context, rt *Runtime) error {
	if rt.Session == nil {
		return nil
	}
	return rt.Session.Undo(ctx, host.Scope{Run: rt.Run, Node: rt.Node}, nil)
}

// unknown reports whether err says that a value is not there yet, which counts as a difference.
func unknown(err error) bool { return errors.Is(err, ErrUnknown) }
