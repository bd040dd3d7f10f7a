// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"io/fs"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
)

func TestConformance(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
		m := fake.New("memory")
		m.Put("/srv/test/.", "", 0)
		m.Remove("/srv/test/.")
		m.SetSysctl("net.ipv4.ip_forward", "0")
		return hosttest.Fixture{
			Dial:  func(*testing.T) host.Host { return m.Connect() },
			CutAt: m.CutAt,
			Dir:   "/srv/test", Owner: "ops", Group: "ops", Sysctl: "net.ipv4.ip_forward",
			Put:    func(_ *testing.T, path, content string, mode fs.FileMode) { m.Put(path, content, mode) },
			Remove: func(_ *testing.T, path string) { m.Remove(path) },
			Start: func(_ *testing.T, unit string) {
				m.SetUnit(unit, host.UnitState{Load: "loaded", Active: "active", File: "disabled"})
			},
		}
	})
}
