// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// File is a regular file with this content, from Content or from an Artifact.
type File struct {
	Path    string    `json:"path"`
	Mode    Mode      `json:"mode"`
	Owner   string    `json:"owner,omitempty"`
	Group   string    `json:"group,omitempty"`
	Content Text      `json:"content,omitempty"`
	From    *Artifact `json:"from,omitempty"`
	// Authority, where the file is one half of a key pair of the cluster, is the path of the pair's certificate; see func Authority.
	Authority string `json:"authority,omitempty"`
	// Key, where the content is made of a key that a host must not have another of, is the path of the file with that key alone; see
	// func Key.
	Key string `json:"key,omitempty"`
	// ReadBy are units that read the file when they start, and that something else than a step may restart once it is written: what
	// restores it restarts those that were started again since, too.
	ReadBy []string `json:"readBy,omitempty"`
	// Where, if not "", is the path of what the file takes the place of: on a host that has nothing there, it is not written. One that is
	// at Path already is brought to this all the same.
	Where string `json:"where,omitempty"`
}

// Meta is what the content takes.
func (f File) Meta() Meta { return Meta{Name: "file", Takes: f.Content.Takes()} }

// Observe asks for the file and its digest, and for an authority's certificate.
func (f File) Observe() host.Query {
	q := host.Query{Paths: []host.PathQuery{{Path: f.Path, Digest: true}}}
	if f.Authority != "" {
		q.Merge(host.Query{Paths: []host.PathQuery{{Path: f.Authority, Content: true}}})
	}
	if f.Key != "" && f.Key != f.Path {
		q.Merge(host.Query{Paths: []host.PathQuery{{Path: f.Key, Digest: true}}})
	}
	if f.Where != "" {
		q.Merge(host.Query{Paths: []host.PathQuery{{Path: f.Where}}})
	}
	return q
}

// Due reports whether the host is one on which the file is written.
func (f File) Due(seen *host.Facts) bool {
	return f.Where == "" || seen.Paths[f.Where].Exists || seen.Paths[f.Path].Exists
}

// Precheck compares digest, mode and owner.
func (f File) Precheck(v View) (Diff, error) {
	if !f.Due(v.Facts) {
		return nil, nil
	}
	if f.Authority != "" {
		if err := f.checkAuthority(v); err != nil {
			return nil, err
		}
	}
	if f.Key != "" {
		if err := f.checkKey(v); err != nil {
			return nil, err
		}
	}
	want, err := f.digest(v.Values)
	if err != nil {
		return nil, err
	}
	have := v.Facts.Paths[f.Path]
	subject := host.File{Path: f.Path}.Key()
	from, to := kindOf(have), short(want)
	if f.From == nil && !f.Content.Known() {
		// The digest of a password tells whether a guess is right.
		if to = f.Content.refs(); have.Exists && have.Mode.IsRegular() {
			from = "other content"
		}
	}
	if !have.Exists || !have.Mode.IsRegular() {
		return Diff{{subject, from, to}}, nil
	}
	var d Diff
	if have.Digest != want {
		d = append(d, Delta{subject, from, to})
	}
	return append(d, accessDiff(subject, have, f.Mode, f.Owner, f.Group)...), nil
}

func (f File) digest(v Values) (string, error) {
	if f.From != nil {
		return f.From.Digest, nil
	}
	content, err := f.Content.Resolve(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content.Reveal())
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Effect writes the file.
func (f File) Effect(v View) (Effect, error) {
	var before []host.Change
	for _, name := range f.ReadBy {
		before = append(before, host.Unit{Name: name, Active: "left"})
	}
	c := host.File{Path: f.Path, Mode: fs.FileMode(f.Mode), Owner: f.Owner, Group: f.Group}
	if f.From != nil {
		c.Blob = f.From.Digest
		e := Effect{Changes: append(before, c)}
		if have := v.Facts.Paths[f.Path]; have.Digest != f.From.Digest {
			e.Blobs = []Artifact{*f.From}
		}
		return e, nil
	}
	content, err := f.Content.Resolve(v.Values)
	if err != nil {
		return Effect{}, err
	}
	c.Content = content
	return Effect{Changes: append(before, c)}, nil
}

// Run writes the file.
func (f File) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, f) }

// Rollback restores what was there.
func (f File) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Directory is a directory.
type Directory struct {
	Path  string `json:"path"`
	Mode  Mode   `json:"mode"`
	Owner string `json:"owner,omitempty"`
	Group string `json:"group,omitempty"`
}

// Meta names the kind.
func (d Directory) Meta() Meta { return Meta{Name: "directory"} }

// Observe asks for the directory.
func (d Directory) Observe() host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: d.Path}}}
}

// Precheck compares kind, mode and owner.
func (d Directory) Precheck(v View) (Diff, error) {
	have := v.Facts.Paths[d.Path]
	subject := host.Directory{Path: d.Path}.Key()
	if !have.Mode.IsDir() {
		return Diff{{subject, kindOf(have), "directory"}}, nil
	}
	return accessDiff(subject, have, d.Mode, d.Owner, d.Group), nil
}

// Effect makes the directory.
func (d Directory) Effect(View) (Effect, error) {
	return changes(host.Directory{Path: d.Path, Mode: fs.FileMode(d.Mode), Owner: d.Owner, Group: d.Group}), nil
}

// Run makes the directory.
func (d Directory) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, d) }

// Rollback restores what was there.
func (d Directory) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Absent is a path that must not exist; undo restores what was there.
type Absent struct {
	Path string `json:"path"`
}

// Meta names the kind.
func (a Absent) Meta() Meta { return Meta{Name: "absent"} }

// Observe asks for the path.
func (a Absent) Observe() host.Query { return host.Query{Paths: []host.PathQuery{{Path: a.Path}}} }

// Precheck differs when the path exists.
func (a Absent) Precheck(v View) (Diff, error) {
	have := v.Facts.Paths[a.Path]
	if !have.Exists {
		return nil, nil
	}
	return Diff{{host.Absent{Path: a.Path}.Key(), kindOf(have), "absent"}}, nil
}

// Effect moves the path away.
func (a Absent) Effect(View) (Effect, error) { return changes(host.Absent(a)), nil }

// Run moves the path away.
func (a Absent) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, a) }

// Rollback restores what was there.
func (a Absent) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Block is a managed block in a file that others write too.
type Block struct {
	Path    string `json:"path"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Meta names the kind.
func (b Block) Meta() Meta { return Meta{Name: "block"} }

// Observe asks for the block.
func (b Block) Observe() host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: b.Path, Block: b.Name}}}
}

// Precheck compares the block's lines.
func (b Block) Precheck(v View) (Diff, error) {
	have, ok := v.Facts.Blocks[b.Path+"#"+b.Name]
	if ok == (b.Content != "") && have == b.Content {
		return nil, nil
	}
	from, to := "absent", "absent"
	if ok {
		from = fmt.Sprintf("%d bytes", len(have))
	}
	if b.Content != "" {
		to = fmt.Sprintf("%d bytes", len(b.Content))
	}
	return Diff{{host.Block{Path: b.Path, Name: b.Name}.Key(), from, to}}, nil
}

// Effect writes the block.
func (b Block) Effect(View) (Effect, error) { return changes(host.Block(b)), nil }

// Run writes the block.
func (b Block) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, b) }

// Rollback restores the block that was there, or none.
func (b Block) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Writes lists the files that s, with all its parts, makes, be it on some hosts only.
func Writes(s Step) []string {
	switch s := s.(type) {
	case File:
		return []string{s.Path}
	case Certificate:
		return []string{s.Path, s.KeyPath}
	case Sequence:
		var all []string
		for _, p := range s.Parts {
			all = append(all, Writes(p)...)
		}
		return all
	}
	return nil
}

// AddsTo lists the files to which s, with all its parts, adds a block of its own.
func AddsTo(s Step) []string {
	switch s := s.(type) {
	case Block:
		return []string{s.Path}
	case Sequence:
		var all []string
		for _, p := range s.Parts {
			all = append(all, AddsTo(p)...)
		}
		return all
	}
	return nil
}

// Mode is a file mode that is written in octal ("0644") in JSON.
type Mode fs.FileMode

// MarshalText writes octal.
func (m Mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads octal.
func (m *Mode) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 8, 12)
	if err != nil {
		return fmt.Errorf("a mode is octal, such as \"0644\": %w", err)
	}
	*m = Mode(n)
	return nil
}

func changes(cs ...host.Change) Effect { return Effect{Changes: cs} }

// accessDiff compares permission bits and owner.
func accessDiff(subject string, have host.Path, mode Mode, owner, group string) Diff {
	var d Diff
	if got := have.Mode.Perm(); got != fs.FileMode(mode) {
		d = append(d, Delta{subject, fmt.Sprintf("mode %04o", got), fmt.Sprintf("mode %04o", uint32(mode))})
	}
	if user, of := rootOr(owner), rootOr(group); !isAccount(user, have.Owner, have.UID) || !isAccount(of, have.Group, have.GID) {
		d = append(d, Delta{subject, "owner " + have.Owner + ":" + have.Group, "owner " + user + ":" + of})
	}
	return d
}

// isAccount reports whether a name or number is that of an account, which has both.
func isAccount(wanted, name string, number uint32) bool {
	if wanted == name {
		return true
	}
	n, err := strconv.ParseUint(wanted, 10, 32)
	return err == nil && uint32(n) == number
}

func rootOr(name string) string {
	if name == "" || name == "0" {
		return "root"
	}
	return name
}

func kindOf(p host.Path) string {
	switch {
	case !p.Exists:
		return "absent"
	case p.Mode.IsDir():
		return "directory"
	case p.Mode&fs.ModeSymlink != 0:
		return "→ " + p.Target
	default:
		return short(p.Digest)
	}
}

// short is a digest as people compare it.
func short(digest string) string {
	if len(digest) > 15 {
		return digest[:15]
	}
	return digest
}
