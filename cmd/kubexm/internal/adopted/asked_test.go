// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

func TestMembers(t *testing.T) {
	q := adopted.MembersQuery(runtime).Commands[0]
	seen := func(r host.Result) *host.Facts { return &host.Facts{Commands: map[string]host.Result{q.ID: r}} }
	got, err := adopted.Members(seen(host.Result{Stdout: []byte(`{"header":{"cluster_id":1},"members":[{"ID":12470290436432193153,"name":"cp1","peerURLs":["https://172.16.0.1:2380"],"clientURLs":["x"]}]}`)}))
	if err != nil || len(got) != 1 || got[0].ID != "ad0f5c4c3a8e8281" && got[0].ID == "" || got[0].Name != "cp1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := adopted.Members(seen(host.Result{ExitCode: 1,
		Stderr: []byte("context deadline exceeded\n")})); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("got %v", err)
	}
}

// TestMembersAreAsked: etcd is asked in its container, by whatever the declared runtime enters one; where none runs, that is said.
func TestMembersAreAsked(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put("runtime-exec", `echo "$1: $2 $3 … $(eval echo \${$#})"`+"\n")
	ask := func(enter string) (string, error) {
		argv := adopted.MembersQuery(kubelet.Runtime{Enter: enter}).Commands[0].Argv
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if got, err := ask("enter() { echo runtime-exec of-$1; }\n"); err != nil || got != "of-etcd: etcdctl --endpoints=https://127.0.0.1:2379 … list" {
		t.Errorf("it says %q, %v", got, err)
	}
	if got, err := ask("enter() { echo none of $1 runs >&2; return 1; }\n"); err == nil || got != "none of etcd runs" {
		t.Errorf("where none runs, it says %q, %v", got, err)
	}
}
