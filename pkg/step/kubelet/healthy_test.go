// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// The programs of a host whose kubelet is as the files of $state say: healthy, and how often it was started again.
var programs = map[string]string{
	"systemctl": `case "$*" in
*NRestarts*) cat "$state/restarts" ;;
*ActiveState*) echo activating ;;
*is-active*) [ -e "$state/healthy" ] ;;
esac`,
	"curl":       `[ -e "$state/healthy" ] && echo "$*" >>"$state/asked"`,
	"journalctl": `echo 'E1122 10:00:00.0 1 run.go:72] "command failed" err="unknown flag: --bad"'`,
}

// What is said of a kubelet that is healthy, that takes its time, and that ends again and again with what it was given.
func TestHealthy(t *testing.T) {
	const bad = "the kubelet is activating and not healthy; the last that it said: E1122 10:00:00.0 1 run.go:72] \"command failed\" err=\"unknown flag: --bad\""
	for _, tt := range []struct {
		name              string
		healthy, changing bool
		restarts          string
		code              int
		said              string
	}{
		{"healthy", true, false, "0", 0, ""},
		{"healthy with what it was given, after a while", true, true, "7", 0, ""},
		{"not healthy, and nothing is changed", false, false, "7", 1, bad},
		{"has ended once with what it was given", false, true, "1", 1, bad},
		{"has ended twice with what it was given", false, true, "2", step.NotAnyMore, bad},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := t.TempDir()
			write := func(name, text string, mode os.FileMode) {
				if err := os.WriteFile(filepath.Join(state, name), []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range programs {
				write(name, "#!/bin/sh\n"+text+"\n", 0o755)
			}
			write("restarts", tt.restarts+"\n", 0o600)
			if tt.healthy {
				write("healthy", "", 0o600)
			}
			if tt.changing {
				write("changing", "", 0o600)
			}
			argv := kubelet.Healthy(spec.Kubelet{}).(step.Sequence).Parts[0].(step.WaitFor).Check
			for i, a := range argv {
				if a == "/etc/kubernetes/kubexm-kubelet" {
					argv[i] = filepath.Join(state, "changing")
				}
			}
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "PATH="+state+":"+os.Getenv("PATH"), "state="+state)
			out, err := cmd.CombinedOutput()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if said := strings.TrimSpace(string(out)); code != tt.code || said != tt.said {
				t.Errorf("it ends with %d and says %q", code, said)
			}
			if tt.healthy {
				asked, err := os.ReadFile(filepath.Join(state, "asked"))
				if err != nil || !strings.Contains(string(asked), "http://127.0.0.1:10248/healthz") {
					t.Errorf("it was asked %q, %v", asked, err)
				}
			}
		})
	}
}

// A kubelet that cannot be asked must have run for a while before a change of it stays; others are asked.
func TestEndChange(t *testing.T) {
	for port, steady := range map[string]bool{"0": true, "10248": false} {
		k := spec.Kubelet{ExtraArgs: []spec.Arg{{Name: "healthz-port", Value: port}}}
		if _, awaits := kubelet.EndChange(k).(step.Sequence).Parts[0].(step.Steady); awaits != steady {
			t.Errorf("port %s: it awaits the unit: %t", port, awaits)
		}
	}
}
