// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/loadbalancer"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

var programs = map[string]loadbalancer.Program{"haproxy": loadbalancer.HAProxy, "nginx": loadbalancer.Nginx}

var settings = loadbalancer.Settings{
	Port: 6443, BackendPort: 6443,
	Backends: []spec.Member{
		{Name: "cp2", Role: spec.RoleControlPlane, Address: "10.0.0.2"},
		{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.0.0.1"},
		{Name: "cp3", Role: spec.RoleControlPlane, Address: "10.0.0.3"},
	},
}

// local is what workers have.
func local() loadbalancer.Settings {
	s := settings
	s.Bind = "127.0.0.1"
	return s
}

// manifest is the static pod's.
func manifest(p loadbalancer.Program, s loadbalancer.Settings) step.File {
	return steptest.Files(p.Pod(s, "example.com/image:1"))[1]
}

func TestFiles(t *testing.T) {
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			steptest.Golden(t, name, p.Config(settings))
			steptest.Golden(t, name, p.Packages(nil))
			steptest.Golden(t, name, step.New(step.Meta{}, steptest.Files(p.Pod(local(), "example.com/"+name+":1"))[1]))
			var pod corev1.Pod
			if err := yaml.UnmarshalStrict([]byte(manifest(p, local()).Content.String()), &pod); err != nil {
				t.Errorf("the manifest is no Pod: %v", err)
			}
		})
	}
}

// The kubelet restarts a static pod when its manifest changes.
func TestPodFollowsConfiguration(t *testing.T) {
	for program, p := range programs {
		before := manifest(p, local()).Content.String()
		for name, tt := range map[string]struct {
			change  func(*loadbalancer.Settings)
			restart bool
		}{
			"the same hosts in another order": {func(s *loadbalancer.Settings) {
				s.Backends = []spec.Member{s.Backends[2], s.Backends[0], s.Backends[1]}
			}, false},
			"a host less":   {func(s *loadbalancer.Settings) { s.Backends = s.Backends[:2] }, true},
			"another port":  {func(s *loadbalancer.Settings) { s.BackendPort = 7443 }, true},
			"all addresses": {func(s *loadbalancer.Settings) { s.Bind = "" }, true},
		} {
			s := local()
			tt.change(&s)
			if restart := manifest(p, s).Content.String() != before; restart != tt.restart {
				t.Errorf("%s, %s: restart %t, want %t", program, name, restart, tt.restart)
			}
		}
	}
}

// What is checked before it replaces what works must be what then does.
func TestConfigurationIsChecked(t *testing.T) {
	for name, p := range programs {
		s := p.Config(settings)
		checked := s.(step.Sequence).Parts[0].(step.Command)
		if got, want := checked.Stdin.String(), steptest.Files(s)[0].Content.String(); got != want {
			t.Errorf("%s checks\n%s\nand writes\n%s", name, got, want)
		}
	}
}
