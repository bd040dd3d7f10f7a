// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSuitesRunEverything keeps CI's rota true: each test on hosts that is behind a tag of its own is run by .ci/run or is a part of a
// suite in .ci/suites, and each suite names a test that there is.
func TestSuitesRunEverything(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	// The targets whose tests RUN chooses by their functions' names, and their tags.
	tags := map[string]string{"e2e": "e2e", "e2e-ha": "ha", "clusterctl": "clusterctl", "faults": "faults"}
	run := regexp.MustCompile(`(?m)\b(e2e-ha|e2e|clusterctl|faults)\b(?: '?RUN=(Test\w+))?`)
	covered := map[string]bool{} // "tag TestX", or "tag " for all of a tag
	for _, path := range []string{".ci/run", ".ci/suites"} {
		for line := range strings.Lines(read(path)) {
			if strings.HasPrefix(line, "#") || path == ".ci/run" && !strings.HasPrefix(line, "stage make") {
				continue
			}
			for _, found := range run.FindAllStringSubmatch(line, -1) {
				covered[tags[found[1]]+" "+found[2]] = true
			}
		}
	}
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	tagged := regexp.MustCompile(`(?m)^//go:build (\w+)$`)
	files, err := filepath.Glob("../../test/*/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		content := read(strings.TrimPrefix(path, "../../"))
		tag := tagged.FindStringSubmatch(content)
		if tag == nil {
			continue
		}
		for _, f := range function.FindAllStringSubmatch(content, -1) {
			declared[tag[1]+" "+f[1]] = true
			switch tag[1] {
			case "e2e", "ha", "clusterctl", "faults":
				if !covered[tag[1]+" "+f[1]] && !covered[tag[1]+" "] {
					t.Errorf("%s: %s runs in no stage of .ci/run and in no suite of .ci/suites", path, f[1])
				}
			}
		}
	}
	for name := range covered {
		if !strings.HasSuffix(name, " ") && !declared[name] {
			t.Errorf("a stage or suite names %s, which no test of that tag is called", name)
		}
	}
}
