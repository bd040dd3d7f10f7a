// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubexm turns bare Linux hosts into Kubernetes clusters over SSH.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/cli"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/memory"
)

// version is set by the linker (-X main.version).
var version string

func main() {
	memory.Save()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, os.Args[1:], cli.Standard(), version)
	stop()
	os.Exit(code)
}
