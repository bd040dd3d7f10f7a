// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callhome takes the connections that hosts open to the manager where it cannot open one to them (SSH Call Home, RFC 8071).
//
// A host says first whose Machine's it is, in a line, and is the server of SSH from then on: see bootstrap/door. That line proves nothing,
// and everybody who reaches the port may write it. So a connection is only kept until somebody asks for one of that Machine's, who then
// demands the host's key and shows his own. What is kept is bounded, for each Machine, for each address that it comes from, and in all;
// and so is what has not said yet whose it is. Where there are too many in all, the address that has most loses one, not who comes last.
package callhome

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Port is where managers listen if nothing else is said: that of SSH Call Home.
const Port = 4334

// Greeting begins the line by which a host says whose Machine's it is: Greeting, a blank, and the name.
const Greeting = "kubexm-call-home/1"

const (
	// maxGreeting is how long that line may be, in bytes.
	maxGreeting = 256
	// greetingTimeout is how long a host may take for it, greeters how many may be about to write it, and greetersFrom how many of these
	// from one address.
	greetingTimeout = 10 * time.Second
	greeters        = 256
	greetersFrom    = 32
	// A connection is kept for so long: the host's sshd ends it a little later, and the host connects again.
	keptFor = 110 * time.Second
	// keptInAll is how many are kept, and keptInAllFrom how many of these from one address, behind which there may be many hosts. keptOf
	// is how many are kept of one Machine, and keptFrom how many of these from one address.
	keptInAll     = 8192
	keptInAllFrom = 1024
	keptOf        = 16
	keptFrom      = 2
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9:-]{1,128}$`)

// Server keeps the connections that hosts have opened until they are asked for.
type Server struct {
	listen, reachedAt string

	mu sync.Mutex
	// greeting are those that have not said whose they are, all those that are kept.
	greeting, all *crowd
	kept          map[string][]*waiting // all by Machine, the newest first
	// more is closed, and made anew, when there is another connection.
	more chan struct{}
}

// NewServer returns a server for a TCP address, such as ":4334", that hosts reach at another one, HOST:PORT. It listens once it is started.
func NewServer(listen, reachedAt string) *Server {
	return &Server{
		listen: listen, reachedAt: reachedAt, more: make(chan struct{}),
		greeting: newCrowd(greeters, greetersFrom), all: newCrowd(keptInAll, keptInAllFrom), kept: map[string][]*waiting{},
	}
}

// Address is where hosts reach it, as HOST:PORT.
func (s *Server) Address() string { return s.reachedAt }

// NeedLeaderElection is true: hosts try until they reach the manager that is active, since others do not listen.
func (s *Server) NeedLeaderElection() bool { return true }

// Start listens until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("take connections of hosts: %w", err)
	}
	return s.Serve(ctx, listener)
}

// Serve takes connections of the listener, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	log := ctrl.LoggerFrom(ctx).WithName("call-home")
	log.Info("Taking connections of hosts", "address", listener.Addr().String())
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var greeting sync.WaitGroup
	defer s.closeAll()
	defer greeting.Wait()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("take connections of hosts: %w", err)
		case err != nil: // such as too many open files: the host connects again
			log.Error(err, "Cannot take a host's connection")
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		w := s.arrived(conn)
		greeting.Go(func() {
			name, err := greet(ctx, conn)
			if err != nil {
				s.refuse(w)
				log.V(4).Info("Refused a connection", "from", conn.RemoteAddr().String(), "reason", err.Error())
				return
			}
			s.keep(name, w)
		})
	}
}

// greet reads whose Machine's host it is. It reads no byte more than that.
func greet(ctx context.Context, conn net.Conn) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetReadDeadline(time.Now().Add(greetingTimeout)); err != nil {
		return "", err
	}
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return "", fmt.Errorf("it has not said whose Machine's it is: %w", err)
		}
		if one[0] == '\n' {
			break
		}
		if line = append(line, one[0]); len(line) > maxGreeting {
			return "", errors.New("it has not said whose Machine's it is")
		}
	}
	name, ok := strings.CutPrefix(string(line), Greeting+" ")
	if !ok || !nameForm.MatchString(name) {
		return "", errors.New("it is no host of a Machine")
	}
	return name, conn.SetReadDeadline(time.Time{})
}

// arrived counts a connection as one that is about to say whose it is. Too many at once are no hosts, or will be back: one of them
// goes, and its greet ends by that.
func (s *Server) arrived(conn net.Conn) *waiting {
	w := &waiting{Conn: conn, from: sourceOf(conn.RemoteAddr())}
	s.mu.Lock()
	defer s.mu.Unlock()
	if goes := s.greeting.add(w); goes != nil {
		_ = goes.Close()
	}
	return w
}

// refuse closes a connection that has not said whose it is.
func (s *Server) refuse(w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greeting.remove(w)
	_ = w.Close()
}

// keep keeps a connection that has said whose it is until it is asked for, the newest first. What is too many goes: of the same Machine
// and address, of the same Machine, of the same address, or of the address that has most.
func (s *Server) keep(name string, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.greeting.remove(w) { // it had to go meanwhile, and is closed
		return
	}
	same := 1
	for _, other := range slices.Clone(s.kept[name]) {
		if other.from == w.from {
			if same++; same > keptFrom {
				s.close(other)
			}
		}
	}
	for len(s.kept[name]) >= keptOf {
		s.close(s.kept[name][len(s.kept[name])-1])
	}
	w.name = name
	w.expire = time.AfterFunc(keptFor, func() { s.drop(w) })
	s.kept[name] = slices.Insert(s.kept[name], 0, w)
	if goes := s.all.add(w); goes != nil {
		s.close(goes)
	}
	close(s.more)
	s.more = make(chan struct{})
}

// drop closes a connection that nobody has asked for in time.
func (s *Server) drop(w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(w)
}

// close closes a connection if it is among those that are kept, and keeps it no more. The lock is held.
func (s *Server) close(w *waiting) {
	if s.remove(w) {
		_ = w.Close()
	}
}

// remove takes a connection from those that are kept, and reports whether it was among them. The lock is held.
func (s *Server) remove(w *waiting) bool {
	at := slices.Index(s.kept[w.name], w)
	if at < 0 {
		return false
	}
	w.expire.Stop()
	s.all.remove(w)
	if s.kept[w.name] = slices.Delete(s.kept[w.name], at, at+1); len(s.kept[w.name]) == 0 {
		delete(s.kept, w.name)
	}
	return true
}

// Accept returns a connection of the Machine's host, or of somebody who says to be it: the newest there is, else the next that is opened.
// The caller closes it. The error is that of ctx.
func (s *Server) Accept(ctx context.Context, name string) (net.Conn, error) {
	for {
		s.mu.Lock()
		if kept := s.kept[name]; len(kept) > 0 {
			w := kept[0]
			s.remove(w)
			s.mu.Unlock()
			return w.Conn, nil
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}

func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kept := range s.kept {
		for _, w := range slices.Clone(kept) {
			s.close(w)
		}
	}
}
