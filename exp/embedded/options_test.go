// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOptionsAreRefused(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(context.Background(), Options{Etcd: notExecutable, APIServer: "/nonexistent", Namespace: "No Such"})
	if err == nil {
		t.Fatal("started")
	}
	for _, want := range []string{
		"Dir: a directory", "Etcd: " + notExecutable + " is not an executable", "APIServer: stat /nonexistent",
		"ControllerManager: the path", `Namespace: "No Such"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}
