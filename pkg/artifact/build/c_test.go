// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCRun(t *testing.T) {
	moduleProxy(t)
	c := C{Module: Module{Path: "example.com/hello/v2", Version: "v2.0.1"}, Sources: []string{"c/hello.c"}, Program: "hello", Flags: []string{`-DVERSION="v2"`}}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	var programs [2]string
	for i := range programs {
		job := newJob(t)
		if err := c.Run(t.Context(), job, nil); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(job.Out, "hello")).Output()
		if err != nil || string(out) != "hello v2\n" {
			t.Errorf("%q, %v", out, err)
		}
		data, err := os.ReadFile(filepath.Join(job.Out, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		programs[i] = string(data)
	}
	if programs[0] != programs[1] {
		t.Error("two builds differ")
	}

	c.Flags = nil // VERSION is not defined
	err := c.Run(t.Context(), newJob(t), nil)
	var failed *CommandError
	if !errors.As(err, &failed) || !strings.HasPrefix(failed.Command, "gcc") || !strings.Contains(err.Error(), "VERSION") {
		t.Errorf("got %v", err)
	}
	if err := (C{}).Validate(); err == nil {
		t.Error("an empty program is valid")
	}
}
