// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// all is a step of each kind, with every field set.
func all() []step.Step {
	token := graph.Output[string]{Name: "token"}
	artifact := step.Artifact{Path: "bin/a", Digest: sha("a"), Size: 1, Refs: []string{"r/a:1"}, Digests: []string{sha("a")}, Arch: "arm64"}
	text := step.Join(step.Literal("a"), step.Secret("app", "password"), step.FromOutput(token))
	return []step.Step{
		step.File{Path: "/a", Mode: 0o640, Owner: "o", Group: "g", Content: text, Where: "/b"},
		step.File{Path: "/a", Mode: 0o1755, From: &artifact, ReadBy: []string{"a.service"}},
		step.Directory{Path: "/a", Mode: 0o700, Owner: "o", Group: "g"},
		step.Absent{Path: "/a"},
		step.Block{Path: "/a", Name: "n", Content: "c\n"},
		step.Service{Name: "a.service", State: step.Stopped, Watches: []string{"/a"}, Reload: true, Settle: step.Duration(200 * time.Millisecond)},
		step.Steady{Units: []string{"a.service"}, For: step.Duration(time.Second)},
		step.Sysctl{Name: "a.b", Value: "1"},
		step.Module{Name: "overlay"},
		step.SwapOff{},
		step.User{Name: "etcd"},
		step.Package{Names: []string{"a", "b=1"}, From: step.PackageFiles{
			{Package: deb.Package{Name: "a", Version: "1:2", Depends: "c (>= 1)", Provides: "d"}, File: artifact},
		}},
		step.Claim{Paths: []string{"/a"}, Cleanup: []step.Cleanup{{Title: "t", Argv: []string{"a"}}}},
		step.Command{
			Title: "t", Argv: []string{"a"}, Env: []string{"A=b"}, Stdin: text, Undo: []string{"u"}, Timeout: step.Duration(time.Minute),
			Done: step.Done{Paths: []string{"/a"}, Units: []string{"a.service"}, Journaled: true, SameInput: true},
		},
		step.Import{Arch: "amd64", Images: []step.Image{{Ref: "r/a:1", Digest: sha("a"), Size: 7}}},
		step.Await{For: "node", Name: "n", Output: "ready"},
		step.Token{Output: token, TTL: step.Duration(time.Hour), After: []string{"api"}},
		step.Apply{Title: "t", Manifest: text, After: []string{"api"}},
		step.Release{Name: "r", Namespace: "n", Chart: artifact, Values: text, After: []string{"api"}},
		step.New(step.Meta{
			Name: "a/b", Description: "d", Timeout: step.Duration(90 * time.Second),
			Retry: step.Retry{Attempts: 2, Delay: step.Duration(time.Second), MaxDelay: step.Duration(time.Minute)},
			Takes: []string{"x"}, Makes: []string{"y"}, Disrupts: "restarts a",
		}, step.Absent{Path: "/a"}, step.New(step.Meta{Name: "c"}, step.SwapOff{})).Until(step.Done{Journaled: true}),
	}
}

func TestRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range all() {
		kind := step.KindOf(s)
		seen[kind] = true
		raw, err := step.Marshal(s)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		read, err := step.Unmarshal(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		// What all steps on the controller embed is nothing.
		if diff := cmp.Diff(s, read, cmpopts.IgnoreUnexported(step.Await{}, step.Token{}, step.Apply{}, step.Release{})); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		again, err := step.Marshal(read)
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s: written again, it is %s (%v)", raw, again, err)
		}
		if strings.Contains(string(raw), "hunter2") {
			t.Errorf("%s tells a secret", raw)
		}
	}
	if len(seen) != 19 {
		t.Errorf("%d kinds are tested: add the new one", len(seen))
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"no JSON", `file`, "object with its kind"},
		{"no kind", `{}`, "this has 0"},
		{"two kinds", `{"absent": {"path": "/a"}, "link": {"path": "/b", "target": "c"}}`, "this has 2"},
		{"unknown kind", `{"files": {}}`, `unknown step kind "files"`},
		{"unknown field", `{"absent": {"path": "/a", "force": true}}`, `step absent: json: unknown field "force"`},
		{"unknown field within", `{"command": {"title": "t", "argv": ["a"], "done": {"path": "/a"}}}`, `unknown field "path"`},
		{"unknown field of a text", `{"file": {"path": "/a", "mode": "0644", "content": [{"value": "x"}]}}`, `unknown field "value"`},
		{"unknown field of a sequence", `{"sequence": {"about": {"name": "a"}, "until": {}, "parts": []}}`, `unknown field "until"`},
		{"unknown kind of a part", `{"sequence": {"about": {"name": "a"}, "parts": [{"x": {}}]}}`, `part 0 of a: unknown step kind "x"`},
		{"unknown field of a part", `{"sequence": {"about": {"name": "a"}, "parts": [{"swapOff": {"now": 1}}]}}`, `part 0 of a: step swapOff`},
		{"number for a duration", `{"service": {"name": "a", "settle": 5}}`, `such as "1m30s"`},
		{"no duration", `{"service": {"name": "a", "settle": "5"}}`, "missing unit"},
		{"no mode", `{"directory": {"path": "/a", "mode": "rwx"}}`, "octal"},
	} {
		if s, err := step.Unmarshal([]byte(tt.raw)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v; want %q", tt.name, s, err, tt.want)
		}
	}
}

// foreign is a step that is not of the package.
type foreign struct{ step.SwapOff }

func TestMarshalRefusesForeignSteps(t *testing.T) {
	if raw, err := step.Marshal(foreign{}); err == nil {
		t.Errorf("written as %s", raw)
	}
	if raw, err := step.Marshal(step.New(step.Meta{Name: "a"}, foreign{})); err == nil {
		t.Errorf("written as %s", raw)
	}
}
