// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
)

const upstreamMod = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require k8s.io/api v0.0.0

replace (
	example.com/forked => example.com/fork v1.2.3
	example.com/pinned v1.0.0 => example.com/pinned v1.0.1
	k8s.io/api => ./staging/src/k8s.io/api
)
`

func TestModuleFile(t *testing.T) {
	upstream, err := modfile.Parse("go.mod", []byte(upstreamMod), nil)
	if err != nil {
		t.Fatal(err)
	}
	modules := []Module{{Path: "k8s.io/kubernetes", Version: "v1.36.3"}}
	for name, tc := range map[string]struct {
		local   string
		replace []Module
		want    string
	}{
		"local replacements by a version": {"v0.36.3", nil, `module kubexm.build

go 1.26.0

require k8s.io/kubernetes v1.36.3

godebug default=go1.26

replace example.com/forked => example.com/fork v1.2.3

replace example.com/pinned v1.0.0 => example.com/pinned v1.0.1

replace k8s.io/api => k8s.io/api v0.36.3
`},
		"local replacements dropped, a version forced": {"", []Module{{Path: "example.com/forked", Version: "v9.0.0"}}, `module kubexm.build

go 1.26.0

require k8s.io/kubernetes v1.36.3

godebug default=go1.26

replace example.com/forked => example.com/forked v9.0.0

replace example.com/pinned v1.0.0 => example.com/pinned v1.0.1
`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := moduleFile(modules, []*modfile.File{upstream}, tc.local, tc.replace)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSumFile(t *testing.T) {
	got := string(sumFile([]byte("b v1 h1:x=\n\n"), nil, []byte("a v1 h1:y=\nb v1 h1:x=")))
	if want := "a v1 h1:y=\nb v1 h1:x=\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
