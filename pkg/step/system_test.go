// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// unit is one unit's state, and beside it the times at which files were written.
func unit(u host.UnitState, written map[string]time.Time) host.Facts {
	f := host.Facts{Units: map[string]host.UnitState{"a.service": u}, Paths: map[string]host.Path{}}
	for name, at := range written {
		p := regular("x", 0o644)
		p.Modified = at
		f.Paths[name] = p
	}
	return f
}

func TestService(t *testing.T) {
	runs := step.Service{Name: "a.service", Watches: []string{"/conf", "/bin/a"}, Settle: step.Duration(time.Second)}
	starts := step.Service{Name: "a.service", State: step.Enabled, Watches: []string{"/conf"}}
	stopped := step.Service{Name: "a.service", State: step.Stopped}
	up := func(file string) host.UnitState {
		return host.UnitState{Load: "loaded", Active: "active", File: file, Since: now.Add(-time.Hour)}
	}
	down := host.UnitState{Load: "loaded", Active: "inactive", File: "disabled"}
	reload := up("enabled")
	reload.NeedDaemonReload = true
	before, after, future := now.Add(-2*time.Hour), now.Add(-time.Minute), now.Add(time.Hour)

	decide(t, []decision{
		{"runs", runs, unit(up("enabled"), map[string]time.Time{"/conf": before}), "so already"},
		{"static units start with others", runs, unit(up("static"), nil), "so already"},
		{"so do generated ones", runs, unit(up("generated"), nil), "so already"},
		{"is not there", runs, unit(host.UnitState{Load: "not-found", Active: "inactive"}, nil), `
			unit a.service: none → enabled
			unit a.service: inactive → active
			do unit a.service enabled started settle 1s`},
		{"is off", runs, unit(down, nil), `
			unit a.service: disabled → enabled
			unit a.service: inactive → active
			do unit a.service enabled started settle 1s`},
		{"crashes", runs, unit(host.UnitState{Load: "loaded", Active: "activating", File: "enabled"}, nil), `
			unit a.service: activating → active
			do unit a.service enabled started settle 1s`},
		{"has ended by itself, and nothing says for how long it must stay up", step.Service{Name: "a.service"},
			unit(host.UnitState{Load: "loaded", Active: "failed", File: "enabled"}, nil), `
			unit a.service: failed → active
			do unit a.service enabled started settle 1s`},
		{"is masked", runs, unit(host.UnitState{Load: "masked", Active: "inactive", File: "masked"}, nil), `
			unit a.service: masked → enabled
			unit a.service: inactive → active
			do unit a.service enabled started settle 1s`},
		{"runs, but not after the next boot", runs, unit(up("disabled"), nil), `
			unit a.service: disabled → enabled
			do unit a.service enabled restarted settle 1s`},
		{"unit file changed", runs, unit(reload, nil), `
			unit a.service: unit file changed → restarted
			do unit a.service enabled restarted settle 1s`},
		{"older than what it watches, no matter who wrote it and when", runs, unit(up("enabled"), map[string]time.Time{"/conf": before, "/bin/a": after}), `
			unit a.service: older than /bin/a → restarted
			do unit a.service enabled restarted settle 1s`},
		{"the clock was set back", runs, unit(up("enabled"), map[string]time.Time{"/conf": future}), "so already"},

		{"enabled: starts at boot", starts, unit(host.UnitState{Load: "loaded", Active: "inactive", File: "enabled"}, nil), "so already"},
		{"enabled: whether it runs is others' business", starts, unit(up("enabled"), map[string]time.Time{"/conf": after}), "so already"},
		{"enabled: is off", starts, unit(down, nil), `
			unit a.service: disabled → enabled
			do unit a.service enabled  settle 0s`},

		{"stopped: is not there", stopped, unit(host.UnitState{Load: "not-found", Active: "inactive"}, nil), "so already"},
		{"stopped: is off", stopped, unit(down, nil), "so already"},
		{"stopped: masked", stopped, unit(host.UnitState{Load: "masked", Active: "inactive", File: "masked"}, nil), "so already"},
		{"stopped: runs", stopped, unit(up("enabled"), nil), `
			unit a.service: active → stopped
			unit a.service: enabled → disabled
			do unit a.service disabled stopped settle 0s`},
		{"stopped: begins to run", stopped, unit(host.UnitState{Load: "loaded", Active: "activating", File: "enabled-runtime"}, nil), `
			unit a.service: activating → stopped
			unit a.service: enabled-runtime → disabled
			do unit a.service disabled stopped settle 0s`},
	})
}

func TestServiceIsReloaded(t *testing.T) {
	s := step.Service{Name: "a.service", Watches: []string{"/conf"}, Reload: true}
	const stamp = "/run/kubexm-reloaded-a.service"
	const script = `touch \"$2.began\"\nsystemctl reload -- \"$1\" || { journalctl -u \"$1\" -n 15 --no-pager -o cat >&2; exit 1; }\n` +
		`while state=$(systemctl is-active -- \"$1\") || true; [ \"$state\" = reloading ]; do sleep 0.1; done\n` +
		`[ \"$state\" = active ] || { echo \"$1 is $state after the reload\" >&2; exit 1; }\nmv -f \"$2.began\" \"$2\"`
	const reload = `
			unit a.service: older than /conf → reloaded
			do unit a.service enabled started settle 0s
			do command reload a.service ["/bin/sh" "-ec" "` + script + `" "sh" "a.service" "` + stamp + `"] env [] stdin "" undo ["rm" "-f" "` + stamp + `" "` + stamp + `.began"]`
	up := host.UnitState{Load: "loaded", Active: "active", File: "enabled", Since: now.Add(-time.Hour)}
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	other := up
	other.NeedDaemonReload = true

	decide(t, []decision{
		{"started with what it watches", s, unit(up, map[string]time.Time{"/conf": ago(70)}), "so already"},
		{"older than what it watches", s, unit(up, map[string]time.Time{"/conf": ago(30)}), reload},
		{"reloaded since", s, unit(up, map[string]time.Time{"/conf": ago(30), stamp: ago(20)}), "so already"},
		{"reloaded at that time", s, unit(up, map[string]time.Time{"/conf": ago(30), stamp: ago(30)}), "so already"},
		{"written again since", s, unit(up, map[string]time.Time{"/conf": ago(10), stamp: ago(20)}), reload},
		{"restarted since, by whomever", s, unit(up, map[string]time.Time{"/conf": ago(70), stamp: ago(80)}), "so already"},
		{"reloaded by a clock that was set back since", s, unit(up, map[string]time.Time{"/conf": ago(30), stamp: ago(-30)}), reload},
		{"is not there", s, unit(host.UnitState{Load: "not-found", Active: "inactive"}, map[string]time.Time{"/conf": ago(30)}), `
			unit a.service: none → enabled
			unit a.service: inactive → active
			do unit a.service enabled started settle 0s`},
		{"unit file changed: a reload would not do", s, unit(other, nil), `
			unit a.service: unit file changed → restarted
			do unit a.service enabled restarted settle 0s`},
	})
}

func TestSysctl(t *testing.T) {
	is := func(value string) host.Facts {
		return host.Facts{Sysctls: map[string]string{"net.ipv4.ping_group_range": value}}
	}
	s := step.Sysctl{Name: "net.ipv4.ping_group_range", Value: "0 1"}
	decide(t, []decision{
		{"same words", s, is("0\t1"), "so already"},
		{"other", s, is("1\t0"), "sysctl net.ipv4.ping_group_range: 1 0 → 0 1\ndo sysctl net.ipv4.ping_group_range = 0 1"},
		{"not there (its module may be loaded first)", s, is(""), "sysctl net.ipv4.ping_group_range: none → 0 1\ndo sysctl net.ipv4.ping_group_range = 0 1"},
	})
}

func TestModule(t *testing.T) {
	m := step.Module{Name: "br_netfilter"}
	decide(t, []decision{
		{"loaded", m, host.Facts{Modules: map[string]bool{"br_netfilter": true}}, "so already"},
		{"not loaded", m, host.Facts{}, "module br_netfilter: not loaded → loaded\ndo module br_netfilter"},
	})
}

func TestSwapOff(t *testing.T) {
	fstab := func(lines string) map[string]host.Result {
		return map[string]host.Result{"swap in fstab": {Stdout: []byte(lines)}}
	}
	decide(t, []decision{
		{"off", step.SwapOff{}, host.Facts{Commands: fstab("")}, "so already"},
		{"no fstab", step.SwapOff{}, host.Facts{Commands: map[string]host.Result{"swap in fstab": {ExitCode: 2}}}, "so already"},
		{"on", step.SwapOff{}, host.Facts{System: host.System{Swap: []string{"/dev/sda2", "/swap"}}, Commands: fstab("/swap\n")}, `
			swap: /dev/sda2, /swap → off
			swap: on after the next boot: /swap → off
			do swap`},
		{"off until the next boot", step.SwapOff{}, host.Facts{Commands: fstab("UUID=1\n/swap\n")}, `
			swap: on after the next boot: UUID=1, /swap → off
			do swap`},
	})
}

func TestPackage(t *testing.T) {
	p := step.Package{Names: []string{"socat", "conntrack=1:1.4.7-1", "libc6:amd64"}}
	has := func(socat, conntrack string) host.Facts {
		return host.Facts{Packages: map[string]string{"socat": socat, "conntrack": conntrack, "libc6": "2.36"}}
	}
	decide(t, []decision{
		{"installed", p, has("1.7", "1:1.4.7-1"), "so already"},
		{"missing", p, has("", "1:1.4.7-1"), "package socat: absent → installed\ndo packages socat"},
		{"another version", p, has("1.7", "1:1.4.6-1"), "package conntrack: 1:1.4.6-1 → 1:1.4.7-1\ndo packages conntrack=1:1.4.7-1"},
	})
	if got := p.Observe().Packages; len(got) != 3 || got[1] != "conntrack" || got[2] != "libc6" {
		t.Errorf("asks for %q, which the package manager lists by name alone", got)
	}
}

// TestPackageFromBundle sends what is missing of what the bundle has, and nothing else.
func TestPackageFromBundle(t *testing.T) {
	file := func(name, version, depends string) step.PackageFile {
		return step.PackageFile{
			Package: deb.Package{Name: name, Version: version, Depends: depends},
			File:    step.Artifact{Path: "os/debian/12/amd64/" + name + ".deb", Digest: sha(name), Size: 1},
		}
	}
	files := step.PackageFiles{
		file("haproxy", "1:2.6", "libc6 (>= 2.34), liblua"), file("liblua", "5.3", ""), file("curl", "7", "libcurl4 (= 7)"),
		file("libcurl4", "7", ""), file("other", "1", ""),
	}
	names := []string{"haproxy", "curl", "jq", "other=2"}
	p := step.Package{Names: names, From: files.For(names...)}
	if got := strings.Join(p.Observe().Packages, " "); got != "haproxy curl jq other liblua libcurl4" {
		t.Errorf("asks for %s", got)
	}
	for name, tt := range map[string]struct {
		installed map[string]string
		changes   []host.Change
	}{
		"nothing is there": {nil, []host.Change{
			host.Package{Names: []string{"haproxy", "curl"}, Blobs: []string{sha("haproxy"), sha("liblua"), sha("curl"), sha("libcurl4")}},
			host.Package{Names: []string{"jq", "other=2"}},
		}},
		"some of it is": {map[string]string{"haproxy": "1:2.4", "libcurl4": "6", "jq": "1", "other": "2"}, []host.Change{
			host.Package{Names: []string{"curl"}, Blobs: []string{sha("curl"), sha("libcurl4")}},
		}},
		"all but what no bundle has": {map[string]string{"haproxy": "1", "curl": "7", "other": "2"}, []host.Change{
			host.Package{Names: []string{"jq"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := host.Facts{Packages: tt.installed}
			e, err := p.Effect(step.View{Facts: &facts})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.changes, e.Changes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var staged, wanted []string
			for _, a := range e.Blobs {
				staged = append(staged, a.Digest)
			}
			for _, c := range tt.changes {
				wanted = append(wanted, c.(host.Package).Blobs...)
			}
			if !slices.Equal(staged, wanted) {
				t.Errorf("%q is sent, want %q", staged, wanted)
			}
		})
	}
	if got := files.For("jq"); got != nil {
		t.Errorf("For what it does not have it gives %v", got)
	}
}
