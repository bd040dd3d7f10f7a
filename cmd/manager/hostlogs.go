// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
)

const (
	// hostLogsCommand is the first argument of the program that shows what is kept of hosts that failed: the image has no shell and no
	// tar for others to.
	hostLogsCommand = "host-logs"
	// hostLogsVariable is the environment variable with the default of --host-logs-dir: what is run in the manager's container has it
	// too.
	hostLogsVariable = "KUBEXM_HOST_LOGS_DIR"
)

// showHostLogs lists the logs that are kept, or writes the one that is named to out.
func showHostLogs(args []string, out io.Writer) error {
	fs := pflag.NewFlagSet("manager "+hostLogsCommand+" [FILE]", pflag.ContinueOnError)
	dir := fs.String("host-logs-dir", os.Getenv(hostLogsVariable), "directory where the logs of hosts that failed are kept")
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case *dir == "":
		return fmt.Errorf("no logs are kept: set --host-logs-dir, or %s", hostLogsVariable)
	case fs.NArg() > 1:
		return fmt.Errorf("unexpected argument %q: one log at a time", fs.Arg(1))
	case fs.NArg() == 1:
		return hostlogs.Dir(*dir).Copy(out, fs.Arg(0))
	}
	files, err := hostlogs.Dir(*dir).List()
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := fmt.Fprintf(out, "%10d %s\n", f.Size, f.Name); err != nil {
			return err
		}
	}
	return nil
}
