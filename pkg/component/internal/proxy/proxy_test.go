// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy/proxytest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

var programs = map[string]proxy.Program{"haproxy": haproxy.Proxy, "nginx": nginx.Proxy}

// The kubelet restarts a static pod when its manifest changes.
func TestPodFollowsConfiguration(t *testing.T) {
	for program, p := range programs {
		before := proxytest.Manifest(p, proxytest.Local()).Content.String()
		for name, tt := range map[string]struct {
			change  func(*proxy.Settings)
			restart bool
		}{
			"the same hosts in another order": {func(s *proxy.Settings) {
				s.Backends = []spec.Member{s.Backends[2], s.Backends[0], s.Backends[1]}
			}, false},
			"a host less":   {func(s *proxy.Settings) { s.Backends = s.Backends[:2] }, true},
			"another port":  {func(s *proxy.Settings) { s.BackendPort = 7443 }, true},
			"all addresses": {func(s *proxy.Settings) { s.Bind = "" }, true},
		} {
			s := proxytest.Local()
			tt.change(&s)
			if restart := proxytest.Manifest(p, s).Content.String() != before; restart != tt.restart {
				t.Errorf("%s, %s: restart %t, want %t", program, name, restart, tt.restart)
			}
		}
	}
}

// What is checked before it replaces what works must be what then does.
func TestConfigurationIsChecked(t *testing.T) {
	for name, p := range programs {
		s := p.Config(debian.Family{}, proxytest.Settings())
		checked := s.(step.Sequence).Parts[0].(step.Command)
		if got, want := checked.Stdin.String(), steptest.Files(s)[0].Content.String(); got != want {
			t.Errorf("%s checks\n%s\nand writes\n%s", name, got, want)
		}
	}
}
