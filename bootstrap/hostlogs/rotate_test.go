// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlogs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRotate: of all hosts together no more is kept than there is room for, and what goes is the oldest.
func TestRotate(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "logs"))
	names := func() []string {
		t.Helper()
		files, err := dir.List()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		total := int64(0)
		for _, f := range files {
			all, total = append(all, f.Name), total+f.Size
		}
		if total > 40 {
			t.Errorf("%d bytes are kept", total)
		}
		return all
	}
	if got := names(); got != nil {
		t.Errorf("before there is any: %v", got)
	}
	keep := func(host string, second, size int) {
		t.Helper()
		at := fmt.Sprintf("20261121T2300%02d.000Z.log.gz", second)
		if _, err := dir.keep(filepath.Join("fleet", host), at, bytes.Repeat([]byte("x"), size), 40); err != nil {
			t.Fatal(err)
		}
	}
	keep("a", 1, 10)
	keep("b", 2, 10)
	keep("a", 3, 10)
	keep("c", 4, 10)
	if got := names(); len(got) != 4 {
		t.Errorf("all have room: %v", got)
	}
	keep("d", 5, 15)
	want := []string{
		"fleet/a/20261121T230003.000Z.log.gz", "fleet/c/20261121T230004.000Z.log.gz", "fleet/d/20261121T230005.000Z.log.gz",
	}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if _, err := os.Stat(filepath.Join(string(dir), "fleet", "b")); !os.IsNotExist(err) {
		t.Errorf("a directory without logs is left: %v", err)
	}
	// What somebody else has put there is not ours to remove, nor does it count.
	other := filepath.Join(string(dir), "fleet", "a", "notes")
	if err := os.WriteFile(other, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for second := range 9 {
		keep("e", 10+second, 1)
	}
	if got := names(); len(got) != 3+perHost {
		t.Errorf("of one host: %v", got)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}

	var out bytes.Buffer
	if err := dir.Copy(&out, want[2]); err != nil || out.Len() != 15 {
		t.Errorf("copied %d bytes: %v", out.Len(), err)
	}
	out.Reset()
	if err := dir.Copy(&out, filepath.Join(string(dir), want[2])); err != nil || out.Len() != 15 {
		t.Errorf("by the path that the event has, copied %d bytes: %v", out.Len(), err)
	}
	for _, name := range []string{"../secret", "/etc/hostname", "fleet/none/x.log.gz", ""} {
		if err := dir.Copy(&out, name); err == nil {
			t.Errorf("%q is copied", name)
		}
	}
}
