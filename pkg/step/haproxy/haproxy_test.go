// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/haproxy"
)

var update = flag.Bool("update", false, "write the golden files anew")

var settings = haproxy.Settings{
	Port: 6443, BackendPort: 6443,
	Backends: []spec.Member{
		{Name: "cp2", Role: spec.RoleControlPlane, Address: "10.0.0.2"},
		{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.0.0.1"},
		{Name: "cp3", Role: spec.RoleControlPlane, Address: "10.0.0.3"},
	},
}

// local is what workers have.
func local() haproxy.Settings {
	s := settings
	s.Bind = "127.0.0.1"
	return s
}

func TestFiles(t *testing.T) {
	golden(t, haproxy.Config(settings))
	golden(t, haproxy.Packages())
	manifest := files(haproxy.Pod(local(), "example.com/haproxy:1"))[1]
	golden(t, step.New(step.Meta{}, manifest))
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest.Content.String()), &pod); err != nil {
		t.Errorf("the manifest is no Pod: %v", err)
	}
}

// The kubelet restarts a static pod when its manifest changes.
func TestPodFollowsConfiguration(t *testing.T) {
	pod := func(s haproxy.Settings) string {
		return files(haproxy.Pod(s, "example.com/haproxy:1"))[1].Content.String()
	}
	before := pod(local())
	for name, tt := range map[string]struct {
		change  func(*haproxy.Settings)
		restart bool
	}{
		"the same hosts in another order": {func(s *haproxy.Settings) {
			s.Backends = []spec.Member{s.Backends[2], s.Backends[0], s.Backends[1]}
		}, false},
		"a host less":   {func(s *haproxy.Settings) { s.Backends = s.Backends[:2] }, true},
		"another port":  {func(s *haproxy.Settings) { s.BackendPort = 7443 }, true},
		"all addresses": {func(s *haproxy.Settings) { s.Bind = "" }, true},
	} {
		s := local()
		tt.change(&s)
		if restart := pod(s) != before; restart != tt.restart {
			t.Errorf("%s: restart %t, want %t", name, restart, tt.restart)
		}
	}
}

// What is checked before it replaces what works must be what then does.
func TestConfigurationIsChecked(t *testing.T) {
	s := haproxy.Config(settings)
	checked := s.(step.Sequence).Parts[0].(step.Command)
	if got, want := checked.Stdin.String(), files(s)[0].Content.String(); got != want {
		t.Errorf("checks\n%s\nand writes\n%s", got, want)
	}
	if !strings.Contains(haproxy.Check, fmt.Sprintf(":%d/healthz", haproxy.HealthPort)) {
		t.Errorf("%q asks another port than %d", haproxy.Check, haproxy.HealthPort)
	}
}

// golden compares the files that s writes with those of the same names in testdata.
func golden(t *testing.T, s step.Step) {
	t.Helper()
	for _, f := range files(s) {
		name := filepath.Join("testdata", filepath.Base(f.Path))
		got := f.Content.String()
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got), go test -update writes it anew:\n%s", name, diff)
		}
	}
}

// files are those that s writes.
func files(s step.Step) []step.File {
	var all []step.File
	for _, p := range s.(step.Sequence).Parts {
		if f, ok := p.(step.File); ok {
			all = append(all, f)
		}
	}
	return all
}
