// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// session implements host.Session.
type session struct {
	host *Host
	run  host.Run
	mark string
	proc *process
	pid  string // of the session's shell on the host
	in   *frameReader
	// writing keeps scripts and beats apart.
	writing sync.Mutex
	logs    *logs
	// system is what is known of the system, brought up to date by each act; skew is that of the clocks.
	system host.System
	skew   time.Duration
	// tools are the system's, and stay as they were when the session began.
	tools map[string]bool
	// ahead is nil when nothing is sent ahead.
	ahead *ahead
	// owner is whose the host is, nil if it has no record that can be read; unreadable says why not.
	owner      *host.Owner
	unreadable string
	// serial is the host's, nil if it has none that can be read; serialUnreadable says why not.
	serial           *host.Serial
	serialUnreadable string
	// reload says that units were enabled without telling systemd yet.
	reload bool
	// given says that everything was undone: the state directory is gone and with it the lock.
	given bool
	// waited says that an act of a connection that was cut ran still when we came.
	waited bool
	// patience is how long what runs now may take to stop.
	patience time.Duration
	// broken is set once an answer was not read to its end: nothing more can be asked.
	broken error
}

// holder is the line in the lock's holder file.
type holder struct {
	host.Run
	Since time.Time `json:"since"`
}

// runDir is where a session keeps what need not last: the output of the command that runs, pipes.
func (h *Host) runDir() string {
	if h.config.StateDir == host.StateDir {
		return "/run/kubexm"
	}
	return h.config.StateDir + "/run"
}

// Begin implements host.Host.
func (h *Host) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	if r.ID == "" || r.Holder == "" {
		return nil, h.invalid("", fmt.Errorf("a run needs an id and a holder"))
	}
	if !r.Ownership.IsZero() {
		if err := r.Ownership.Owner.Validate(); err != nil {
			return nil, h.invalid("", fmt.Errorf("whose the host is to be: %w", err))
		}
	}
	line, err := json.Marshal(holder{Run: r, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, h.invalid("", err)
	}
	if r.Serial != nil {
		if err := r.Serial.Validate(); err != nil {
			return nil, h.invalid("", fmt.Errorf("the serial of the state: %w", err))
		}
	}
	mark := newMark()
	s := newScript(mark, h.config.StateDir, coreLib, observeLib, sessionLib, changeLib, unitLib, packageLib, undoLib, stageLib)
	s.line("T=" + quote(h.runDir()))
	s.call("s_begin", string(line), seconds(3*h.config.Heartbeat))
	proc, err := h.start(ctx, s.String(), nil)
	if err != nil {
		return nil, err
	}
	b := &session{host: h, run: r, mark: mark, proc: proc, in: newFrameReader(proc.out, mark, maxWaiting), patience: stopPatience}
	stop := context.AfterFunc(ctx, func() { _ = proc.Close() })
	defer stop()
	if err := b.locked(ctx); err != nil {
		_ = proc.Close()
		return nil, err
	}
	err = b.look(ctx)
	if err == nil {
		err = b.admit(ctx)
	}
	if err == nil && r.Serial != nil {
		err = b.supersede(ctx, *r.Serial)
	}
	if err != nil {
		_ = proc.Close()
		return nil, err
	}
	go b.beat()
	return b, nil
}

// beat tells the host now and then that we live, until the session is over.
func (s *session) beat() {
	ticker := time.NewTicker(s.host.config.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-s.proc.errDone: // the process has ended
			return
		case <-ticker.C:
		}
		s.writing.Lock()
		_, err := s.proc.Write([]byte("\n"))
		s.writing.Unlock()
		if err != nil {
			return
		}
	}
}

// Waited implements host.Session.
func (s *session) Waited() bool { return s.waited }

// submit sends a whole script, with no beat in it.
func (s *session) submit(script string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.proc.submit(script)
}

// locked reads how taking the lock went.
func (s *session) locked(ctx context.Context) error {
	var busy string
	for {
		f, err := s.in.read()
		if err != nil {
			if ctx.Err() != nil && busy != "" {
				return &host.Error{Kind: host.KindLocked, Host: s.host.Name(), Err: ctx.Err(),
					Message: "an act of a connection that was cut still runs: " + busy, Remedy: "wait for it to end"}
			}
			return s.proc.unread(ctx, err)
		}
		switch f.kind() {
		case "begun":
			if s.pid = f.arg(1); !isPID(s.pid) {
				return s.host.unexpected(f)
			}
			return nil
		case "busy":
			busy = host.Word(string(f.body), maxName)
		case "wait":
			s.waited = true
		case "locked":
			return s.host.lockedBy(f.body)
		case "nostate":
			_, _ = s.proc.end() // for all of standard error
			return s.host.commandError("", "cannot make "+s.host.config.StateDir, 1, s.proc.said())
		default:
			return s.host.unexpected(f)
		}
	}
}

func (h *Host) lockedBy(content []byte) error {
	e := &host.Error{Kind: host.KindLocked, Host: h.Name(), Message: "another writer holds the host"}
	var by holder
	// The holder may be about to write its name.
	if json.Unmarshal(content, &by) == nil && by.Holder != "" {
		e.Message = fmt.Sprintf("%s holds the host for run %s since %s",
			host.Word(by.Holder, maxName), host.Word(by.ID, maxName), by.Since.Format(time.RFC3339))
	}
	e.Remedy = "wait for that run to end, or stop it"
	return e
}

// look reads what the host remembers and how it is. A host that nobody has changed gets its owner's record in the same exchange.
func (s *session) look(ctx context.Context) error {
	o := newObservation(host.Query{}, true)
	sc := &script{}
	if !s.run.Ownership.IsZero() {
		line, err := record(s.run.Ownership.Owner)
		if err != nil {
			return s.host.invalid("", err)
		}
		sc.call("s_own", line)
		sc.line("[ $? -eq 0 ] || exit 1")
	}
	o.render(sc, s.host.config.StateDir)
	a := newAnswer(o)
	sent := time.Now()
	code, err := s.ask(ctx, sc.String(), func(f frame) error {
		if !a.add(f) {
			return s.host.unexpected(f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(a.files) == 0 && code != 0 {
		return s.host.commandError("", "cannot write the record of the owner", code, s.proc.stderr.String())
	}
	facts := a.finish(sent)
	s.host.own(facts, a.files)
	s.host.serial(facts, a.files)
	s.system, s.skew, s.owner, s.unreadable = facts.System, facts.ClockSkew, facts.Owner, facts.OwnerUnreadable
	s.serial, s.serialUnreadable = facts.Serial, facts.SerialUnreadable
	s.system.User, s.tools = s.host.config.User, facts.System.Tools
	journal, undo := a.files[s.host.config.StateDir+"/"+journalFile], a.files[s.host.config.StateDir+"/"+undoFile]
	if s.logs, err = parseLogs(journal, undo); err != nil {
		return s.host.damaged(err)
	}
	return s.compact(ctx, len(journal), len(undo))
}

// compactFrom is the size of a log, in bytes, from which it is worth rewriting.
const compactFrom = 512 << 10

// compact rewrites logs that have grown by lines that count no more.
func (s *session) compact(ctx context.Context, journal, undo int) error {
	sc := &actScript{script: &script{}}
	for file, log := range map[string]struct {
		size int
		live string
	}{journalFile: {journal, s.logs.journalLines()}, undoFile: {undo, s.logs.undoLines()}} {
		if log.size > compactFrom && log.size > 2*len(log.live) {
			sc.put([]byte(log.live))
			sc.line(`s_compact "$S/` + file + `" || exit`)
		}
	}
	if sc.Len() == 0 {
		return nil
	}
	code, err := s.ask(ctx, sc.String(), func(f frame) error { return s.host.unexpected(f) })
	if err == nil && code != 0 {
		err = s.host.commandError("", "cannot rewrite the record in "+s.host.config.StateDir, code, s.proc.said())
	}
	return err
}

// ask sends one script to the worker and hands each frame of its answer to take, up to the end. It returns the exit
// code. When ctx ends, what runs on the far side is stopped.
func (s *session) ask(ctx context.Context, script string, take func(frame) error) (int, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	if ctx.Err() != nil {
		return 0, s.host.canceled(ctx)
	}
	s.host.stats.exchanges.Add(1)
	pid := make(chan string, 1)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stopOnCancel(ctx, pid, done)
	}()
	defer func() {
		close(done)
		<-stopped
	}()
	// A host that reads nothing keeps us from writing, too.
	if s.submit(script) != nil {
		return 0, s.lose(ctx, io.ErrUnexpectedEOF)
	}
	s.in.allow(framesFor(script))
	return s.answer(ctx, pid, take)
}

// stopOnCancel waits for ctx to end and then stops the process whose id comes.
func (s *session) stopOnCancel(ctx context.Context, pid <-chan string, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	grace := time.AfterFunc(s.host.grace(s.patience), func() { _ = s.proc.Close() })
	defer grace.Stop()
	select {
	case id := <-pid:
		s.host.stop(context.WithoutCancel(ctx), id, s.patience)
	case <-done:
		return
	}
	<-done
}

// answer reads frames up to the end of one answer.
func (s *session) answer(ctx context.Context, pid chan<- string, take func(frame) error) (int, error) {
	var first error
	told := false
	for {
		f, err := s.in.read()
		if err != nil {
			return 0, s.lose(ctx, err)
		}
		switch f.kind() {
		case "pid":
			// One worker acts, and says so once. Anyone who waits for it takes it from the channel, which holds one.
			if told || !isPID(f.arg(1)) {
				return 0, s.lose(ctx, &excess{"it names more than one worker"})
			}
			told = true
			pid <- f.arg(1)
		case "end":
			if ctx.Err() != nil {
				return 0, s.host.canceled(ctx)
			}
			return int(parseInt(f.arg(1))), first
		default:
			// The answer is read to its end even when we cannot make sense of it.
			if err := take(f); err != nil && first == nil {
				first = err
			}
		}
	}
}

// lose notes that the worker's answer could not be read to its end, and why: cause is the reader's error.
func (s *session) lose(ctx context.Context, cause error) error {
	err := s.proc.unread(ctx, cause)
	if s.broken == nil {
		s.broken = &host.Error{Kind: host.KindOf(err), Host: s.host.Name(), Message: "the session is over", Err: err}
	}
	return err
}

// isPID reports whether a word names a process.
func isPID(word string) bool {
	n, err := strconv.ParseInt(word, 10, 32)
	return err == nil && n > 0
}

const (
	// stopPatience is how long what is asked to stop may take before it is killed.
	stopPatience = 3 * time.Second
	// packagePatience is the same for package tools, as c_tool has it: one that is killed leaves a database that somebody must repair.
	packagePatience = 30 * time.Second
)

// patienceWith is how long acts may take to stop.
func patienceWith(acts []host.Act) time.Duration {
	for _, a := range acts {
		for _, c := range a.Changes {
			if _, ok := c.(host.Package); ok {
				return packagePatience
			}
		}
	}
	return stopPatience
}

// grace is how long the host may take to stop what has this patience.
func (h *Host) grace(patience time.Duration) time.Duration {
	return h.config.StopGrace + patience - stopPatience
}

// stop ends the process tree of pid on the host, by a channel of its own. What has not stopped after patience is killed.
func (h *Host) stop(ctx context.Context, pid string, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, h.grace(patience))
	defer cancel()
	s := newScript(newMark(), h.config.StateDir, coreLib)
	s.call("k_stop", pid, strconv.Itoa(int(patience/(100*time.Millisecond))))
	p, err := h.start(ctx, s.String(), nil)
	if err != nil {
		return // the session is given up when its grace is over
	}
	unhook := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer unhook()
	_, _ = p.end()
}

// Do implements host.Session.
func (s *session) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	if change, err := checkActs(acts); err != nil {
		return nil, s.host.invalid(change, err)
	}
	if s.given {
		return nil, s.host.invalid("", fmt.Errorf("the host was reset; begin another session"))
	}
	s.patience = patienceWith(acts)
	if limit, bounded := timeLimit(acts); bounded {
		var cancel context.CancelFunc
		// The far side stops by itself; this is for when it does not.
		ctx, cancel = context.WithTimeout(ctx, limit+s.host.grace(s.patience))
		defer cancel()
	}
	var feeding *feed
	if a := acts[0]; a.Stdin != nil && streams(a) {
		var err error
		if feeding, err = s.host.openFeed(ctx, s.pid); err != nil {
			return nil, err
		}
		feeding.start(a.Stdin, a.Progress)
		defer feeding.close()
	}
	var verify host.Query
	for _, a := range acts {
		verify.Merge(a.Verify)
	}
	full := slices.ContainsFunc(acts, reach)
	o := newObservation(verify, full)
	o.asks = "s_query"
	r := &actReader{session: s, acts: acts, now: time.Now().UTC(), answer: newAnswer(o)}
	sc := &script{}
	s.head(sc)
	for _, a := range acts {
		s.act(sc, a, r.now)
	}
	o.render(sc, s.host.config.StateDir)
	sc.line(":") // what is asked for and is not there is no failure
	sent := time.Now()
	code, err := s.ask(ctx, sc.String(), r.take)
	switch {
	case err != nil:
		return nil, err
	case r.failed != nil:
		return nil, feeding.explain(r.failed)
	case code != 0 || r.done < len(acts):
		return nil, &host.Error{Kind: host.KindProtocol, Host: s.host.Name(), ExitCode: code,
			Message: "the act ended without saying why", Output: s.proc.said()}
	}
	facts := s.facts(r.answer, sent, full)
	var hidden []secret.Value
	for _, a := range acts {
		hidden = append(hidden, secrets(a)...)
	}
	for id, said := range facts.Commands {
		said.Stderr = []byte(redact(string(said.Stderr), hidden))
		facts.Commands[id] = said
	}
	return facts, nil
}

// timeLimit is how long all acts together may take; false where one has no limit.
func timeLimit(acts []host.Act) (limit time.Duration, bounded bool) {
	for _, a := range acts {
		if a.Timeout <= 0 {
			return 0, false
		}
		limit += a.Timeout
	}
	return limit, true
}

func streams(a host.Act) bool {
	for _, c := range a.Changes {
		if cmd, ok := c.(host.Command); ok && cmd.StdinStream {
			return true
		}
	}
	return false
}

// head starts the script of acts: the library's variables.
func (s *session) head(sc *script) {
	cut := 0
	if s.host.config.Cut != nil {
		cut = s.host.config.Cut()
	}
	kxCut := ""
	if cut > 0 {
		kxCut = strconv.Itoa(cut)
	}
	sc.line("KX_CUT=" + kxCut + " B=0 Q=" + strconv.Itoa(s.logs.lastSeq+1))
}

// actor starts the script of one act: who acts and for how long.
func (s *session) actor(sc *script, a host.Act) {
	sc.call("s_act", s.run.ID+" "+a.Node, hundredths(a.Timeout), field(s.run.ID), field(a.Node), field(a.Task))
	sc.line("c_env()", "{", ":;", "}")
}

// act adds one act: its changes, the journal's line, and that it is done.
func (s *session) act(sc *script, a host.Act, now time.Time) {
	s.actor(sc, a)
	as := &actScript{script: sc, run: s.run.ID, node: a.Node, logs: s.logs}
	as.changes(a)
	sc.line("I=-1; s_boundary")
	sc.line(`printf '\n%s\n'`, quote(journalLine(a.Node, s.entry(a, now))), `>>"$S/journal" || c_unwritten "$S"`)
	sc.line("k_say did")
}

// entry is what the journal holds of an act that was done.
func (s *session) entry(a host.Act, now time.Time) host.JournalEntry {
	return host.JournalEntry{Run: s.run.ID, Digest: a.Digest, Time: now}
}

// did notes that an act is done.
func (s *session) did(a host.Act, now time.Time) {
	for _, c := range a.Changes {
		if u, ok := c.(host.Unit); ok && u.Enabled != "" {
			s.reload = true
		}
	}
	s.logs.journal[a.Node] = s.entry(a, now)
	if a.Done != nil {
		a.Done()
	}
}

// facts completes what an act's observation has told by what was known before.
func (s *session) facts(a *answer, sent time.Time, full bool) *host.Facts {
	if !full {
		a.facts.System = s.system
	}
	f := a.finish(sent)
	if !full {
		f.Taken, f.ClockSkew = time.Now().Add(s.skew), s.skew
	}
	f.System.User = s.host.config.User
	s.system, s.skew = f.System, f.ClockSkew
	f.Journal, f.UndoEntries = make(map[string]host.JournalEntry, len(s.logs.journal)), len(s.logs.entries)
	for node, e := range s.logs.journal {
		f.Journal[node] = e
	}
	f.Owner, f.OwnerUnreadable = s.owner, s.unreadable
	f.Serial, f.SerialUnreadable = s.serial, s.serialUnreadable
	return f
}

// End implements host.Session.
func (s *session) End(ctx context.Context, keep bool) error {
	s.stopAhead(ctx)
	defer func() {
		s.broken = s.host.invalid("", fmt.Errorf("the session has ended"))
		_ = s.proc.Close()
	}()
	if s.broken != nil {
		return s.broken
	}
	var err error
	if !s.given {
		err = s.tidy(ctx, keep)
	}
	_ = s.proc.CloseWrite()
	stop := context.AfterFunc(ctx, func() { _ = s.proc.Close() })
	defer stop()
	if _, lost := s.proc.end(); err == nil && lost != nil {
		err = s.host.fail(lost)
	}
	return err
}

// tidy leaves the host's memory and systemd as a finished run should.
func (s *session) tidy(ctx context.Context, keep bool) error {
	sc := &script{}
	if s.reload {
		sc.line("systemctl daemon-reload")
	}
	if drop := s.logs.superseded(s.run.ID); !keep && len(drop) > 0 {
		sc.call("u_forget", drop...)
	}
	sc.line(`rm -rf "$T" "$S/act" "$S/holder"`)
	code, err := s.ask(ctx, sc.String(), func(f frame) error { return s.host.unexpected(f) })
	if err == nil && code != 0 {
		err = s.host.commandError("", "cannot tidy the state directory", code, s.proc.said())
	}
	return err
}
