// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package callhome

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// serve starts a server, which ends with the test and leaves no goroutine.
func serve(t *testing.T) (*Server, string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	s := NewServer("", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	})
	return s, listener.Addr().String()
}

// connect opens a connection from a local address and writes text.
func connect(t *testing.T, to, from, text string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

func accept(t *testing.T, s *Server, name string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := s.Accept(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// isClosed waits for the other side's end of a connection.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("it is open: %v", err)
	}
}

func TestAcceptByName(t *testing.T) {
	s, address := serve(t)
	// What follows the line is not the server's.
	connect(t, address, "127.0.0.1", Greeting+" other\nSSH-2.0-other")
	type accepted struct {
		conn net.Conn
		err  error
	}
	waits := make(chan accepted, 1)
	go func() { // also for one that has not come yet
		conn, err := s.Accept(t.Context(), "mine")
		waits <- accepted{conn, err}
	}()
	connect(t, address, "127.0.0.1", Greeting+" mine\nSSH-2.0-mine")
	one := <-waits
	if one.err != nil {
		t.Fatal(one.err)
	}
	conn := one.conn
	defer conn.Close()
	read := make([]byte, len("SSH-2.0-mine"))
	if _, err := io.ReadFull(conn, read); err != nil || string(read) != "SSH-2.0-mine" {
		t.Errorf("read %q: %v", read, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Accept(ctx, "mine"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one connection is given twice: %v", err)
	}
}

func TestRefusesWhoIsNoHost(t *testing.T) {
	_, address := serve(t)
	for name, text := range map[string]string{
		"another protocol": "GET / HTTP/1.1\r\n", "no name": Greeting + " \n", "a name of other signs": Greeting + " ../x\n",
		"another version": "kubexm-call-home/2 mine\n", "a line without end": strings.Repeat("x", maxGreeting+1),
	} {
		t.Run(name, func(t *testing.T) { isClosed(t, connect(t, address, "127.0.0.1", text)) })
	}
}

// TestKeepsSomeOfEach: who knows a Machine's name cannot keep its host away by connecting more often, and the newest comes first.
func TestKeepsSomeOfEach(t *testing.T) {
	s, address := serve(t)
	connect(t, address, "127.0.0.1", Greeting+" mine\nhost")
	awaitKept(t, s, 1)
	first := connect(t, address, "127.0.0.2", Greeting+" mine\nfirst")
	awaitKept(t, s, 2)
	connect(t, address, "127.0.0.2", Greeting+" mine\nsecond")
	awaitKept(t, s, 3)
	connect(t, address, "127.0.0.2", Greeting+" mine\nthird!")
	isClosed(t, first)
	var got []string
	for range 3 {
		conn, text := accept(t, s, "mine"), make([]byte, 4)
		if _, err := io.ReadFull(conn, text); err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	if want := "[thir seco host]"; fmt.Sprint(got) != want {
		t.Errorf("accepted %v, want %s", got, want)
	}
}

// awaitKept waits until so many are kept.
func awaitKept(t *testing.T, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		s.mu.Lock()
		all, more := s.all.all, s.more
		s.mu.Unlock()
		if all == n {
			return
		}
		select {
		case <-more:
		case <-time.After(time.Until(deadline)):
			t.Fatalf("%d are kept, want %d", all, n)
		}
	}
}

func TestBounds(t *testing.T) {
	s, address := serve(t)
	for i := range keptOf + 1 {
		connect(t, address, fmt.Sprintf("127.0.1.%d", i+1), Greeting+" mine\n")
		awaitKept(t, s, min(i+1, keptOf))
	}
}

// bounds lowers how many are kept in all, and of one address.
func bounds(s *Server, inAll, ofOne int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.inAll, s.all.ofOne = inAll, ofOne
}

// TestSilentOnesKeepNobodyOut: who opens connections and says nothing has some of them open, and the hosts of other addresses are taken.
func TestSilentOnesKeepNobodyOut(t *testing.T) {
	s, address := serve(t)
	first := connect(t, address, "127.0.0.2", "")
	for range greeters - 1 {
		connect(t, address, "127.0.0.2", "")
	}
	connect(t, address, "127.0.0.1", Greeting+" mine\n")
	accept(t, s, "mine")
	isClosed(t, first)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.greeting.all; n != greetersFrom {
		t.Errorf("%d say nothing, want %d", n, greetersFrom)
	}
}

// TestSilentOnesOfManyAddresses: nor does who has many addresses keep out who opens one connection.
func TestSilentOnesOfManyAddresses(t *testing.T) {
	s, address := serve(t)
	host := connect(t, address, "127.0.0.1", Greeting)
	for i := range greeters {
		connect(t, address, fmt.Sprintf("127.0.1.%d", i/greetersFrom+1), "")
	}
	connect(t, address, "127.0.0.3", Greeting+" another\n")
	accept(t, s, "another")
	if _, err := io.WriteString(host, " mine\n"); err != nil {
		t.Fatal(err)
	}
	accept(t, s, "mine")
}

// TestManyNamesKeepNobodyOut: who says many Machines' names fills no more than there is room for beside others.
func TestManyNamesKeepNobodyOut(t *testing.T) {
	for name, test := range map[string]struct{ inAll, ofOne, kept int }{
		"the address has its share": {inAll: 100, ofOne: 5, kept: 5},
		"there is no more room":     {inAll: 5, ofOne: 100, kept: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, address := serve(t)
			bounds(s, test.inAll, test.ofOne)
			connect(t, address, "127.0.0.1", Greeting+" before\n")
			awaitKept(t, s, 1)
			var all []net.Conn
			for i := range test.kept + 1 {
				all = append(all, connect(t, address, "127.0.0.2", fmt.Sprintf("%s m%d\n", Greeting, i)))
				awaitKept(t, s, min(i+2, min(test.inAll, test.ofOne+1)))
			}
			isClosed(t, all[0])
			connect(t, address, "127.0.0.1", Greeting+" after\n")
			accept(t, s, "after")
			accept(t, s, "before")
			accept(t, s, fmt.Sprintf("m%d", test.kept))
		})
	}
}

// TestPlacesAreLeft: what is given away, or closed, counts no more.
func TestPlacesAreLeft(t *testing.T) {
	s, address := serve(t)
	bounds(s, 2, 2)
	connect(t, address, "127.0.0.1", Greeting+" kept\n")
	awaitKept(t, s, 1)
	for i := range 5 {
		connect(t, address, "127.0.0.1", fmt.Sprintf("%s m%d\n", Greeting, i))
		accept(t, s, fmt.Sprintf("m%d", i))
		isClosed(t, connect(t, address, "127.0.0.1", "nonsense\n"))
	}
	s.mu.Lock()
	if s.all.all != 1 || len(s.all.of) != 1 || s.greeting.all != 0 || len(s.greeting.of) != 0 || len(s.kept) != 1 {
		t.Errorf("%d are kept, of %d Machines, by %v; greeting are %v", s.all.all, len(s.kept), s.all.of, s.greeting.of)
	}
	s.mu.Unlock()
	accept(t, s, "kept")
}

func TestSourceOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:22": "10.0.0.1", "[::ffff:10.0.0.1]:22": "10.0.0.1", "[2001:db8::1:2:3:4]:22": "2001:db8::/64",
		"[fe80::1%eth0]:22": "fe80::/64",
	} {
		tcp := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if got := sourceOf(tcp); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}

func TestClosesWhatIsLeft(t *testing.T) {
	s := NewServer("", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	kept := connect(t, listener.Addr().String(), "127.0.0.1", Greeting+" mine\n")
	silent := connect(t, listener.Addr().String(), "127.0.0.1", "")
	awaitKept(t, s, 1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	isClosed(t, kept)
	isClosed(t, silent)
}

func TestStartSaysThatThePortIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := NewServer(listener.Addr().String(), "").Start(t.Context()); err == nil || !strings.Contains(err.Error(), "take connections of hosts") {
		t.Errorf("it is %v", err)
	}
}
