// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/audit"
)

// runIn runs a command line with a given state directory.
func runIn(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), append([]string{"--state-dir", dir}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &err}, "v0")
	return code, out.String(), err.String()
}

// TestAudit: commands that may change hosts are recorded with who ran them and what they came to, others and dry runs are not.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"get", "clusters"},
		{"create", "cluster", "--dry-run"},
		{"delete", "cluster", "prod", "--yes"},
		{"apply", "/nonexistent"},
	} {
		runIn(t, dir, args...)
	}
	code, out, errs := runIn(t, dir, "audit", "list", "-o", "json")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var acts []audit.Summary
	if err := json.Unmarshal([]byte(out), &acts); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(acts) != 2 {
		t.Fatalf("%d acts: %s", len(acts), out)
	}
	deleted, applied := acts[0], acts[1]
	if deleted.Started.Action != "delete cluster" || deleted.Outcome() != audit.Succeeded || deleted.Started.User == "" {
		t.Errorf("%+v", deleted)
	}
	if applied.Started.Action != "apply" || applied.Outcome() != audit.Failed || !strings.Contains(applied.Ended.Message, "no such file") {
		t.Errorf("%+v", applied)
	}
	if code, out, errs := runIn(t, dir, "audit", "show", applied.Started.Act[:8]); code != exitOK || !strings.Contains(out, "/nonexistent") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if code, _, errs := runIn(t, dir, "audit", "show", "none"); code != exitUsage || !strings.Contains(errs, "audit list") {
		t.Errorf("exit code %d: %s", code, errs)
	}

	record := filepath.Join(dir, "audit", "audit.log")
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, bytes.Replace(content, []byte("/nonexistent"), []byte("/plan.json"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runIn(t, dir, "audit", "list"); code != exitFailed || !strings.Contains(errs, "changed after it was written") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A command that cannot be recorded does not begin.
func TestAuditOrNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "audit"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := runIn(t, dir, "delete", "cluster", "prod"); code != exitFailed || !strings.Contains(errs, "audit record") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// What ends before anything is run is recorded, too, and what is run is counted.
func TestLogAndMetricsOfWhatIsRefused(t *testing.T) {
	dir := t.TempDir()
	log, metrics := filepath.Join(dir, "kubexm.log"), filepath.Join(dir, "kubexm.prom")
	code, _, errs := runIn(t, dir, "apply", "absent.json", "--quiet", "--log-file", log, "--metrics-file", metrics)
	if code != exitUsage {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), `"level":"error"`) || !strings.Contains(string(content), "absent.json") {
		t.Errorf("the log has\n%s", content)
	}
	if _, err := os.Stat(metrics); err != nil {
		t.Error(err)
	}
	code, _, errs = runIn(t, dir, "version", "--metrics-addr", "127.0.0.1:-1")
	if code != exitUsage || !strings.Contains(errs, "--metrics-addr") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := runIn(t, dir, "version", "--log-file", dir); code != exitUsage || !strings.Contains(errs, "--log-file") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	code, _, errs = runIn(t, dir, "apply", "absent.json", "--log-file", "/dev/full")
	if code != exitUsage || !strings.Contains(errs, "absent.json") || !strings.Contains(errs, "--log-file") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestMetricsFile(t *testing.T) {
	a := &app{Streams: Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, quiet: true, logFormat: "text"}
	a.metricsFile, a.metricsAddr = filepath.Join(t.TempDir(), "kubexm.prom"), "127.0.0.1:0"
	if err := a.observe(); err != nil {
		t.Fatal(err)
	}
	err := a.showing(func(string) string { return "" }, func(r event.Reader) (string, error) {
		r.Read(event.Event{Type: event.RunEnded, Intent: "ResetNode", Duration: 2 * time.Second})
		return "", nil
	})
	if err := errors.Join(err, a.counting()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(a.metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	if want := `kubexm_pipeline_total{pipeline="reset_node",status="success"} 1`; !strings.Contains(string(content), want) {
		t.Errorf("no %s in\n%s", want, content)
	}
}
