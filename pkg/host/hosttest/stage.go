// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
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
			open := func() (io.ReadCloser, error) {
				opened++
				return io.NopCloser(strings.NewReader(content)), nil
			}
			blobs = append(blobs, host.Blob{Digest: digestOf(content), Size: int64(len(content)), Name: "blob", Open: open})
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

	// By its age a unit is known to have read a file, or not.
	t.Run("AgeOfPlaced", func(t *testing.T) {
		r := newRig(t, fixture(t))
		s := r.begin(r.dial(), newRun())
		if err := s.Stage(r.ctx, blobsOf([]string{"program"})); err != nil {
			t.Fatalf("Stage: %s", explain(err))
		}
		place := func(f host.File) time.Time {
			act := host.Act{Node: f.Path, Changes: []host.Change{f}, Verify: host.Query{Paths: []host.PathQuery{{Path: f.Path}}}}
			return r.do(s, act).Paths[f.Path].Modified
		}
		between := place(host.File{Path: r.Dir + "/between", Mode: 0o644, Content: secret.New("x")})
		placed := place(host.File{Path: r.Dir + "/program", Mode: 0o755, Blob: digestOf("program")})
		if placed.Before(between) {
			t.Errorf("staged, and placed after %s, it is of %s", between, placed)
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})

	t.Run("Ahead", func(t *testing.T) {
		r := newRig(t, fixture(t))
		s := r.begin(r.dial(), newRun())
		large, both, empty := strings.Repeat("c", 300_000), "both", ""
		first, second := []string{large, both}, []string{empty, "second", both}
		if err := s.StageAhead(r.ctx, blobsOf(first), blobsOf(second)); err != nil {
			t.Fatalf("StageAhead: %s", explain(err))
		}
		// An act goes on meanwhile.
		r.do(s, host.Act{Node: "between", Changes: []host.Change{host.Directory{Path: r.Dir + "/d", Mode: 0o755}}})
		for i, lot := range [][]string{first, second} {
			if err := s.Stage(r.ctx, blobsOf(lot)); err != nil {
				t.Fatalf("Stage of lot %d: %s", i, explain(err))
			}
			act := host.Act{Node: fmt.Sprint("lot-", i)}
			for n, content := range lot {
				path := fmt.Sprintf("%s/%d-%d", r.Dir, i, n)
				act.Changes = append(act.Changes, host.File{Path: path, Mode: 0o640, Blob: digestOf(content)})
				act.Verify.Paths = append(act.Verify.Paths, host.PathQuery{Path: path, Digest: true})
			}
			f := r.do(s, act)
			for n, content := range lot {
				if seen := f.Paths[fmt.Sprintf("%s/%d-%d", r.Dir, i, n)]; seen.Digest != digestOf(content) || seen.Mode != 0o640 {
					t.Errorf("lot %d: content %d is %+v", i, n, seen)
				}
			}
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})

	t.Run("AheadAndWrong", func(t *testing.T) {
		r := newRig(t, fixture(t))
		s := r.begin(r.dial(), newRun())
		broken := blobOf([]byte("changed"), digestOf("original"))
		short := blobOf([]byte("short"), digestOf("short and more"))
		short.Size += 9
		good := blobsOf([]string{"good"})
		if err := s.StageAhead(r.ctx, []host.Blob{broken}, []host.Blob{short}, good); err != nil {
			t.Fatalf("StageAhead: %s", explain(err))
		}
		for _, wrong := range []host.Blob{broken, short} {
			if err := s.Stage(r.ctx, []host.Blob{wrong}); host.KindOf(err) != host.KindCorrupt {
				t.Errorf("content that is not what it should be: %v", err)
			}
		}
		if err := s.Stage(r.ctx, good); err != nil {
			t.Errorf("content after it: %s", explain(err))
		}
		r.undo(s, host.Scope{})
		r.end(s)
	})

	// What is sent ahead and never asked for keeps nobody from ending, and leaves nothing.
	t.Run("AheadForNothing", func(t *testing.T) {
		r := newRig(t, fixture(t))
		for _, end := range []func(s host.Session){
			func(s host.Session) { r.undo(s, host.Scope{}) },
			func(s host.Session) { r.end(s) },
			func(s host.Session) { r.undo(s, host.Scope{}) },
		} {
			h := r.Dial(t)
			s := r.begin(h, newRun())
			r.do(s, host.Act{Node: "n", Changes: []host.Change{host.Directory{Path: r.Dir + "/d", Mode: 0o755}}})
			if err := s.StageAhead(r.ctx, []host.Blob{endless(r)}, blobsOf([]string{"never"})); err != nil {
				t.Fatalf("StageAhead: %s", explain(err))
			}
			end(s)
			_ = h.Close()
		}
	})
}

// endless is content of which there is no more than the beginning until the test is over.
func endless(r *rig) host.Blob {
	return host.Blob{Digest: digestOf("endless"), Size: 1 << 20, Name: "endless content", Open: func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, "the beginning") }()
		context.AfterFunc(r.ctx, func() { _ = writer.CloseWithError(r.ctx.Err()) })
		return reader, nil
	}}
}

func blobsOf(contents []string) []host.Blob {
	blobs := make([]host.Blob, len(contents))
	for i, content := range contents {
		blobs[i] = blobOf([]byte(content), digestOf(content))
	}
	return blobs
}
