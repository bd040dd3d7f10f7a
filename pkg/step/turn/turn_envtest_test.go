// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package turn_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/turn"
)

// cluster is a real API server, and a directory in which hosts tell what they do.
type cluster struct {
	t                   *testing.T
	dir, assets, server string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: this test needs kube-apiserver, etcd and kubectl; run make test, which builds them")
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, dir: t.TempDir(), assets: assets, server: config.Host}
	admin, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "admin"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

const begin = `
fail() { printf '%s\n' "$*" >&2; exit 1; }
await() { until=$(($(date +%s) + $1)); shift; until "$@"; do [ "$(date +%s)" -lt "$until" ] || return 1; sleep 0.2; done; }
`

// host runs a script on a host of that name whose own API server is at the URL.
func (c *cluster) host(name, server, script string) *exec.Cmd {
	argv := []string{
		"name=" + name, "admin=" + c.dir + "/admin", "server=" + server, "term=8", "asking=2", "by=lease", "dir=" + c.dir,
		"PATH=" + c.assets + ":" + os.Getenv("PATH"), "/bin/sh", "-uc", begin + turn.Script + script,
	}
	return exec.CommandContext(c.t.Context(), "env", argv...)
}

// Whoever renews a turn has it for longer than a term; whoever comes second waits until it is given back. The first's own API
// server is away meanwhile, as it is when it is what is restarted.
func TestTurnOutlastsItsTerm(t *testing.T) {
	c := newCluster(t)
	const gone = "https://127.0.0.1:1"
	first := c.host("n1", gone, `await 60 have_turn || fail "no turn"
: >"$dir/has"
for n in 1 2 3 4 5 6; do sleep 3; keep_turn; done
echo n1 ends >>"$dir/log"
await 20 is_given_back || fail "not given back"`)
	second := c.host("n2", c.server, `await 60 test -e "$dir/has" || fail "the first has no turn"
await 120 have_turn || fail "no turn"
echo n2 begins >>"$dir/log"`)
	ended := make(chan error, 2)
	for _, host := range []*exec.Cmd{first, second} {
		go func() {
			out, err := host.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil || string(log) != "n1 ends\nn2 begins\n" {
		t.Errorf("what happened: %q, %v", log, err)
	}
}

// A turn whose holder is not heard of ends, and its holder does nothing more when it is there again.
func TestTurnThatHasEnded(t *testing.T) {
	c := newCluster(t)
	if out, err := c.host("n1", c.server, "have_turn").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	began := time.Now()
	if out, err := c.host("n2", c.server, `await 60 have_turn`).CombinedOutput(); err != nil || time.Since(began) < 7*time.Second {
		t.Fatalf("after %s: %v: %s", time.Since(began), err, out)
	}
	out, err := c.host("n1", c.server, "keep_turn; echo disrupts").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "has ended meanwhile") || strings.Contains(string(out), "disrupts") {
		t.Errorf("%v: %s", err, out)
	}
}
