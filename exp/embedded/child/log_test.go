// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

func TestLogStaysBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part.log")
	log, err := child.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	chunk := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range 40 {
		if _, err := log.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Write([]byte("the end\n")); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Write([]byte("late\n")); err != nil {
		t.Errorf("after Close: %v", err)
	}
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 8<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %s", name, info.Size(), info.Mode())
		}
	}
	if tail := child.Tail(path); !strings.HasSuffix(tail, "\n\tthe end") || len(tail) > 16<<10 {
		t.Errorf("tail of %d bytes ends with %q", len(tail), tail[max(0, len(tail)-40):])
	}
	if tail := child.Tail(path + ".2"); tail != "" {
		t.Errorf("a file that is not there has the tail %q", tail)
	}
}
