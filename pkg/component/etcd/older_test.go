// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestOlderIsRefused has etcd's version compared with that of a program that is there before another is placed.
func TestOlderIsRefused(t *testing.T) {
	for _, c := range []struct{ have, want, says string }{
		{"", "v3.6.14", ""},
		{"3.6.8", "v3.6.14", ""},
		{"3.6.14", "v3.6.8", ""}, // of one minor version: etcd starts
		{"3.5.21", "v3.6.14", ""},
		{"3.6.14", "v3.5.21", "etcd 3.6.14 is here, and 3.5.21 is to be installed"},
		{"3.10.0", "v3.9.1", "etcd 3.10.0 is here, and 3.9.1 is to be installed"},
		{"4.0.0", "v3.6.14", "etcd 4.0.0 is here"},
		{"spoiled", "v3.6.14", ""},
	} {
		t.Run(c.have+" to "+c.want, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "etcd")
			text := "#!/bin/sh\necho 'etcd Version: " + c.have + "'\necho 'Git SHA: 0000000'\n"
			if c.have == "spoiled" {
				text = "#!/bin/sh\nexit 2\n"
			}
			if c.have != "" {
				if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			parts := etcd.Programs([]step.Artifact{
				{Path: "etcd/" + c.want + "/amd64/etcdctl", Digest: "sha256:1"}, {Path: "etcd/" + c.want + "/amd64/etcd", Digest: "sha256:2"},
			}).(step.Sequence).Parts
			argv := slices.Clone(parts[0].(step.Command).Argv)
			at := slices.Index(argv, "/usr/local/bin/etcd")
			argv[at], argv[at+1] = program, "kubexm-not-there.service"
			out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
			if said := string(out); (err == nil) != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("it says %q (%v), want %q", said, err, c.says)
			}
		})
	}
}
