// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
)

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	at := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	var last string
	for i := range 7 {
		for _, host := range []string{"a", "b"} {
			var err error
			if last, err = hostlogs.Dir(dir).Keep("fleet", host, at.Add(time.Duration(i)*time.Second), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := filepath.Join(dir, "fleet", "b", "20261121T230006.000Z.log.gz"); last != want {
		t.Errorf("kept in %s, want %s", last, want)
	}
	if content, err := os.ReadFile(last); string(content) != "6" || err != nil {
		t.Errorf("the last has %q: %v", content, err)
	}
	for path, mode := range map[string]os.FileMode{dir: os.ModeDir | 0o700, filepath.Dir(last): os.ModeDir | 0o700, last: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, "fleet", "a", "*"))
	if err != nil || len(kept) != 5 || filepath.Base(kept[0]) != "20261121T230002.000Z.log.gz" {
		t.Errorf("kept of the other: %v, %v", kept, err)
	}
}

func TestKeepRefuses(t *testing.T) {
	dir := t.TempDir()
	if file, err := hostlogs.Dir(dir).Keep("..", "../a", time.Now(), nil); err == nil {
		t.Errorf("a host that is called ../a has its logs in %s", file)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hostlogs.Dir(file).Keep("fleet", "a", time.Now(), nil); err == nil {
		t.Error("a file is taken for a directory")
	}
}
