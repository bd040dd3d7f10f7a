// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
)

// Where etcd is elsewhere, or the member here does not answer, three hosts that are told of something else at once restart their
// components one host after the other.
func TestTurnsWithoutEtcd(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   func(*controlPlane) step.Command
	}{
		{"static pods", func(*controlPlane) step.Command {
			c, n := of(90)
			return kubeadm.StaticPods(c, n).(step.Sequence).Parts[0].(step.Command)
		}},
		{"certificates", func(p *controlPlane) step.Command {
			c, n := of(170)
			return kubeadm.Certificates(c, n).(step.Sequence).Parts[0].(step.Command)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cluster := t.TempDir()
			var together sync.WaitGroup
			for i := range 3 {
				p := upgraded(t)
				_ = os.RemoveAll(p.path("ssl"))
				together.Go(func() {
					name := fmt.Sprintf("n%d", i+1)
					said, ok := p.run(t.Context(), tt.of(p).Argv, "name="+name, "cluster="+cluster, "logs="+p.path("logs"))
					if !ok {
						t.Errorf("%s: %s", name, said)
					}
				})
			}
			together.Wait()
			wantTurns(t, cluster, "n1", "n2", "n3")
		})
	}
}

// wantTurns wants each of the hosts to have had one turn, in which it alone restarted something.
func wantTurns(t *testing.T, cluster string, names ...string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(cluster, "turns"))
	if err != nil {
		t.Fatal(err)
	}
	had, whose, restarts := map[string]int{}, "", 0
	for line := range strings.Lines(string(content)) {
		name, does, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case does == "begins" && whose == "":
			whose = name
			had[name]++
		case does == "ends" && whose == name && restarts > 0:
			whose, restarts = "", 0
		case strings.HasPrefix(does, "restarts") && whose == name:
			restarts++
		default:
			t.Fatalf("it is the turn of %q, and %s\n%s", whose, line, content)
		}
	}
	for _, name := range names {
		if had[name] != 1 {
			t.Errorf("%s had %d turns", name, had[name])
		}
	}
}

// Who has lost the turn restarts nothing more.
func TestLostTurn(t *testing.T) {
	p := upgraded(t)
	before := p.read("manifests/kube-apiserver.yaml")
	p.write("lost", "")
	does, failure := p.follow()
	if does != "lock, unlock" || !strings.Contains(failure, "n1's turn to restart a part of its control plane has ended meanwhile") {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	if p.read("manifests/kube-apiserver.yaml") != before {
		t.Error("the manifest was changed")
	}
}

// Without anybody who answers, what is restarted serves nobody; where an API server does answer, its administrator is needed.
func TestNobodyGivesTurns(t *testing.T) {
	p := upgraded(t)
	_ = os.RemoveAll(p.path("ssl"))
	p.write("away", "")
	if does, failure := p.follow(); !strings.HasPrefix(does, eachOnce) || failure != "" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	p = upgraded(t)
	_ = os.RemoveAll(p.path("ssl"))
	_ = os.Remove(p.path("admin.conf"))
	if does, failure := p.follow(); does != "" || !strings.Contains(failure, "cannot take its turn") {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
}
