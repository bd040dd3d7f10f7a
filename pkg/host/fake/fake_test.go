// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
)

func TestConformance(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
		m, starts := fake.New("memory"), int64(0)
		m.Put("/srv/test/.", "", 0)
		m.Remove("/srv/test/.")
		m.OnCommand = shell
		m.Accounts = map[string]uint32{"ops": 1000}
		m.SetSysctl("net.ipv4.ip_forward", "0")
		return hosttest.Fixture{
			Dial:  func(*testing.T) host.Host { return m.Connect() },
			CutAt: m.CutAt,
			Dir:   "/srv/test", Owner: "ops", Group: "ops", Sysctl: "net.ipv4.ip_forward",
			IDs:      func(*testing.T) (uid, gid uint32) { return 1000, 1000 },
			Commands: true,
			Put:      func(_ *testing.T, path, content string, mode fs.FileMode) { m.Put(path, content, mode) },
			Link:     func(_ *testing.T, path, target string) { m.Link(path, target) },
			Remove:   func(_ *testing.T, path string) { m.Remove(path) },
			Start: func(_ *testing.T, unit string) {
				starts++
				m.SetUnit(unit, host.UnitState{Load: "loaded", Active: "active", File: "disabled", Since: time.Unix(starts, 0)})
			},
		}
	})
}

// shell plays the commands of the suite.
func shell(_ *fake.Machine, c host.Command) host.Result {
	script := strings.Join(c.Argv, " ")
	switch {
	case strings.HasPrefix(script, "sh -c exit "):
		code, _ := strconv.Atoi(strings.TrimPrefix(script, "sh -c exit "))
		return host.Result{ExitCode: code}
	case strings.Contains(script, "echo why"):
		return host.Result{ExitCode: 3, Stdout: []byte("so\n"), Stderr: []byte("why\n")}
	case strings.Contains(script, "kill -KILL"):
		return host.Result{ExitCode: 137}
	case strings.HasPrefix(script, "timeout "):
		return host.Result{ExitCode: 124}
	case strings.Contains(script, "exec sleep"):
		return host.Result{ExitCode: 124, Stdout: []byte("begun\n"), Stopped: c.Timeout}
	}
	return host.Result{}
}
