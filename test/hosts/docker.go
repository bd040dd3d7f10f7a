// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// docker runs one command of the Docker client, against the engine that the
// client's own environment names (DOCKER_HOST, context), and returns its standard
// output without the final newline. The error holds the subcommand and what the
// client wrote to standard error.
func docker(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	var stdout, stderr bytes.Buffer
	cmd := dockerCommand(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	// A terminal's interrupt is for us: we end the client when the context ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := cmd.Run()
	out := strings.TrimSuffix(stdout.String(), "\n")
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, fmt.Errorf("docker %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return out, fmt.Errorf("docker %s: %w; install the Docker client", args[0], err)
	}
	return out, fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
}

func dockerCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker", args...)
	// A process in a container that outlives the client can keep its pipes open.
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// lines splits a command's output, dropping empty lines.
func lines(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
