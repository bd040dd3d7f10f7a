// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// connection is host.Host.
type connection struct {
	machine *Machine
	closed  bool // guarded by machine.mu
}

// Connect returns a host.Host for the machine.
func (m *Machine) Connect() host.Host { return &connection{machine: m} }

// Name implements host.Host.
func (c *connection) Name() string { return c.machine.name }

// Close implements host.Host.
func (c *connection) Close() error {
	m := c.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	c.closed = true
	if m.writer != nil && m.writer.connection == c {
		m.writer = nil
	}
	return nil
}

func (m *Machine) error(kind host.Kind, message string) *host.Error {
	return &host.Error{Kind: kind, Host: m.name, Message: message}
}

// exchange takes the time and counts.
func (c *connection) exchange(ctx context.Context) error {
	m := c.machine
	if m.Latency > 0 {
		timer := time.NewTimer(m.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		e := m.error(host.KindTimeout, "stopped")
		e.Err = ctx.Err()
		return e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.closed {
		return m.error(host.KindUnreachable, "the connection is lost")
	}
	m.stats.Exchanges++
	return nil
}

// Observe implements host.Host.
func (c *connection) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	if err := c.exchange(ctx); err != nil {
		return nil, err
	}
	for _, command := range q.Commands {
		if command.Timeout < 0 {
			return nil, c.machine.error(host.KindInvalid, "the timeout of "+command.ID+" is negative")
		}
	}
	return c.machine.observe(q), nil
}

// Exec implements host.Host by Machine.OnCommand.
func (c *connection) Exec(ctx context.Context, command host.Command) (*host.Result, error) {
	if err := c.exchange(ctx); err != nil {
		return nil, err
	}
	r := c.machine.run(command)
	return &r, nil
}

// Begin implements host.Host.
func (c *connection) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	m := c.machine
	if r.ID == "" || r.Holder == "" {
		return nil, m.error(host.KindInvalid, "a run needs an id and a holder")
	}
	if !r.Ownership.IsZero() {
		if err := r.Ownership.Owner.Validate(); err != nil {
			e := m.error(host.KindInvalid, "whose the host is to be")
			e.Err = err
			return nil, e
		}
	}
	if r.Serial != nil {
		if err := r.Serial.Validate(); err != nil {
			e := m.error(host.KindInvalid, "the serial of the state")
			e.Err = err
			return nil, e
		}
	}
	if err := c.exchange(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writer != nil {
		return nil, m.error(host.KindLocked, m.writer.run.Holder+" holds the host for run "+m.writer.run.ID)
	}
	if err := m.admit(r.Ownership); err != nil {
		return nil, err
	}
	if err := m.supersede(r.Serial); err != nil {
		return nil, err
	}
	m.writer = &session{connection: c, machine: m, run: r}
	return m.writer, nil
}

// admit compares what is claimed with the machine's owner, and writes the record where the machine is taken. The machine is
// locked.
func (m *Machine) admit(claim host.Ownership) error {
	if _, ok := m.files[host.StateDir]; !ok {
		m.files[host.StateDir] = m.stamp(directory("root", "root", 0o700))
	}
	seen := &host.Facts{System: m.System, Journal: m.journal, UndoEntries: len(m.entries)}
	m.own(seen)
	if err := claim.Check(m.name, seen); err != nil {
		return err
	}
	if claim.IsZero() || claim.Owns(seen) {
		return nil
	}
	if seen.Owner != nil && seen.Owner.Authority != claim.Owner.Authority {
		m.journal = map[string]host.JournalEntry{}
	}
	owner := claim.Owner
	owner.MachineID = m.System.MachineID
	record, err := json.Marshal(owner)
	if err != nil {
		return err
	}
	m.files[ownerFile] = m.stamp(node{mode: 0o600, owner: "root", group: "root", content: string(record)})
	return nil
}

const ownerFile = host.StateDir + "/" + host.OwnerFile

// own tells from the machine's record whose it is. The machine is locked.
func (m *Machine) own(f *host.Facts) {
	record, found := m.files[ownerFile]
	if !found {
		return
	}
	o, err := host.ReadOwner([]byte(record.content))
	if err != nil {
		f.OwnerUnreadable = err.Error()
		return
	}
	f.Owner = o
}

const serialFile = host.StateDir + "/" + host.SerialFile

// supersede compares the serial with the machine's, and writes it. The machine is locked.
func (m *Machine) supersede(serial *host.Serial) error {
	if serial == nil {
		return nil
	}
	seen := &host.Facts{}
	m.serial(seen)
	if err := serial.CheckSerial(m.name, seen); err != nil {
		return err
	}
	record, err := json.Marshal(serial)
	if err != nil {
		return err
	}
	m.files[serialFile] = m.stamp(node{mode: 0o600, owner: "root", group: "root", content: string(record)})
	return nil
}

// serial tells which state the machine was changed with. The machine is locked.
func (m *Machine) serial(f *host.Facts) {
	record, found := m.files[serialFile]
	if !found {
		return
	}
	s, err := host.ReadSerial([]byte(record.content))
	if err != nil {
		f.SerialUnreadable = err.Error()
		return
	}
	f.Serial = s
}

// run hands a command to OnCommand. The machine is not locked meanwhile, so that the command may change it.
func (m *Machine) run(c host.Command) host.Result {
	if m.OnCommand == nil {
		return host.Result{}
	}
	return m.OnCommand(m, c)
}

func (m *Machine) observe(q host.Query) *host.Facts {
	commands := map[string]host.Result{}
	for _, c := range q.Commands {
		commands[c.ID] = m.run(host.Command{Title: c.ID, Argv: c.Argv, Timeout: c.Limit()})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &host.Facts{
		Taken: born.Add(m.tick), System: m.System, Paths: map[string]host.Path{},
		Blocks: map[string]string{}, Units: map[string]host.UnitState{},
		Sysctls: map[string]string{}, Modules: map[string]bool{}, Packages: map[string]string{},
		Commands: commands, Journal: maps.Clone(m.journal), UndoEntries: len(m.entries),
	}
	m.own(f)
	m.serial(f)
	for _, p := range q.Paths {
		m.observePath(f, p)
	}
	for _, u := range q.Units {
		state, ok := m.units[u]
		if !ok {
			state = host.UnitState{Load: "not-found", Active: "inactive"}
			if _, ok := m.files["/etc/systemd/system/"+u]; ok {
				state = host.UnitState{Load: "loaded", Active: "inactive", File: "disabled"}
			}
		}
		f.Units[u] = state
	}
	for _, s := range q.Sysctls {
		f.Sysctls[s] = m.sysctls[s]
	}
	for _, name := range q.Modules {
		f.Modules[name] = m.modules[name]
	}
	for _, p := range q.Packages {
		f.Packages[p] = m.packages[p]
	}
	return f
}

func (m *Machine) observePath(f *host.Facts, q host.PathQuery) {
	n, ok := m.files[q.Path]
	if !ok {
		f.Paths[q.Path] = host.Path{}
		return
	}
	p := f.Paths[q.Path]
	p.Exists, p.Mode, p.Owner, p.Group = true, n.mode, n.owner, n.group
	p.UID, p.GID = m.Accounts[n.owner], m.Accounts[n.group]
	p.Size, p.Modified, p.Target = int64(len(n.content)), n.modified, n.target
	if n.mode.IsDir() {
		for _, b := range m.below(q.Path) {
			if path.Dir(b) == q.Path {
				p.Entries++
			}
		}
	}
	if n.mode.IsRegular() && q.Digest {
		p.Digest = digest(n.content)
	}
	if n.mode.IsRegular() && q.Content {
		p.Content = []byte(n.content[:min(len(n.content), host.MaxContent)])
	}
	f.Paths[q.Path] = p
	if q.Block != "" {
		if _, block, _, ok := cutBlock(m.files[m.behind(q.Path)].content, q.Block); ok {
			f.Blocks[q.Path+"#"+q.Block] = block
		}
	}
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// cutBlock takes the block out of content.
func cutBlock(content, name string) (before, block, after string, ok bool) {
	begin, end := "# BEGIN kubexm "+name+"\n", "# END kubexm "+name+"\n"
	before, rest, ok := strings.Cut(content, begin)
	if !ok {
		return content, "", "", false
	}
	block, after, ok = strings.Cut(rest, end)
	return before, block, after, ok
}

// End implements host.Session.
func (s *session) End(ctx context.Context, keep bool) error {
	if err := s.exchange(ctx); err != nil {
		return err
	}
	m := s.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writer = nil
	if keep {
		return nil
	}
	earlier := map[string]bool{}
	for _, e := range m.entries {
		if e.run != s.run.ID {
			earlier[e.identity] = true
		}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e *entry) bool { return e.run == s.run.ID && earlier[e.identity] })
	return nil
}

// exchange is the connection's, for who still holds the lock.
func (s *session) exchange(ctx context.Context) error {
	if err := s.connection.exchange(ctx); err != nil {
		return err
	}
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	if s.machine.writer != s {
		return s.machine.error(host.KindUnreachable, "the session is over")
	}
	return nil
}

// Waited implements host.Session. Acts end with their connection here.
func (s *session) Waited() bool { return false }

// Stage implements host.Session.
func (s *session) Stage(ctx context.Context, blobs []host.Blob) error {
	if err := s.exchange(ctx); err != nil {
		return err
	}
	var failures []error
	for _, b := range blobs {
		if err := s.stage(b); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// StageAhead implements host.Session. Nothing takes time here, so it leaves all to Stage.
func (s *session) StageAhead(ctx context.Context, _ ...[]host.Blob) error { return s.exchange(ctx) }

func (s *session) stage(b host.Blob) error {
	m := s.machine
	m.mu.Lock()
	_, have := m.staged[b.Digest]
	m.mu.Unlock()
	if have {
		return nil
	}
	content, err := readAll(b.Open)
	if err == nil && digest(content) != b.Digest {
		err = fmt.Errorf("its source has the digest %s instead of %s", digest(content), b.Digest)
	}
	if err != nil {
		e := m.error(host.KindCorrupt, "its source cannot be read with the declared size and digest")
		e.Change, e.Err = "content "+b.Name, err
		return e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.staged[b.Digest] = []byte(content)
	m.stats.BytesStaged += b.Size
	return nil
}
