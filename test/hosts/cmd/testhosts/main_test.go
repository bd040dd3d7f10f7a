// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

func TestCommands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	name := fmt.Sprintf("cmdtest-%d", os.Getpid())
	dir := filepath.Join(t.TempDir(), "pool")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := hosts.Remove(ctx, name); err != nil {
			t.Error(err)
		}
	})
	up := []string{"up", "--name", name, "--count", "1", "--dir", dir}

	if out, err := testhosts(ctx, up...); err != nil || strings.Contains(out, "runs already") {
		t.Fatalf("up: %v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "hosts.json")); err != nil {
		t.Fatal(err)
	}
	if out, err := testhosts(ctx, up...); err != nil || !strings.Contains(out, "runs already") {
		t.Errorf("up again: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "hosts.json")); err != nil {
		t.Errorf("up on a running pool does not write its files: %v", err)
	}
	if _, err := testhosts(ctx, "up", "--name", name, "--count", "2", "--dir", dir); err == nil {
		t.Error("up with another count is accepted")
	}
	if out, err := testhosts(ctx, "ls"); err != nil || !strings.Contains(out, name+"-1") {
		t.Errorf("ls: %v\n%s", err, out)
	}
	if out, err := testhosts(ctx, "exec", name+"-1", "--", "hostname"); err != nil || strings.TrimSpace(out) != name+"-1" {
		t.Errorf("exec: %v\n%s", err, out)
	}
	var status exitStatus
	if _, err := testhosts(ctx, "exec", name+"-1", "--", "sh", "-c", "exit 7"); !errors.As(err, &status) || status != 7 {
		t.Errorf("exec of a command that exits with 7: %v", err)
	}
	if _, err := testhosts(ctx, "down", "--name", name); err != nil {
		t.Error(err)
	}
	if _, err := testhosts(ctx, "exec", name+"-1", "--", "true"); !errors.Is(err, hosts.ErrNotFound) {
		t.Errorf("exec after down: %v", err)
	}
}

func testhosts(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}
