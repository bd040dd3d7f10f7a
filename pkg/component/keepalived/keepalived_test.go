// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package keepalived_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

var settings = keepalived.Settings{
	Name: "lb1", Interface: "eth0", Address: "10.0.0.8", VIP: "10.0.0.7", RouterID: 7, Priority: 200,
	Peers: []string{"10.0.0.10", "10.0.0.9"}, Check: "/usr/bin/true",
}

func TestFiles(t *testing.T) {
	steptest.Golden(t, "", keepalived.Config(settings))
	steptest.Golden(t, "", keepalived.Packages(debian.Family{}, nil))
}

// A host alone has nobody to talk to: an empty list of peers is an error in keepalived's configuration.
func TestOneHost(t *testing.T) {
	s := settings
	s.Peers = nil
	conf := steptest.Files(keepalived.Config(s))[0]
	conf.Path = "alone.conf"
	steptest.Golden(t, "", step.New(step.Meta{}, conf))
}

func TestConfigurationIsChecked(t *testing.T) {
	s := keepalived.Config(settings)
	checked := s.(step.Sequence).Parts[0].(step.Command)
	if got, want := checked.Stdin.String(), steptest.Files(s)[0].Content.String(); got != want {
		t.Errorf("checks\n%s\nand writes\n%s", got, want)
	}
}

func TestPriority(t *testing.T) {
	hosts := []string{"10.0.0.9", "10.0.0.10", "10.0.0.8"}
	got := map[string]int{}
	for i, h := range hosts {
		peers := append(append([]string{}, hosts[i+1:]...), hosts[:i]...)
		got[h] = keepalived.Priority(h, peers)
	}
	want := map[string]int{"10.0.0.10": 200, "10.0.0.8": 199, "10.0.0.9": 198}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
