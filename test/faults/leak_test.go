// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// A cluster is created by somebody who needs a password for sudo, while all that tells of it is kept and the hosts' process
// lists are watched. Nothing of it holds a secret; on the hosts they are where Kubernetes wants them, for root alone.
func TestNothingLeaks(t *testing.T) {
	tr := newTrial(t)
	s := &secrets{words: map[string]string{"sudo password": sudoPassword}}
	for _, name := range authorityNames {
		p, _ := subject.authorities.Get(name)
		s.addPEM("key of "+name, p.Key.Reveal())
	}
	key, err := os.ReadFile(pool.Hosts[0].KeyPath)
	if err != nil {
		t.Fatal(err)
	}
	s.addPEM("SSH key", key)

	var told bytes.Buffer
	log := jsonlog.New(&told)
	c := subject.as(hosts.SudoPW, sudoPassword)
	o := c.options(event.ReaderFunc(func(ev event.Event) {
		log.Read(ev)
		fmt.Fprintf(&told, "%+v\n%#v\n%s\n", ev, ev, ev)
	}))
	connect := o.Cluster
	o.Cluster = func(ctx context.Context) (step.Cluster, error) {
		api, err := connect(ctx)
		return listener{api, s}, err
	}
	p := tr.plan(len(subject.hosts))
	if err := p.Write(&told); err != nil {
		t.Fatal(err)
	}
	if err := p.Text(&told); err != nil {
		t.Fatal(err)
	}

	var watchers []*watcher
	for _, h := range tr.hosts {
		watchers = append(watchers, tr.watch(h, s))
	}
	report, err := engine.New(o).Run(t.Context(), p)
	fmt.Fprintf(&told, "%+v %v %+v", report, err, err)
	if err != nil {
		t.Errorf("run: %v", err)
	}
	if !s.has("bootstrap token") {
		t.Error("the run made no bootstrap token")
	}
	for _, h := range tr.hosts {
		tr.demandHidden(h, s)
	}

	_, err = c.reset(t.Context(), event.ReaderFunc(func(ev event.Event) { log.Read(ev) }))
	if err != nil {
		t.Errorf("reset: %v", err)
	}
	for _, w := range watchers {
		w.stop(tr)
	}
	if found := s.find(told.Bytes()); found != "" {
		t.Errorf("events, logs, plan or report tell the %s", found)
	}
	tr.demandReset()
}

// secrets are looked for by a word of each, one that is nowhere else.
type secrets struct {
	mu    sync.Mutex
	words map[string]string // by what they are
}

// addPEM adds a line from the middle of a key.
func (s *secrets) addPEM(what string, content []byte) {
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	s.add(what, lines[len(lines)/2])
}

func (s *secrets) add(what, word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words[what] = word
}

func (s *secrets) has(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.words[what] != ""
}

// find returns which secret is in text, or "".
func (s *secrets) find(text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, word := range s.words {
		if bytes.Contains(text, []byte(word)) {
			return what
		}
	}
	return ""
}

// list is all of them, a line each.
func (s *secrets) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, word := range s.words {
		b.WriteString(word + "\n")
	}
	return b.String()
}

// listener hears the bootstrap token.
type listener struct {
	step.Cluster
	secrets *secrets
}

// Token adds the token's secret half.
func (l listener) Token(ctx context.Context, ttl time.Duration) (secret.Value, error) {
	v, err := l.Cluster.Token(ctx, ttl)
	if _, word, found := strings.Cut(string(v.Reveal()), "."); found {
		l.secrets.add("bootstrap token", word)
	}
	return v, err
}

// watchFlag is there for as long as a host is watched.
const watchFlag = "/run/faults-watch"

// watchScript prints what every user may see of all processes, and their environments, about ten times a second.
const watchScript = `touch "$0"; while [ -e "$0" ]; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'; sleep 0.1; done`

// watcher watches a host's process list.
type watcher struct {
	host    *hosts.Host
	secrets *secrets
	cmd     *exec.Cmd
	// rest is the end of what was written last: a secret may be cut in two.
	rest  []byte
	seen  int
	found string
}

func (tr *trial) watch(h *hosts.Host, s *secrets) *watcher {
	tr.Helper()
	w := &watcher{host: h, secrets: s, cmd: h.Command(context.WithoutCancel(tr.Context()), "sh", "-c", watchScript, watchFlag)}
	w.cmd.Stdout = w
	if err := w.cmd.Start(); err != nil {
		tr.Fatal(err)
	}
	tr.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			w.stop(tr)
		}
	})
	return w
}

// Write looks for secrets.
func (w *watcher) Write(p []byte) (int, error) {
	const longest = 256
	w.rest = append(w.rest, p...)
	if w.found == "" {
		w.found = w.secrets.find(w.rest)
	}
	w.rest = append([]byte(nil), w.rest[max(0, len(w.rest)-longest):]...)
	w.seen += len(p)
	return len(p), nil
}

func (w *watcher) stop(tr *trial) {
	tr.Helper()
	tr.exec(w.host, "rm", "-f", watchFlag)
	if err := w.cmd.Wait(); err != nil {
		tr.Errorf("watching %s: %v", w.host.Name, err)
	}
	if w.found != "" {
		tr.Errorf("the %s was in the process list of %s", w.found, w.host.Name)
	}
	if w.seen == 0 {
		tr.Errorf("nothing was seen of the processes of %s", w.host.Name)
	}
}

// searchScript prints the files that hold one of the words on its standard input, and before each whether somebody else than
// root can read it.
const searchScript = `grep -rlsFf - /etc /home /opt /root /run /srv /tmp /usr/local /var | while IFS= read -r file; do
	if runuser -u nobody -- test -r "$file"; then echo "open $file"; else echo "closed $file"; fi
done`

// demandHidden fails the test when a file on a host holds a secret that others can read, or that has no business there.
func (tr *trial) demandHidden(h *hosts.Host, s *secrets) {
	tr.Helper()
	cmd := h.Command(tr.Context(), "sh", "-c", searchScript)
	cmd.Stdin = strings.NewReader(s.list())
	out, err := cmd.Output()
	if err != nil {
		tr.Fatal(err)
	}
	found := strings.TrimSpace(string(out))
	if found == "" {
		tr.Errorf("no key or token is on %s: this test does not find what is there", h.Name)
	}
	for line := range strings.Lines(found) {
		state, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if state != "closed" || !mayHold(file) {
			tr.Errorf("on %s, %s holds a secret (%s to others)", h.Name, file, state)
		}
	}
}

// mayHold reports whether a secret belongs into a file: Kubernetes', etcd's, or what such a file was before.
func mayHold(file string) bool {
	for _, dir := range []string{"/etc/kubernetes/", "/var/lib/etcd/", "/var/lib/kubexm/undo/"} {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}
