// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
)

// TestShowHostLogs: what is kept is listed and handed out by the program itself, which finds it by the container's environment.
func TestShowHostLogs(t *testing.T) {
	t.Setenv(hostLogsVariable, "")
	var out bytes.Buffer
	if err := showHostLogs(nil, &out); err == nil || !strings.Contains(err.Error(), hostLogsVariable) {
		t.Errorf("nothing is kept: %v", err)
	}
	dir := t.TempDir()
	t.Setenv(hostLogsVariable, dir)
	kept, err := hostlogs.Dir(dir).Keep("fleet", "cp1", time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC), []byte("logs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := showHostLogs(nil, &out); err != nil || out.String() != "         4 fleet/cp1/20261121T230000.000Z.log.gz\n" {
		t.Errorf("listed %q, %v", out.String(), err)
	}
	for _, name := range []string{kept, "fleet/cp1/20261121T230000.000Z.log.gz"} {
		out.Reset()
		if err := showHostLogs([]string{name}, &out); err != nil || out.String() != "logs" {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
	for _, args := range [][]string{{"../x"}, {"a", "b"}, {"--nothing"}} {
		if err := showHostLogs(args, &out); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	o, err := parse(nil)
	if err != nil || o.hostLogs != dir {
		t.Errorf("the manager keeps logs in %q: %v", o.hostLogs, err)
	}
}
