// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// throughRelay is config by a link that takes delay each way and lets through rate bytes per second (0: all) from us to the
// host.
func throughRelay(t testing.TB, delay time.Duration, rate float64) Config {
	t.Helper()
	return throughHeldRelay(t, delay, rate, new(atomic.Bool))
}

// throughHeldRelay is throughRelay by a link that passes nothing while hold is set, as when our machine has lost its power.
func throughHeldRelay(t testing.TB, delay time.Duration, rate float64, hold *atomic.Bool) Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c := config(hosts.Ops)
	target := c.endpoint()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			go relay(far, near, delay, rate, hold)
			go relay(near, far, delay, 0, hold)
		}
	}()
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c.Address, c.Port = host, int32(number)
	return c
}

// relay copies from one side to the other; every piece arrives delay after it was read.
func relay(to, from net.Conn, delay time.Duration, rate float64, hold *atomic.Bool) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	line := make(chan piece, 4096)
	var free sync.Pool
	go func() {
		defer close(line)
		free.New = func() any { return make([]byte, 32<<10) }
		for {
			buffer := free.Get().([]byte)
			n, err := from.Read(buffer)
			if n > 0 {
				if rate > 0 {
					time.Sleep(time.Duration(float64(n) / rate * float64(time.Second)))
				}
				line <- piece{buffer[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range line {
		<-time.After(time.Until(p.due))
		if hold.Load() {
			continue // lost
		}
		if _, err := to.Write(p.bytes); err != nil {
			_ = from.Close()
		}
		free.Put(p.bytes[:cap(p.bytes)])
	}
	_ = to.Close()
}

// stageThrough stages content over a link and returns what that took, in exchanges and bytes.
func stageThrough(t *testing.T, c Config, content []byte) Stats {
	t.Helper()
	h := connect(t, c)
	session, err := h.Begin(t.Context(), host.Run{ID: "link", Holder: "test"})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	before := h.Stats()
	// Stage fails unless the host computes this digest.
	if err := session.Stage(t.Context(),
		[]host.Blob{{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content)),
			Name: "content", Open: open(content, nil)}}); err != nil {
		t.Fatal(err)
	}
	after := h.Stats()
	if err := session.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
	if err := session.End(t.Context(), false); err != nil {
		t.Error(err)
	}
	return Stats{Exchanges: after.Exchanges - before.Exchanges, BytesSent: after.BytesSent - before.BytesSent}
}

func TestSlowLinkIsCompressedFor(t *testing.T) {
	text := []byte(strings.Repeat("All happy families are alike; each unhappy family is unhappy in its own way.\n", 300_000))
	cost := stageThrough(t, throughRelay(t, 0, 25<<20), text)
	if limit := int64(len(text)) * 6 / 10; cost.BytesSent > limit {
		t.Errorf("%d bytes of text went as %d", len(text), cost.BytesSent)
	}
}

func TestLongLinkIsStriped(t *testing.T) {
	content := make([]byte, 50<<20)
	source := rand.NewChaCha8([32]byte{2})
	_, _ = source.Read(content)
	cost := stageThrough(t, throughRelay(t, 30*time.Millisecond, 0), content)
	// What is missing, the stripes, what has arrived.
	if want := int64(1 + maxStripes + 1); cost.Exchanges != want {
		t.Errorf("%d exchanges, want %d", cost.Exchanges, want)
	}
	if over := cost.BytesSent - int64(len(content)); over > 100_000 {
		t.Errorf("%d bytes beside the content", over)
	}
}

// TestSilentWriter has a writer vanish without a word: its lock must not outlive it by the hours that TCP would wait.
func TestSilentWriter(t *testing.T) {
	var hold atomic.Bool
	c := throughHeldRelay(t, 0, 0, &hold)
	c.heartbeat = 100 * time.Millisecond
	if _, err := connect(t, c).Begin(t.Context(), host.Run{ID: "silent", Holder: "gone"}); err != nil {
		t.Fatal(err)
	}
	next := connect(t, config(hosts.Ops))
	if _, err := next.Begin(t.Context(), host.Run{ID: "next", Holder: "test"}); host.KindOf(err) != host.KindLocked {
		t.Fatalf("while the writer beats: %v", err)
	}
	hold.Store(true)
	session, err := next.Begin(t.Context(), host.Run{ID: "next", Holder: "test"})
	for host.KindOf(err) == host.KindLocked && t.Context().Err() == nil {
		session, err = next.Begin(t.Context(), host.Run{ID: "next", Holder: "test"}) // each waits for some seconds
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
	if err := session.End(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// maxStripes is as posix has it.
const maxStripes = 4

// BenchmarkStage10ms is BenchmarkStage over a link with a round trip of 10 ms.
func BenchmarkStage10ms(b *testing.B) {
	h, err := Dial(b.Context(), throughRelay(b, 5*time.Millisecond, 0))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	benchStage(b, h)
}
