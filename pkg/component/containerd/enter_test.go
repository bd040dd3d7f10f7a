// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ctr has a container of the kubelet's API server, and one of its etcd.
const ctr = `#!/bin/sh
[ "$1 $2" = "--namespace k8s.io" ] || exit 1
shift 2
case "$*" in
"tasks list -q") printf 'aa\nbb\n' ;;
"containers info aa") printf '{\n  "io.kubernetes.container.name": "kube-apiserver"\n}\n' ;;
"containers info bb") printf '{\n  "io.kubernetes.container.name": "etcd"\n}\n' ;;
*) exit 1 ;;
esac
`

// TestEnter: a command is run in the container of that name, and where there is none, or no containerd, that is said.
func TestEnter(t *testing.T) {
	dir := t.TempDir()
	asked := func(name string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-uc", enter+"enter "+name)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	const none = "no container of etcd runs in containerd"
	if got, err := asked("etcd"); err == nil || got != none {
		t.Errorf("without containerd it says %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ctr"), []byte(ctr), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := asked("etcd")
	if words := strings.Fields(got); err != nil || len(words) != 8 || !strings.HasPrefix(got, "ctr --namespace k8s.io tasks exec --exec-id kubexm-") || words[7] != "bb" {
		t.Errorf("it says %q, %v", got, err)
	}
	if got, err := asked("kube-scheduler"); err == nil || got != strings.Replace(none, "etcd", "kube-scheduler", 1) {
		t.Errorf("of none it says %q, %v", got, err)
	}
}
