// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestEtcdIsAskedInItsPod: on a host that has no etcdctl of its own, etcd is asked in its container, by whatever the runtime enters one.
func TestEtcdIsAskedInItsPod(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, at time.Time) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	put("change", "", now.Add(-3*time.Minute))
	put("manifests/etcd.yaml", "", now.Add(-2*time.Minute))
	put("logs/kube-system_etcd-n1_1/etcd/0.log", "", now)
	put("bin/runtime-exec", "#!/bin/sh\necho \"$1 $2 $*\" >"+filepath.Join(dir, "asked")+"\n", now)

	ask := func(enter string) (string, error) {
		c, n := of(90)
		n.Name, n.Runtime.Enter = "n1", enter
		for _, s := range kubeadm.StaticPods(c, n) {
			if s.Meta().Name != "kubeadm/etcd-ready" {
				continue
			}
			argv := s.(step.Sequence).Parts[0].(step.WaitFor).Check
			for i, word := range argv {
				for name, value := range map[string]string{"dir": dir, "change": dir + "/change", "logs": dir + "/logs"} {
					if strings.HasPrefix(word, name+"=") {
						argv[i] = name + "=" + value
					}
				}
			}
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		t.Fatal("nothing waits for etcd")
		return "", nil
	}
	if out, err := ask("enter() { echo runtime-exec of-$1; }\n"); err != nil {
		t.Errorf("it says %q: %v", out, err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || !strings.HasPrefix(string(asked), "of-etcd etcdctl ") || !strings.HasSuffix(string(asked), "endpoint health\n") {
		t.Errorf("what was asked is %q, %v", asked, err)
	}
	if out, err := ask("enter() { return 1; }\n"); err == nil || !strings.Contains(out, "etcd is not; the last that it said: nothing") {
		t.Errorf("where no container runs, it says %q: %v", out, err)
	}
}
