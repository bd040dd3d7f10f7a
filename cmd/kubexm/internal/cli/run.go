// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// runOptions are the flags of "run command".
type runOptions struct {
	source
	cluster string
	hosts   []string
	timeout time.Duration
	atOnce  int
	format  *format
}

// ran is what a command came to on one host.
type ran struct {
	Host     string `json:"host"`
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	// Error is why the command did not run, or did not end.
	Error string `json:"error,omitempty"`
}

func (a *app) runCommand() *cobra.Command {
	o := &runOptions{format: newFormat()}
	cmd := &cobra.Command{
		Use:   "command [--hosts HOST,...] -- COMMAND [ARGUMENT...]",
		Short: "Run a command on hosts, as root, all at once",
		Long: `Runs a command on hosts as root and shows what it printed on each. There is no shell in between: for pipes and the like,
run sh -c '...'. The exit code is the highest of all hosts', 255 for a host that could not be reached.`,
		Example: "  kubexm run command -- uptime\n  kubexm run command --cluster prod --hosts node1,node2 -- sh -c 'df -h / | tail -1'",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, argv []string) error { return a.run(cmd.Context(), o, argv) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file, for hosts that need a password, or of a cluster that was not made yet")
	o.addKeyFlags(cmd)
	flags.StringVar(&o.cluster, "cluster", "", "the cluster that the hosts belong to (default the only one there is)")
	flags.StringSliceVar(&o.hosts, "hosts", nil, "names of hosts (default all)")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long the command may take on one host")
	flags.IntVar(&o.atOnce, "hosts-at-once", 50, "on how many hosts the command runs at once")
	o.format.addFlag(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, o *runOptions, argv []string) error {
	names, hosts, err := a.someHosts(o)
	if err != nil {
		return err
	}
	results := make([]ran, len(names))
	var g errgroup.Group
	g.SetLimit(max(1, o.atOnce))
	for i, name := range names {
		g.Go(func() error {
			results[i] = runOn(ctx, hosts, name, host.Command{Argv: argv, Timeout: o.timeout})
			return nil
		})
	}
	_ = g.Wait() // what fails is in the results
	if o.format.structured() {
		if err := o.format.encode(a.Out, results); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			a.showRan(r)
		}
	}
	if err := ctx.Err(); err != nil { // what was not run then says nothing of its host
		return err
	}
	worst := 0
	for _, r := range results {
		worst = max(worst, r.ExitCode)
	}
	if worst > 0 {
		return exitStatus(worst)
	}
	return nil
}

// someHosts are the hosts that the flags name, and how they are reached.
func (a *app) someHosts(o *runOptions) ([]string, *access.Hosts, error) {
	cluster, err := a.clusterOf(o)
	if err != nil {
		return nil, nil, err
	}
	dir, err := clusterdir.Of(a.stateRoot, cluster)
	if err != nil {
		return nil, nil, usageError{err}
	}
	known, err := dir.Inventory()
	if err != nil {
		return nil, nil, err
	}
	if known == nil {
		if o.file == "" {
			return nil, nil, usage("there is no cluster %s in %s", cluster, a.stateRoot)
		}
		known = &clusterdir.Inventory{Cluster: cluster}
	}
	all, err := a.remembered(&o.source, known)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, h := range all {
		names = append(names, h.Name)
	}
	for _, name := range o.hosts {
		if !slices.Contains(names, name) {
			return nil, nil, usage("--hosts: cluster %s has no host %s; it has %s", cluster, name, strings.Join(names, ", "))
		}
	}
	if len(o.hosts) > 0 {
		names = o.hosts
	}
	hosts, err := access.New(all, a.trusting(&o.source, dir))
	return names, hosts, err
}

func (a *app) clusterOf(o *runOptions) (string, error) {
	if o.file == "" || o.cluster != "" {
		return a.onlyCluster(o.cluster)
	}
	return clusterName(nil, o.file)
}

// onlyCluster is the cluster that a flag names or, without, the only one there is.
func (a *app) onlyCluster(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	dirs, err := clusterdir.List(a.stateRoot)
	switch {
	case err != nil:
		return "", err
	case len(dirs) == 1:
		return dirs[0].Cluster, nil
	case len(dirs) == 0:
		return "", usage("there is no cluster in %s", a.stateRoot)
	}
	var names []string
	for _, d := range dirs {
		names = append(names, d.Cluster)
	}
	return "", usage("--cluster: say which of %s", strings.Join(names, ", "))
}

// notRun is the exit code of a command on a host that could not be reached: that of ssh(1).
const notRun = 255

func runOn(ctx context.Context, hosts *access.Hosts, name string, c host.Command) ran {
	h, err := hosts.Dial(ctx, name)
	if err != nil {
		return ran{Host: name, ExitCode: notRun, Error: err.Error()}
	}
	defer func() { _ = h.Close() }()
	result, err := h.Exec(ctx, c)
	if err != nil {
		return ran{Host: name, ExitCode: notRun, Error: err.Error()}
	}
	return ran{Host: name, ExitCode: result.ExitCode, Stdout: string(result.Stdout), Stderr: string(result.Stderr)}
}

// showRan shows what a command printed, each line with its host.
func (a *app) showRan(r ran) {
	for line := range strings.Lines(r.Stdout) {
		fmt.Fprintf(a.Out, "%s: %s\n", r.Host, a.printable(line))
	}
	for line := range strings.Lines(r.Stderr) {
		a.say(levelInfo, r.Host+": "+a.printable(line))
	}
	switch {
	case r.Error != "":
		a.say(levelError, r.Error)
	case r.ExitCode != 0:
		a.say(levelError, fmt.Sprintf("%s: exit code %d", r.Host, r.ExitCode))
	}
}

// printable is a line of a host's as it may be shown: to a terminal without what would control it, elsewhere as it is.
func (a *app) printable(line string) string {
	if a.Plain {
		line = host.Text(line, math.MaxInt)
	}
	return strings.TrimRight(line, "\n")
}
