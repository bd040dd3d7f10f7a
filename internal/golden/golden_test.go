// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// failing is a test that notes how it fails.
type failing struct {
	testing.TB
	said []string
}

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) Helper() {}

// updates has -update until the test ends.
func updates(t *testing.T, as bool) {
	was := *update
	*update = as
	t.Cleanup(func() { *update = was })
}

func TestDifferencesFail(t *testing.T) {
	updates(t, false)
	dir := t.TempDir()
	file := filepath.Join(dir, "below", "file")
	write(t, file, "# ports\nbegin\n80\nend\n")
	for name, tt := range map[string]struct {
		check func(t testing.TB)
		want  []string // of the message; none where it passes
	}{
		"a file":          {func(t testing.TB) { File(t, file, "# ports\nbegin\n80\nend\n") }, nil},
		"another file":    {func(t testing.TB) { File(t, file, "# ports\nbegin\n81\nend\n") }, []string{file, "80", "81"}},
		"a part":          {func(t testing.TB) { Part(t, file, "begin\n", "end\n", "80\n") }, nil},
		"another part":    {func(t testing.TB) { Part(t, file, "begin\n", "end\n", "81\n") }, []string{file, "80", "81"}},
		"a tree":          {func(t testing.TB) { Tree(t, dir, map[string]string{"below/file": read(t, file)}) }, nil},
		"another text":    {func(t testing.TB) { Tree(t, dir, map[string]string{"below/file": "81"}) }, []string{"below/file", "81"}},
		"one file less":   {func(t testing.TB) { Tree(t, dir, nil) }, []string{"below/file"}},
		"one file beside": {func(t testing.TB) { Tree(t, dir, map[string]string{"below/file": read(t, file), "new": ""}) }, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &failing{TB: t}
			tt.check(f)
			if len(tt.want) == 0 && len(f.said) > 0 || len(tt.want) > 0 && len(f.said) != 1 {
				t.Fatalf("it says %q", f.said)
			}
			for _, want := range tt.want {
				if !strings.Contains(f.said[0], want) {
					t.Errorf("%q is not in %q", want, f.said[0])
				}
			}
		})
	}
}

// TestUpdate has what was made written, and nothing of old kept.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tree", "old"), "old")
	write(t, filepath.Join(dir, "document"), "before begin old end after")
	updates(t, true)
	File(t, filepath.Join(dir, "file"), "new")
	Part(t, filepath.Join(dir, "document"), "begin", "end", " new ")
	Tree(t, filepath.Join(dir, "tree"), map[string]string{"a/new": "new"})
	updates(t, false)
	Tree(t, dir, map[string]string{"file": "new", "document": "before begin new end after", "tree/a/new": "new"})
}
