// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"io"
	"slices"
	"time"
)

// StateDir is where a host keeps its lock, journal, undo store and staged content. It is created with mode 0700 by
// the first Begin and removed by an Undo of everything.
const StateDir = "/var/lib/kubexm"

// Host is one machine, reached and authenticated. Its methods may be called concurrently; implementations bound how
// many channels they open at once. All errors are *Error (see there) or wrap ctx.Err().
type Host interface {
	// Name is the name that plans, events and errors use for the host.
	Name() string

	// Observe answers all of q, plus the System facts and the journal, in one exchange. It changes nothing and takes no
	// lock. What cannot be read (a path below a file, an unknown unit) is an answer, not an error.
	Observe(ctx context.Context, q Query) (*Facts, error)

	// Begin takes the host's write lock and returns the session that holds it until End or until the connection is
	// lost. When another writer holds it the error is KindLocked and names that writer. Begin also waits (bounded by
	// ctx) for an act that an earlier, cut connection left running. With the lock held, and before anything else is changed,
	// it compares r.Ownership with the host's record: a host that nobody owns gets the owner that is claimed, one that is somebody
	// else's is refused with KindForeign unless r adopts it. Where a host is taken over from another authority, its
	// journal is dropped: what runs of another cluster have finished is not done for this one. The undo store stays. Then r.Serial, if
	// there is one, is compared with that of the host, and written: KindSuperseded if the host has a later one.
	Begin(ctx context.Context, r Run) (Session, error)

	// Exec runs one command for a person (`kubexm run command`), outside of any session: no lock, no undo, no journal.
	// A command that exits non-zero is a Result, not an error.
	Exec(ctx context.Context, c Command) (*Result, error)

	// Close ends the connection and with it every session.
	Close() error
}

// Run says who is about to change the host, for the lock, the journal and the undo store.
type Run struct {
	// ID is unique per run (the pipeline id of events and logs).
	ID string `json:"id"`
	// Holder names the writer to anyone who finds the host locked, e.g. "kubexm 4711@laptop" or "manager capi-kubexm-0".
	Holder string `json:"holder"`
	// Ownership says for whom the host is changed.
	Ownership Ownership `json:"-"`
	// Serial, if not nil, is that of the state with which the host is changed.
	Serial *Serial `json:"-"`
}

// Session is the right to change a host. It is used by one goroutine at a time.
type Session interface {
	// Waited reports whether, before the lock was taken, an act of a connection that was cut had to come to its end: what was
	// seen of the host until then may not be so any more.
	Waited() bool

	// Stage makes content present in the host's staging area so that File changes can name it by digest. Content whose
	// digest is staged already is not sent again; the rest goes as one stream, compressed where it pays, and
	// is verified on the far side before it counts.
	Stage(ctx context.Context, blobs []Blob) error

	// StageAhead begins to send what later calls of Stage will ask for, a lot for each in their order, and does not wait for it:
	// it is sent while acts go on. What goes wrong with a lot is not told; its Stage sends it again. End and Undo stop it.
	StageAhead(ctx context.Context, lots ...[]Blob) error

	// Do performs acts in their order in one exchange. Of each act: for each change in order save what it replaces in the undo
	// store, then change; then journal. After the last one Verify of all is answered. When a change fails the rest is not
	// attempted, its act is not journaled, and the error names the change; the acts before it are done, and their Done was
	// called. Doing the same act again is safe, whatever part of it was done. An act with Stdin is the only one.
	Do(ctx context.Context, acts ...Act) (*Facts, error)

	// Undo restores what the acts of the scope replaced, last in first out, and calls report (if not nil) for each entry
	// as it is restored. It may be cut and called again. An undo of everything removes StateDir when it is through.
	// (The records of the owner and of the serial go with it.) It goes on past an entry that cannot be restored and returns all such
	// failures joined; those entries stay.
	Undo(ctx context.Context, s Scope, report func(Undone)) error

	// End releases the lock. With keep false, entries of this run whose key was recorded by an earlier run already are
	// dropped: they would only matter for an undo of this run.
	End(ctx context.Context, keep bool) error
}

// Blob is content to be staged, identified by its digest.
type Blob struct {
	// Digest is "sha256:" and 64 lower-case hex digits.
	Digest string
	// Size in bytes.
	Size int64
	// Name is for people: messages and progress.
	Name string
	// Open returns the content from its start. It may be called again after a failure.
	Open func() (io.ReadCloser, error)
}

// Act is what one step does to a host.
type Act struct {
	// Node identifies the plan node in journal and undo store, e.g. "kubernetes/kubelet/config". Task is its task, the
	// unit of a partial undo.
	Node, Task string
	// Digest of the step's input, journaled when the act succeeds.
	Digest string
	// Changes in the order in which they are made.
	Changes []Change
	// Done, if not nil, is called when the host says that the act is made and journaled, before Verify is answered.
	Done func()
	// Verify is answered after the changes of all acts, in the same exchange.
	Verify Query
	// Stdin feeds the one Command change that has StdinStream set; it is streamed, never held in memory.
	Stdin func() (io.ReadCloser, error)
	// Progress, if not nil, is notified of how many bytes of Stdin have been sent.
	Progress func(sent int64)
	// Timeout of the whole act; 0 means ctx alone bounds it. The far side is stopped too.
	Timeout time.Duration
}

// Scope selects undo entries.
type Scope struct {
	// Run, Task, Node narrow the scope when not empty; all empty means everything.
	Run, Task, Node string
	// From narrows it to what was done since this node was begun the last time, that included, in whichever runs. A node that has no
	// entry was never begun.
	From string
	// Except are tasks whose entries stay, whatever else the scope selects.
	Except []string
}

// All reports whether the scope is everything.
func (s Scope) All() bool {
	return s.Run == "" && s.Task == "" && s.Node == "" && s.From == "" && len(s.Except) == 0
}

// OfRun reports whether the scope is all that a run did, but for its exceptions.
func (s Scope) OfRun(run string) bool {
	return s.Run == run && s.Task == "" && s.Node == "" && s.From == ""
}

// Selects reports whether an entry that a node of a task made in a run is within the scope. Whether it is one since From, its position
// tells.
func (s Scope) Selects(run, task, node string) bool {
	return (s.Run == "" || s.Run == run) && (s.Task == "" || s.Task == task) && (s.Node == "" || s.Node == node) &&
		!slices.Contains(s.Except, task)
}

// Undone is one entry restored by Undo.
type Undone struct {
	// Key names the resource: "file /etc/hosts", "unit kubelet.service", "sysctl net.ipv4.ip_forward", …
	Key  string
	Node string
	// Err is why it could not be restored; nil when it was.
	Err error
}
