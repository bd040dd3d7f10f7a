// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestSilence pauses a host: anyone who waits for it learns so in time, and a context ends the waiting at once.
func TestSilence(t *testing.T) {
	c := config(hosts.Ops)
	c.KeepAlive, c.KeepAliveMax = 200*time.Millisecond, 3
	quick, patient := connect(t, c), connect(t, config(hosts.Ops))
	session, err := patient.Begin(t.Context(), host.Run{ID: "x", Holder: "y"})
	if err != nil {
		t.Fatal(err)
	}
	h := pool.Hosts[0]
	if err := h.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	unpause := func() { _ = h.Unpause(context.WithoutCancel(t.Context())) }
	defer unpause()
	if _, err := quick.Observe(t.Context(), host.Query{}); host.KindOf(err) != host.KindUnreachable {
		t.Errorf("a host that went silent: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := patient.Observe(ctx, host.Query{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an observation whose time is over: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it came back after %s", took)
	}
	unpause()
	if err := session.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Errorf("a session after a pause that nobody noticed: %v", err)
	}
	if err := session.End(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// TestCutInMidUpload ends the connection while content is sent, and goes on with another.
func TestCutInMidUpload(t *testing.T) {
	content := make([]byte, 24<<20)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(content)
	sum := sha256.Sum256(content)
	small := []byte("small")
	smallSum := sha256.Sum256(small)
	blobs := []host.Blob{
		{Digest: "sha256:" + hex.EncodeToString(smallSum[:]), Size: int64(len(small)), Name: "small", Open: open(small, nil)},
		{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content)), Name: "large", Open: open(content, nil)},
	}
	h := connect(t, config(hosts.Ops))
	session, err := h.Begin(t.Context(), host.Run{ID: "cut", Holder: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	cut := blobs[1]
	cut.Open = open(content, func(at int) {
		if at > 12<<20 {
			once.Do(func() { _ = h.Close() })
		}
	})
	if err := session.Stage(t.Context(), []host.Blob{blobs[0], cut}); host.KindOf(err) != host.KindUnreachable {
		t.Errorf("an upload whose connection is cut: %v", err)
	}

	h = connect(t, config(hosts.Ops))
	if session, err = h.Begin(t.Context(), host.Run{ID: "again", Holder: "test"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := session.Stage(t.Context(), blobs); err != nil {
			t.Fatal(err)
		}
	}
	if sent := h.Stats().BytesSent; sent > int64(len(content))+200_000 {
		t.Errorf("staging twice sent %d bytes for %d", sent, len(content))
	}
	if err := session.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
	if err := session.End(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// open returns content and tells how far it has been read.
func open(content []byte, read func(at int)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		r := bytes.NewReader(content)
		if read == nil {
			return io.NopCloser(r), nil
		}
		return io.NopCloser(watchedReader{r, func() { read(len(content) - r.Len()) }}), nil
	}
}

type watchedReader struct {
	io.Reader
	after func()
}

func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.after()
	return n, err
}

// TestManyAtOnce asks for more channels than a connection has.
func TestManyAtOnce(t *testing.T) {
	h := connect(t, config(hosts.Ops))
	before := h.Stats().Exchanges
	var all sync.WaitGroup
	for range 3 * maxChannels {
		all.Go(func() {
			if _, err := h.Observe(t.Context(), host.Query{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := h.Stats().Exchanges - before; n != 3*maxChannels {
		t.Errorf("%d observations took %d exchanges", 3*maxChannels, n)
	}
}

// TestPackages installs a package with what it needs from the distribution, and takes all of it away again.
func TestPackages(t *testing.T) {
	h := connect(t, config(hosts.Ops))
	list := func() string {
		return must(t)(pool.Hosts[0].Exec(t.Context(), "dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n"))
	}
	before := list()
	session, err := h.Begin(t.Context(), host.Run{ID: "packages", Holder: "test"})
	if err != nil {
		t.Fatal(err)
	}
	act := host.Act{
		Node: "n", Changes: []host.Change{host.Package{Names: []string{"jq", "bash"}}},
		Verify: host.Query{Packages: []string{"jq", "libjq1", "bash"}},
	}
	f, err := session.Do(t.Context(), act)
	if err != nil {
		var e *host.Error
		errors.As(err, &e)
		t.Fatalf("%v\n%s", err, e.Output)
	}
	if f.Packages["jq"] == "" || f.Packages["libjq1"] == "" {
		t.Errorf("installed: %v", f.Packages)
	}
	if f, err = session.Do(t.Context(), act); err != nil || f.UndoEntries != 1 {
		t.Errorf("again: %v, %v", f, err)
	}
	if err := session.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Error(err)
	}
	if err := session.End(t.Context(), false); err != nil {
		t.Error(err)
	}
	if after := list(); after != before {
		t.Errorf("packages before:\n%s\nafter:\n%s", before, after)
	}
	_, err = connect(t, config(hosts.Ops)).Observe(t.Context(), host.Query{Packages: []string{strings.Repeat("no such ", 2)}})
	if host.KindOf(err) != host.KindInvalid {
		t.Errorf("a package name with blanks: %v", err)
	}
}
