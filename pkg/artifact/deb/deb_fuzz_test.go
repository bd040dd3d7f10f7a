// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package deb_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
)

// FuzzReadIndex: whatever an index says, what is read of it can be chosen from.
func FuzzReadIndex(f *testing.F) {
	f.Add(index)
	f.Add("Package: aa\nVersion: 1\nSize: 1\nDepends: aa (>= 2~) | bb [amd64] <!nocheck>, cc:any, ${x}\nProvides: aa (= 1), bb\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := deb.ReadIndex(strings.NewReader(text))
		if err != nil {
			return
		}
		var packages []deb.Package
		var names []string
		for _, e := range entries {
			packages, names = append(packages, e.Package), append(names, e.Name)
		}
		needed, err := deb.Needed(packages, names, nil)
		if err != nil {
			t.Fatalf("%v in what was read", err)
		}
		// A name that is there twice counts once.
		if len(needed) > len(packages) {
			t.Errorf("of %d packages %d are needed", len(packages), len(needed))
		}
	})
}
