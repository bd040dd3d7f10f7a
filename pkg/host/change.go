// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Change is one reversible change of a host: File, Directory, Absent, Block, Unit, Sysctl, Module, Swap, Package,
// Claim, Inherit or Command. The set is closed: every implementation of Session knows how to make and how to undo each of them.
type Change interface {
	// Key names what is changed, as Undone.Key and error messages do.
	Key() string
	change()
}

// File makes Path a regular file with this content, mode and owner, by a temporary file beside it, fsync and rename;
// missing parents are made (mode 0755) and undone too. Content that changes in no way leaves the file alone.
type File struct {
	Path         string
	Mode         fs.FileMode // permission bits; never wider on the way there
	Owner, Group string      // names or numbers; empty means root
	Content      secret.Value
	// Blob is the digest of staged content to use instead of Content; the staged copy is consumed.
	Blob string
}

// Directory makes Path a directory with this mode and owner, and missing parents with mode 0755.
type Directory struct {
	Path         string
	Mode         fs.FileMode
	Owner, Group string
}

// Absent makes Path not exist. What was there, a tree included, is kept in the undo store.
type Absent struct{ Path string }

// Block keeps Content between "# BEGIN kubexm <Name>" and "# END kubexm <Name>" in the file at Path, at its end when
// it is new, and leaves the rest of the file alone. An empty Content removes the block. Undo removes or restores the
// block only, so edits that others made beside it since are kept. The file must exist.
type Block struct{ Path, Name, Content string }

// Unit brings a systemd unit into a state. systemd is asked to reload its files first where it needs that.
type Unit struct {
	Name string
	// Enabled: "enabled", "disabled", "masked" or "" to leave it.
	Enabled string
	// Active: "started", "restarted", "reloaded", "stopped", "left" or "" to leave it. A unit that is asked to start or restart must
	// be active and stay so for Settle, or the change fails with the end of its journal; so must one that runs already and is to be
	// started. "left" is for a unit that something else may restart after what comes next is changed: nothing is done to it now, and
	// the undo restarts one that ran, if it was started again since.
	Active string
	Settle time.Duration
}

// Sysctl sets a kernel parameter now. (What makes it last over a reboot is a File.)
type Sysctl struct{ Name, Value string }

// Module loads a kernel module; one that is built in counts as loaded. Undo unloads it if it can be.
type Module struct{ Name string }

// SwapOff turns all swap off now and comments its lines in /etc/fstab; undo turns on what was on.
type SwapOff struct{}

// Package installs distribution packages that are missing, by the host's own package manager or, where Blobs are
// given, from those staged package files. Undo removes those that this change added (and what came with them).
type Package struct {
	Names []string
	Blobs []string
}

// Claim declares that paths will be filled by something that we start (a runtime's data, what kubeadm writes). It
// records what is there now; undo removes whatever is there then, unmounting what is mounted below first, and puts
// back what was.
// A file system that was mounted at one of Paths when it was claimed stays mounted, and has on it what was there then. What is mounted
// below them is no part of what is recorded. Of several claims of a path, the first counts until it is undone.
type Claim struct{ Paths []string }

// Inherit takes over what somebody else has made on the host and what is in use: it changes nothing. Undo stops and disables Units and
// removes Paths, whatever they hold by then: what was there when it was made is kept nowhere and comes back from nowhere. A unit is not
// started by the undo of a later change of it either. Paths that are needed to stop a unit stay until it is stopped: units are undone
// first, the last named first.
//
// Files are paths that a File of a later run will make. They are removed when this is undone, not when that is: what that run has made
// runs until then.
type Inherit struct{ Paths, Files, Units []string }

// Command runs an argument vector as root, without a terminal. It is the last resort: it cannot be observed, so the step
// that uses it must say by other means whether it is needed.
type Command struct {
	// Title says in a few words what it does, for messages and Key.
	Title string
	Argv  []string
	Env   []string
	Stdin secret.Value
	// StdinStream feeds Act.Stdin to this command.
	StdinStream bool
	Timeout     time.Duration
	// Undo is recorded before the command runs and run when the change is undone; it must not mind being run twice, or on a
	// host on which Argv never ran or is gone. With Argv empty, only Undo is recorded.
	Undo []string
}

func (c File) Key() string      { return "file " + c.Path }
func (c Directory) Key() string { return "directory " + c.Path }
func (c Absent) Key() string    { return "path " + c.Path }
func (c Block) Key() string     { return "block " + c.Name + " of " + c.Path }
func (c Unit) Key() string      { return "unit " + c.Name }
func (c Sysctl) Key() string    { return "sysctl " + c.Name }
func (c Module) Key() string    { return "module " + c.Name }
func (c SwapOff) Key() string   { return "swap" }
func (c Package) Key() string   { return "packages" }
func (c Claim) Key() string     { return "claim" }
func (c Inherit) Key() string   { return "inherited" }
func (c Command) Key() string   { return "command " + c.Title }

func (File) change()      {}
func (Directory) change() {}
func (Absent) change()    {}
func (Block) change()     {}
func (Unit) change()      {}
func (Sysctl) change()    {}
func (Module) change()    {}
func (SwapOff) change()   {}
func (Package) change()   {}
func (Claim) change()     {}
func (Inherit) change()   {}
func (Command) change()   {}
