// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs kubexm's providers in a management cluster, all of them or those that --providers names.
//
// "manager host-logs" lists what it keeps of hosts that failed, and "manager host-logs FILE" writes one of these to standard output.
//
// It logs to standard error, and writes what happens on hosts as JSON, a line each, to standard output.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // for --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/memory"
)

// version is set by the linker.
var version = "unknown"

func main() {
	memory.Save()
	// A second signal ends the process at once.
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// run returns when ctx has ended and everything that went on has been given up in order.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == hostLogsCommand {
		return showHostLogs(args[1:], os.Stdout)
	}
	o, err := parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := logsv1.ValidateAndApply(o.logs, nil); err != nil {
		return err
	}
	log := klog.Background()
	ctrl.SetLogger(log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w", err)
	}
	mgr, err := newManager(ctrl.LoggerInto(ctx, log), config, o)
	if err != nil {
		return err
	}
	log.Info("Starting the manager", "version", version, "providers", o.providers)
	return mgr.Start(ctx)
}
