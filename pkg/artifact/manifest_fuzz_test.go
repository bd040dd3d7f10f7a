// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"path/filepath"
	"testing"
)

// FuzzManifest: what is accepted names no file outside of the bundle, and is written as it was read.
func FuzzManifest(f *testing.F) {
	for _, e := range smallBundle(f) {
		f.Add([]byte(e.data))
	}
	f.Add([]byte(`{"items":[{"path":"../x"}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := ReadManifest(bytes.NewReader(content))
		if err != nil {
			return
		}
		for _, file := range m.Items {
			if !filepath.IsLocal(file.Path) {
				t.Errorf("%q leads out of the bundle", file.Path)
			}
		}
		raw, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadManifest(bytes.NewReader(raw)); err != nil {
			t.Errorf("what was written is not accepted: %v", err)
		}
	})
}
