// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package delay_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/delay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo sends back what it gets, and then ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func open(t *testing.T, each time.Duration) *net.TCPConn {
	t.Helper()
	line, err := delay.Listen(echo(t), each)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { line.Close() })
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(line.Port())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func TestDelaysBothDirections(t *testing.T) {
	const each = 20 * time.Millisecond
	conn := open(t, each)
	began := time.Now()
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*each {
		t.Errorf("a byte came back after %s, before %s", took, 2*each)
	}
}

func TestCarriesEverythingToTheEnd(t *testing.T) {
	conn := open(t, time.Millisecond)
	sent := make([]byte, 8<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		if err == nil {
			err = conn.CloseWrite()
		}
		failed <- err
	}()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
	}
}

func TestCloseEndsConnections(t *testing.T) {
	line, err := delay.Listen(echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(line.Port())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes were read of a line that is closed", n)
	}
}
