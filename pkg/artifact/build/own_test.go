// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"strings"
	"testing"
)

// TestOwnFilesStayInside: a file of the project's own is in a directory of the build, and not beside its go.mod or outside of it.
func TestOwnFilesStayInside(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"tool/main.go", ""},
		{"main.go", `own file "main.go"`},
		{"../tool/main.go", `own file "../tool/main.go"`},
		{"/tool/main.go", `own file "/tool/main.go"`},
	} {
		g := Go{
			Modules:  []Module{{Path: "example.com/m", Version: "v1.0.0"}},
			Programs: map[string]string{"tool": "kubexm.build/tool"},
			Sources:  map[string]string{tt.name: "package main\n"},
		}
		err := g.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: have %v, want %q", tt.name, err, tt.want)
		}
	}
}
