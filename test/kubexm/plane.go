// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubexm

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Plane runs the cluster's management plane, whose kubeconfig is returned once it answers, until stop or the context ends it. The errors
// have what the program has printed.
func (c *Cluster) Plane(ctx context.Context) (kubeconfig string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	read, write := io.Pipe()
	cmd := exec.CommandContext(ctx, c.Program, "run", "plane", c.Name)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, write, write
	if err := cmd.Start(); err != nil {
		cancel()
		return "", nil, err
	}
	go func() { _ = write.CloseWithError(cmd.Wait()) }() // how it ended is asked below

	found, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		var said strings.Builder
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if _, path, is := strings.Cut(lines.Text(), "export KUBECONFIG="); is {
				found <- filepath.Join(c.Dir, path)
			}
		}
		var err error
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			err = fmt.Errorf("kubexm run plane: exit code %d: %s", code, said.String())
		}
		ended <- err
	}()
	stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case kubeconfig = <-found:
		return kubeconfig, stop, nil
	case err = <-ended:
		cancel()
		return "", nil, fmt.Errorf("the management plane of %s has ended: %w", c.Name, err)
	}
}
