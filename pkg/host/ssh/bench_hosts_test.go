// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

func benchHost(b *testing.B) *Host {
	b.Helper()
	h, err := Dial(b.Context(), config(hosts.Ops))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

func benchSession(b *testing.B, h *Host) host.Session {
	b.Helper()
	session, err := h.Begin(b.Context(), host.Run{ID: "bench", Holder: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		if err := errors.Join(session.Undo(ctx, host.Scope{}, nil), session.End(ctx, false)); err != nil {
			b.Error(err)
		}
	})
	return session
}

// cpu reports the processor time of both sides per operation, which says more than the clock on a busy machine.
func cpu(b *testing.B) (stop func()) {
	b.Helper()
	theirs := func() float64 {
		out, err := pool.Hosts[0].Exec(b.Context(), "sh", "-c", "cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec \\(.*\\)/\\1000/p' /sys/fs/cgroup/cpu.stat")
		if err != nil {
			b.Fatal(err)
		}
		n, err := strconv.ParseFloat(out, 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	ours := func() float64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return float64(usage.Utime.Nano() + usage.Stime.Nano())
	}
	host, self := theirs(), ours()
	return func() {
		b.ReportMetric((theirs()-host)/float64(b.N)/1e6, "host-cpu-ms/op")
		b.ReportMetric((ours()-self)/float64(b.N)/1e6, "our-cpu-ms/op")
	}
}

// BenchmarkDo is one act that makes a new file of a few hundred bytes and verifies its digest.
func BenchmarkDo(b *testing.B) {
	session := benchSession(b, benchHost(b))
	content := secret.New(fmt.Sprintf("%0400d\n", 1))
	i := 0
	defer cpu(b)()
	for b.Loop() {
		i++
		path := fmt.Sprintf("/srv/bench/%d", i)
		if _, err := session.Do(b.Context(), host.Act{
			Node: fmt.Sprintf("bench/%d", i), Task: "bench", Digest: "d",
			Changes: []host.Change{host.File{Path: path, Mode: 0o644, Content: content}},
			Verify:  host.Query{Paths: []host.PathQuery{{Path: path, Digest: true}}},
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObserve is one observation of 100 things, 60 of them files with digests.
func BenchmarkObserve(b *testing.B) {
	h := benchHost(b)
	var q host.Query
	for i := range 60 {
		q.Paths = append(q.Paths, host.PathQuery{Path: fmt.Sprintf("/srv/bench/%d", i), Digest: true}, host.PathQuery{Path: "/etc/passwd", Digest: true})
	}
	for i := range 10 {
		q.Units = append(q.Units, fmt.Sprintf("bench-%d.service", i), "ssh.service")
		q.Sysctls = append(q.Sysctls, "net.ipv4.ip_forward", "vm.swappiness")
		q.Packages = append(q.Packages, fmt.Sprintf("bench-%d", i), "bash")
	}
	defer cpu(b)()
	for b.Loop() {
		if _, err := h.Observe(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStage sends 200 MiB that do not compress, verified and synced; BenchmarkOpenSSH is what a user would do instead.
func BenchmarkStage(b *testing.B) { benchStage(b, benchHost(b)) }

func benchStage(b *testing.B, h *Host) {
	b.Helper()
	session := benchSession(b, h)
	content := benchContent()
	sum := sha256.Sum256(content)
	blob := host.Blob{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content)), Name: "bench", Open: open(content, nil)}
	b.SetBytes(blob.Size)
	defer cpu(b)()
	for b.Loop() {
		if err := session.Stage(b.Context(), []host.Blob{blob}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := pool.Hosts[0].Exec(b.Context(), "sh", "-c", "rm -f /var/lib/kubexm/staging/*"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkOpenSSH(b *testing.B) {
	content := benchContent()
	file := b.TempDir() + "/content"
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(content)))
	defer cpu(b)()
	for b.Loop() {
		script := fmt.Sprintf("ssh -F %s/ssh_config %s 'cat >/var/tmp/content' <%s", pool.Dir, pool.Hosts[0].Name, file)
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}

func benchContent() []byte {
	content := make([]byte, 200<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(content)
	return content
}
