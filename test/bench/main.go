// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures speed and memory, ours and what a user would take instead, side by side in one run on the
// same hosts, and prints a table. It judges nothing by its exit code: figures are for people.
//
//	go run ./test/bench                      everything, once
//	go run ./test/bench -repeat 3            the median of three
//	go run ./test/bench -run '^settings'     the measurements whose names match
//	go run ./test/bench -list                their names, goals and meanings
//
// It needs Docker for its hosts (package hosts), OpenSSH's client for the references, and for joins, upgrades and clusters the bundles
// and the program that make artifacts artifacts-previous makes. docs/benchmarks.md holds results and how they came about.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/memory"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/fleet"
)

// options are the command line's.
type options struct {
	run     *regexp.Regexp
	repeat  int
	bundle  string
	older   string
	program string
	pool    string
	subnet  netip.Prefix
	out     string
	mebi    int64
	rest    time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command runs the bench, or the part of a process that the bench starts as its child.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case childCrowd:
			return playCrowd(ctx, os.Stdin, os.Stdout)
		case childConverge:
			memory.Save() // as the programs do
			return convergeCrowd(ctx, os.Stdin, os.Stdout)
		case childPlane:
			return fleet.ServePlane(ctx, os.Stdin, os.Stdout)
		case childManager:
			memory.Save()
			return serveManager(ctx, os.Stdin, os.Stdout)
		}
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the measurements and end")
	run := flags.String("run", "", "regular expression of the measurements to take")
	flags.IntVar(&o.repeat, "repeat", 1, "how often to measure; the median counts")
	flags.StringVar(&o.bundle, "bundle", "build/bundle", "directory of the bundle that hosts join with")
	flags.StringVar(&o.older, "older-bundle", "build/bundle-v1.35.4", "directory of the bundle that hosts are upgraded from")
	flags.StringVar(&o.program, "kubexm", "bin/kubexm", "the program that makes clusters")
	flags.StringVar(&o.pool, "pool", "bench", "name of the pool of test hosts, which is made anew and removed")
	flags.StringVar(&o.out, "out", "build/bench.json", "file to write the results to; benchstat reads the one beside it that ends with .txt")
	flags.Int64Var(&o.mebi, "mebibytes", 200, "size of the file that is sent to hosts, in MiB")
	flags.DurationVar(&o.rest, "rest", 5*time.Minute, "how long to wait, before each experiment, for a load average of 1")
	flags.Func("subnet", "IPv4 subnet of the hosts; by default one that is free", func(s string) (err error) {
		o.subnet, err = netip.ParsePrefix(s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	switch o.run, err = regexp.Compile(*run); {
	case err != nil:
		return fmt.Errorf("-run: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.repeat < 1:
		return errors.New("-repeat: want 1 or more")
	case o.mebi < 1:
		return errors.New("-mebibytes: want 1 or more")
	case *list:
		printList(os.Stdout)
		return nil
	}
	return measure(ctx, o)
}
