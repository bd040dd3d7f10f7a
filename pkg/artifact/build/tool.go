// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// Tool is something that a build needs on this machine.
type Tool struct {
	// Command is looked for in PATH.
	Command string `json:"command,omitempty"`
	// Library is looked for by pkg-config.
	Library string `json:"library,omitempty"`
	// Package is the Debian package that brings it.
	Package string `json:"package"`
}

func (t Tool) present(ctx context.Context) bool {
	if t.Command != "" {
		if _, err := exec.LookPath(t.Command); err != nil {
			return false
		}
	}
	if t.Library != "" {
		return exec.CommandContext(ctx, "pkg-config", "--exists", t.Library).Run() == nil
	}
	return true
}

// MissingToolsError names all that must be installed before a build can start.
type MissingToolsError struct{ Tools []Tool }

func (e *MissingToolsError) Error() string {
	var what, packages []string
	for _, t := range e.Tools {
		what = append(what, t.Command+t.Library)
		packages = append(packages, t.Package)
	}
	slices.Sort(packages)
	return fmt.Sprintf("building from source needs %s, which this machine lacks: apt-get install -y %s",
		strings.Join(what, ", "), strings.Join(slices.Compact(packages), " "))
}

// CheckTools returns a *MissingToolsError unless all tools are here.
func CheckTools(ctx context.Context, tools []Tool) error {
	var missing []Tool
	for _, t := range tools {
		if !t.present(ctx) && !slices.Contains(missing, t) {
			missing = append(missing, t)
		}
	}
	if len(missing) > 0 {
		return &MissingToolsError{Tools: missing}
	}
	return nil
}
