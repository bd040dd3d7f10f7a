// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// The sixty settings: files, units, and for each unit that it is enabled and runs.
const (
	settingFiles = 40
	settingUnits = 10
)

// settings measures the same sixty settings on four hosts, where nothing is and where everything is so already.
func settings() experiment {
	return experiment{
		measurements: []measurement{
			{
				name: "settings/first", unit: "s", goal: goal{of: "ratio", bound: 1.2},
				about: "60 settings (40 files, 10 units, 10 times enable and start) on 4 fresh hosts; reference: a shell script per host over OpenSSH, all at once",
			},
			{
				name: "settings/again", unit: "s", goal: goal{of: "ratio", bound: 0.35},
				about: "the same when nothing is to be changed; reference: the script's second run",
			},
		},
		hosts: always(4),
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			sides := []func() error{
				func() error { return l.twice(ctx, hosts, ours, take, func() error { return l.settle(ctx, hosts) }) },
				func() error {
					script := settingsScript()
					return l.twice(ctx, hosts, reference, take, func() error {
						return atOnce(ctx, hosts, func(ctx context.Context, name string) error {
							return l.ssh(ctx, name, strings.NewReader(script), "sudo -n sh -s")
						})
					})
				},
			}
			return inTurn(round, sides[0], sides[1])
		},
	}
}

// twice measures a first and a second run on clean hosts.
func (l *lab) twice(ctx context.Context, hosts []string, of side, take note, act func() error) error {
	if err := l.clean(ctx, hosts, cleanSettings); err != nil {
		return err
	}
	for _, name := range []string{"settings/first", "settings/again"} {
		took, err := timed(act)
		if err != nil {
			return err
		}
		take(name, of, took)
	}
	return nil
}

const cleanSettings = `set -eu
for unit in /etc/systemd/system/bench-*.service; do
	[ ! -e "$unit" ] || systemctl disable --now --quiet "${unit##*/}"
done
rm -rf /etc/systemd/system/bench-* /etc/bench /var/lib/kubexm
systemctl daemon-reload
`

// settle makes the settings so by the engine.
func (l *lab) settle(ctx context.Context, hosts []string) error {
	p, err := settingsPlan(hosts)
	if err != nil {
		return err
	}
	_, err = l.engine().Run(ctx, p)
	return err
}

// settingsPlan has a node per setting. More are added to each host's end.
func settingsPlan(hosts []string, more ...plan.Module) (*plan.Plan, error) {
	b := plan.New("Settings", "bench")
	module := settingsModule()
	for _, name := range hosts {
		b.Host(name, append([]plan.Module{module}, more...)...)
	}
	return b.Plan()
}

func settingsModule() plan.Module {
	var files, units, services []step.Step
	for _, s := range allSettings() {
		name := fmt.Sprintf("setting-%02d", s.number)
		file := step.New(step.Meta{Name: name}, step.File{Path: s.path, Mode: 0o644, Content: step.Literal(s.content)})
		if s.unit == "" {
			files = append(files, file)
			continue
		}
		units = append(units, file)
		services = append(services, step.New(step.Meta{Name: name}, step.Service{Name: s.unit}))
	}
	return plan.Module{Name: "settings", Tasks: []plan.Task{
		{Name: "files", Steps: files}, {Name: "units", Steps: units}, {Name: "services", Steps: services},
	}}
}

// setting is a file; where unit is not empty it is that of a unit, which is to be enabled and run.
type setting struct {
	number              int
	path, content, unit string
}

func allSettings() []setting {
	var all []setting
	for i := range settingFiles {
		var content strings.Builder
		for line := range 20 {
			fmt.Fprintf(&content, "option_%02d_%02d = value of the setting, which is as long as such values are\n", i, line)
		}
		all = append(all, setting{number: i, path: fmt.Sprintf("/etc/bench/%02d.conf", i), content: content.String()})
	}
	for i := range settingUnits {
		unit := fmt.Sprintf("bench-%02d.service", i)
		all = append(all, setting{
			number: i, path: "/etc/systemd/system/" + unit, unit: unit,
			content: "[Unit]\nDescription=Bench " + unit + "\n\n[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n",
		})
	}
	return all
}

//go:embed settings.sh
var settingsLib string

// settingsScript is what an administrator would write to the same end.
func settingsScript() string {
	var b strings.Builder
	b.WriteString(settingsLib)
	var units []string
	for _, s := range allSettings() {
		fmt.Fprintf(&b, "file %s 0644 <<'END'\n%sEND\n", s.path, s.content)
		if s.unit != "" {
			units = append(units, s.unit)
		}
	}
	fmt.Fprintf(&b, "reload\nunits %s\n", strings.Join(units, " "))
	return b.String()
}
