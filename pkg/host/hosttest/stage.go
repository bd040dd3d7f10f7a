// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"io"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// testStage is about content that is sent before it is used.
func testStage(t *testing.T, fixture func(t *testing.T) Fixture) {
	t.Run("Corrupt", func(t *testing.T) {
		r := newRig(t, fixture(t))
		s := r.begin(r.dial(), newRun())
		err := s.Stage(r.ctx, []host.Blob{blobOf([]byte("changed"), digestOf("original")), blobOf([]byte("good"), digestOf("good"))})
		if host.KindOf(err) != host.KindCorrupt {
			t.Errorf("content with another digest: %v", err)
		}
		_, err = s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{host.File{Path: r.Dir + "/f", Mode: 0o644, Blob: digestOf("original")}}})
		if err == nil {
			t.Error("corrupt content was installed")
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})

	t.Run("Short", func(t *testing.T) {
		r := newRig(t, fixture(t))
		s := r.begin(r.dial(), newRun())
		blob := blobOf([]byte("short"), digestOf("short and more"))
		blob.Size += 9
		if err := s.Stage(r.ctx, []host.Blob{blob}); host.KindOf(err) != host.KindCorrupt {
			t.Errorf("content that ends early: %v", err)
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})

	t.Run("OnceAndManyAndEmpty", func(t *testing.T) {
		r := newRig(t, fixture(t))
		h := r.dial()
		s := r.begin(h, newRun())
		opened := 0
		var blobs []host.Blob
		var changes []host.Change
		for _, content := range []string{"", "a", strings.Repeat("b", 300_000), binary} {
			blobs = append(blobs, host.Blob{Digest: digestOf(content), Size: int64(len(content)), Name: "blob", Open: func() (io.ReadCloser, error) {
				opened++
				return io.NopCloser(strings.NewReader(content)), nil
			}})
			changes = append(changes, host.File{Path: r.Dir + "/" + digestOf(content), Mode: 0o644, Blob: digestOf(content)})
		}
		for range 2 {
			if err := s.Stage(r.ctx, blobs); err != nil {
				t.Fatalf("Stage: %s", explain(err))
			}
		}
		if opened > len(blobs) {
			t.Errorf("%d blobs were opened %d times", len(blobs), opened)
		}
		act := host.Act{Node: "n", Changes: changes}
		for _, c := range changes {
			act.Verify.Paths = append(act.Verify.Paths, host.PathQuery{Path: c.(host.File).Path, Digest: true})
		}
		f := r.do(s, act)
		for p, seen := range f.Paths {
			if !strings.HasSuffix(p, seen.Digest) || seen.Digest == "" {
				t.Errorf("%s has digest %q", p, seen.Digest)
			}
		}
		// Installed content does not have to be sent again.
		if err := s.Stage(r.ctx, blobs[2:3]); err != nil {
			t.Fatalf("Stage: %s", explain(err))
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})
}
