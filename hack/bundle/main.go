// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bundle makes the bundle that the project's own tests run with.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

func main() {
	out := flag.String("out", "build/bundle", "directory or archive (.tar, .tar.gz, .tar.zst) to write")
	version := flag.String("kubernetes-version", "v1.36.3", "Kubernetes version")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, version, out string) error {
	store, err := artifact.OpenStore("")
	if err != nil {
		return err
	}
	started := time.Now()
	bundle, err := artifact.Create(ctx, artifact.CreateOptions{
		KubernetesVersion: version, Out: out, Store: store, CreatedBy: "hack/bundle", Progress: printer(started),
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s %s in %s\n", bundle.Dir(), bundle.Digest(), time.Since(started).Round(time.Millisecond))
	return nil
}

// printer prints the beginning of each phase of each component, and their ends.
func printer(started time.Time) func(artifact.Event) {
	last := map[string]artifact.Phase{}
	return func(e artifact.Event) {
		name := e.Component + " " + e.Version + " " + e.Arch
		if last[name] == e.Phase {
			return
		}
		last[name] = e.Phase
		line := fmt.Sprintf("%6.1fs %2d/%d  %-32s %s", time.Since(started).Seconds(), e.Finished, e.Total, name, e.Phase)
		if e.Elapsed > 0 {
			line += fmt.Sprintf(" in %.1fs", e.Elapsed.Seconds())
		}
		fmt.Println(line)
	}
}
