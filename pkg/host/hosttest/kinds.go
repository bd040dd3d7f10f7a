// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// kind is one change in one situation.
type kind struct {
	name string
	// prepare makes what is there before.
	prepare func(r *rig)
	changes func(r *rig) []host.Change
	blobs   func(r *rig) []host.Blob
	query   func(r *rig) host.Query
	// made reports what is not as the change should have made it, "" if all is.
	made func(r *rig, f *host.Facts) string
	// journaled says that nothing but the journal tells whether it is made.
	journaled bool
	// fill does what something that we started would do, before the undo.
	fill func(r *rig)
	// keys of the entries that an undo reports, last in first out; nil is not checked.
	keys func(r *rig) []string
	// system says that it touches more than files.
	system bool
}

const (
	oldText = "what was there\n"
	newText = "it's \"new\" $HOME `id` %s \\n\n\ttext\n"
)

// binary is content that no shell can hold in a variable.
var binary = "\x00\x01-%s\\'\n\xff\x00end"

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// paths asks for everything about paths of the rig's directory, and for the directory itself.
func paths(names ...string) func(r *rig) host.Query {
	return func(r *rig) host.Query {
		q := host.Query{Paths: []host.PathQuery{{Path: r.Dir}}}
		for _, name := range names {
			q.Paths = append(q.Paths, host.PathQuery{Path: r.Dir + "/" + name, Digest: true, Content: true})
		}
		return q
	}
}

// expect is one path as it should be made.
func expect(name string, mode fs.FileMode, content string) func(r *rig, f *host.Facts) string {
	return func(r *rig, f *host.Facts) string {
		p := f.Paths[r.Dir+"/"+name]
		switch {
		case !p.Exists:
			return name + " is not there"
		case p.Mode != mode:
			return name + " has mode " + p.Mode.String()
		case mode.IsRegular() && p.Digest != digestOf(content):
			return name + " holds " + string(p.Content)
		}
		return ""
	}
}

func fileKinds() []kind {
	return []kind{
		{
			name: "FileNew",
			changes: func(r *rig) []host.Change {
				return []host.Change{host.File{Path: r.Dir + "/a/b/new", Mode: 0o644, Content: secret.New(newText)}}
			},
			query: paths("a", "a/b", "a/b/new"),
			made:  expect("a/b/new", 0o644, newText),
			keys: func(r *rig) []string {
				return []string{"file " + r.Dir + "/a/b/new", "directory " + r.Dir + "/a/b", "directory " + r.Dir + "/a"}
			},
		},
		{
			name: "FileBinary",
			changes: func(r *rig) []host.Change {
				return []host.Change{host.File{Path: r.Dir + "/new", Mode: 0o600, Content: secret.New(binary)}}
			},
			query: paths("new"),
			made:  expect("new", 0o600, binary),
		},
		{
			name: "FileEmpty",
			changes: func(r *rig) []host.Change {
				return []host.Change{host.File{Path: r.Dir + "/new", Mode: 0o755}}
			},
			query: paths("new"),
			made:  expect("new", 0o755, ""),
		},
		{
			name:    "FileReplaced",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/old name", oldText, 0o640) },
			changes: func(r *rig) []host.Change {
				return []host.Change{host.File{Path: r.Dir + "/old name", Mode: 0o400, Owner: r.Owner, Group: r.Group, Content: secret.New(newText)}}
			},
			query: paths("old name"),
			made: func(r *rig, f *host.Facts) string {
				if p := f.Paths[r.Dir+"/old name"]; p.Owner != r.Owner || p.Group != r.Group {
					return "owner " + p.Owner + ":" + p.Group
				}
				return expect("old name", 0o400, newText)(r, f)
			},
		},
		{
			name: "FileOwnerByNumber",
			changes: func(r *rig) []host.Change {
				uid, gid := r.IDs(r.t)
				return []host.Change{host.File{Path: r.Dir + "/new", Mode: 0o640, Owner: fmt.Sprint(uid), Group: fmt.Sprint(gid)}}
			},
			query: paths("new"),
			made: func(r *rig, f *host.Facts) string {
				uid, gid := r.IDs(r.t)
				if p := f.Paths[r.Dir+"/new"]; p.Owner != r.Owner || p.Group != r.Group || p.UID != uid || p.GID != gid {
					return fmt.Sprintf("owner %s:%s (%d:%d)", p.Owner, p.Group, p.UID, p.GID)
				}
				return expect("new", 0o640, "")(r, f)
			},
		},
		{
			name:    "FileMode",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/old", oldText, 0o640) },
			changes: func(r *rig) []host.Change {
				return []host.Change{host.File{Path: r.Dir + "/old", Mode: 0o711, Content: secret.New(oldText)}}
			},
			query: paths("old"),
			made:  expect("old", 0o711, oldText),
		},
		{
			name:    "FileFromBlob",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/tool", oldText, 0o755) },
			changes: func(r *rig) []host.Change {
				return []host.Change{
					host.File{Path: r.Dir + "/tool", Mode: 0o755, Blob: digestOf(binary)},
					host.File{Path: r.Dir + "/tool2", Mode: 0o750, Blob: digestOf(binary)},
				}
			},
			blobs: func(*rig) []host.Blob { return []host.Blob{blobOf([]byte(binary), digestOf(binary))} },
			query: paths("tool", "tool2"),
			made: func(r *rig, f *host.Facts) string {
				return expect("tool", 0o755, binary)(r, f) + expect("tool2", 0o750, binary)(r, f)
			},
		},
		{
			name: "DirectoryNew",
			changes: func(r *rig) []host.Change {
				return []host.Change{host.Directory{Path: r.Dir + "/x/d", Mode: 0o711, Owner: r.Owner}}
			},
			query: paths("x", "x/d"),
			made:  expect("x/d", fs.ModeDir|0o711, ""),
		},
		{
			name:    "DirectoryMode",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/d/inside", oldText, 0o600) },
			changes: func(r *rig) []host.Change { return []host.Change{host.Directory{Path: r.Dir + "/d", Mode: 0o700}} },
			query:   paths("d", "d/inside"),
			made:    expect("d", fs.ModeDir|0o700, ""),
		},
		{
			name: "AbsentTree",
			prepare: func(r *rig) {
				r.Put(r.t, r.Dir+"/tree/one", oldText, 0o640)
				r.Put(r.t, r.Dir+"/tree/sub/two", binary, 0o4755&^0o4000|fs.ModeSetuid)
			},
			changes: func(r *rig) []host.Change { return []host.Change{host.Absent{Path: r.Dir + "/tree"}} },
			query:   paths("tree", "tree/one", "tree/sub", "tree/sub/two"),
			made: func(r *rig, f *host.Facts) string {
				if f.Paths[r.Dir+"/tree"].Exists {
					return "the tree is still there"
				}
				return ""
			},
		},
		{
			name:    "BlockNew",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/hosts", "127.0.0.1 localhost", 0o644) }, // no newline at the end
			changes: func(r *rig) []host.Change {
				return []host.Change{host.Block{Path: r.Dir + "/hosts", Name: "cluster a", Content: "10.0.0.1 one\n10.0.0.2 two"}}
			},
			query: blockQuery,
			made: func(r *rig, f *host.Facts) string {
				if b := f.Blocks[r.Dir+"/hosts#cluster a"]; b != "10.0.0.1 one\n10.0.0.2 two\n" {
					return "block " + b
				}
				return ""
			},
		},
		{
			name: "BlockReplaced",
			prepare: func(r *rig) {
				r.Put(r.t, r.Dir+"/hosts", "before\n# BEGIN kubexm cluster a\nold\n# END kubexm cluster a\nafter\n", 0o640)
			},
			changes: func(r *rig) []host.Change {
				return []host.Change{host.Block{Path: r.Dir + "/hosts", Name: "cluster a", Content: "new\n"}}
			},
			query: blockQuery,
			made: func(r *rig, f *host.Facts) string {
				if c := string(f.Paths[r.Dir+"/hosts"].Content); c != "before\n# BEGIN kubexm cluster a\nnew\n# END kubexm cluster a\nafter\n" {
					return c
				}
				return ""
			},
		},
		{
			name: "BlockRemoved",
			prepare: func(r *rig) {
				r.Put(r.t, r.Dir+"/hosts", "before\n# BEGIN kubexm cluster a\nold\n# END kubexm cluster a\nafter\n", 0o644)
			},
			changes: func(r *rig) []host.Change {
				return []host.Change{host.Block{Path: r.Dir + "/hosts", Name: "cluster a"}}
			},
			query: blockQuery,
			made: func(r *rig, f *host.Facts) string {
				if c := string(f.Paths[r.Dir+"/hosts"].Content); c != "before\nafter\n" {
					return c
				}
				return ""
			},
		},
		blockBehind("BlockBehindRelativeLink", func(*rig) string { return "elsewhere/hosts" }),
		blockBehind("BlockBehindAbsoluteLink", func(r *rig) string { return r.Dir + "/elsewhere/hosts" }),
		{
			name: "Claim",
			prepare: func(r *rig) {
				r.Put(r.t, r.Dir+"/had/config", oldText, 0o640)
			},
			changes: func(r *rig) []host.Change {
				return []host.Change{host.Claim{Paths: []string{r.Dir + "/had", r.Dir + "/data"}}}
			},
			journaled: true,
			fill: func(r *rig) {
				r.Put(r.t, r.Dir+"/data/deep/file", newText, 0o600)
				r.Put(r.t, r.Dir+"/had/config", newText, 0o600)
				r.Put(r.t, r.Dir+"/had/more", newText, 0o600)
			},
			query: paths("had", "had/config", "had/more", "data", "data/deep/file"),
			made:  func(*rig, *host.Facts) string { return "" },
			keys:  func(r *rig) []string { return []string{"claim " + r.Dir + "/data", "claim " + r.Dir + "/had"} },
		},
		{
			name:    "Many",
			prepare: func(r *rig) { r.Put(r.t, r.Dir+"/one", oldText, 0o644) },
			changes: func(r *rig) []host.Change {
				return []host.Change{
					host.Absent{Path: r.Dir + "/one"},
					host.Directory{Path: r.Dir + "/two", Mode: 0o755},
					host.File{Path: r.Dir + "/two/file", Mode: 0o644, Content: secret.New(newText)},
				}
			},
			query: paths("one", "two", "two/file"),
			made:  expect("two/file", 0o644, newText),
		},
	}
}

// blockBehind is a block in a file to which a link leads.
func blockBehind(name string, target func(r *rig) string) kind {
	const before, with = "127.0.0.1 localhost", "127.0.0.1 localhost\n# BEGIN kubexm cluster a\n10.0.0.1 one\n# END kubexm cluster a\n"
	return kind{
		name: name,
		prepare: func(r *rig) {
			r.Put(r.t, r.Dir+"/elsewhere/hosts", before, 0o640)
			r.Link(r.t, r.Dir+"/hosts", target(r))
		},
		changes: func(r *rig) []host.Change {
			return []host.Change{host.Block{Path: r.Dir + "/hosts", Name: "cluster a", Content: "10.0.0.1 one"}}
		},
		query: func(r *rig) host.Query {
			q := paths("elsewhere", "elsewhere/hosts")(r)
			q.Merge(blockQuery(r))
			return q
		},
		made: func(r *rig, f *host.Facts) string {
			link, file := f.Paths[r.Dir+"/hosts"], f.Paths[r.Dir+"/elsewhere/hosts"]
			switch {
			case link.Target != target(r):
				return "the link is " + link.Mode.String() + " to " + link.Target
			case string(file.Content) != with:
				return "behind the link is " + string(file.Content)
			case f.Blocks[r.Dir+"/hosts#cluster a"] != "10.0.0.1 one\n":
				return "block " + f.Blocks[r.Dir+"/hosts#cluster a"]
			case len(link.Content) > 0 || link.Digest != "":
				return "the link has content"
			}
			return ""
		},
		keys: func(r *rig) []string { return []string{"block cluster a of " + r.Dir + "/hosts"} },
	}
}

func blockQuery(r *rig) host.Query {
	return host.Query{Paths: []host.PathQuery{{Path: r.Dir}, {Path: r.Dir + "/hosts", Content: true, Digest: true, Block: "cluster a"}}}
}

const (
	unitName = "kubexm-hosttest.service"
	unitFile = "/etc/systemd/system/" + unitName
	unitText = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"
)

func unitQuery(*rig) host.Query {
	return host.Query{Units: []string{unitName}, Paths: []host.PathQuery{{Path: unitFile, Digest: true}, {Path: "/etc/systemd/system"}}}
}

func unitIs(active, file string) func(r *rig, f *host.Facts) string {
	return func(_ *rig, f *host.Facts) string {
		if u := f.Units[unitName]; u.Active != active || u.File != file {
			return "the unit is " + u.Active + ", " + u.File
		}
		return ""
	}
}

func systemKinds() []kind {
	return []kind{
		{
			name: "UnitNew",
			changes: func(*rig) []host.Change {
				return []host.Change{
					host.File{Path: unitFile, Mode: 0o644, Content: secret.New(unitText)},
					host.Unit{Name: unitName, Enabled: "enabled", Active: "started"},
				}
			},
			query: unitQuery, made: unitIs("active", "enabled"), system: true,
			keys: func(*rig) []string { return []string{"unit " + unitName, "file " + unitFile} },
		},
		{
			name: "UnitStopped",
			prepare: func(r *rig) {
				r.Put(r.t, unitFile, unitText, 0o644)
				r.Start(r.t, unitName)
			},
			changes: func(*rig) []host.Change {
				return []host.Change{host.Unit{Name: unitName, Enabled: "disabled", Active: "stopped"}}
			},
			query: unitQuery, made: unitIs("inactive", "disabled"), system: true,
		},
		{
			name: "Sysctl",
			changes: func(r *rig) []host.Change {
				value := "1"
				if r.observe(r.dial(), host.Query{Sysctls: []string{r.Sysctl}}).Sysctls[r.Sysctl] == "1" {
					value = "0"
				}
				return []host.Change{host.Sysctl{Name: r.Sysctl, Value: value}}
			},
			query: func(r *rig) host.Query { return host.Query{Sysctls: []string{r.Sysctl}} },
			made:  func(*rig, *host.Facts) string { return "" }, system: true,
			keys: func(r *rig) []string { return []string{"sysctl " + r.Sysctl} },
		},
	}
}

func packageKinds() []kind {
	return []kind{{
		name:    "Package",
		changes: func(r *rig) []host.Change { return []host.Change{host.Package{Names: r.Packages[:1]}} },
		query:   func(r *rig) host.Query { return host.Query{Packages: r.Packages} },
		made: func(r *rig, f *host.Facts) string {
			for _, name := range r.Packages {
				if f.Packages[name] == "" {
					return name + " is not installed"
				}
			}
			return ""
		},
		keys: func(r *rig) []string { return []string{"packages " + r.Packages[0]} }, system: true,
	}}
}

func kinds(f Fixture) []kind {
	switch {
	case len(f.Packages) > 0:
		return packageKinds()
	case f.FilesOnly:
		return fileKinds()
	}
	return slices.Concat(fileKinds(), systemKinds())
}

// act is the kind's act.
func (k kind) act(r *rig, changes []host.Change) host.Act {
	return host.Act{Node: "hosttest/" + strings.ToLower(k.name), Task: "hosttest", Digest: "sha256:input", Changes: changes, Verify: k.query(r)}
}

func (k kind) stage(r *rig, s host.Session) {
	r.t.Helper()
	if k.blobs == nil {
		return
	}
	if err := s.Stage(r.ctx, k.blobs(r)); err != nil {
		r.t.Fatalf("Stage: %s", explain(err))
	}
}

// setUp brings the fixture into the kind's situation; clean takes it away.
func (k kind) setUp(r *rig) {
	if k.prepare != nil {
		k.prepare(r)
	}
	r.t.Cleanup(func() {
		r.Remove(r.t, r.Dir)
		if k.system {
			r.Remove(r.t, unitFile)
		}
	})
}

// testKinds makes each change, makes it again, undoes it, and undoes it again.
func testKinds(t *testing.T, fixture func(t *testing.T) Fixture) {
	for _, k := range kinds(fixture(t)) {
		t.Run(k.name, func(t *testing.T) {
			parallel(t, fixture)
			r := newRig(t, fixture(t))
			k.setUp(r)
			changes := k.changes(r)
			h := r.dial()
			before := r.observe(h, k.query(r))
			if before.UndoEntries != 0 || len(before.Journal) != 0 {
				t.Fatalf("the host is not fresh: %d undo entries, journal %v", before.UndoEntries, before.Journal)
			}

			s := r.begin(h, newRun())
			k.stage(r, s)
			made := r.do(s, k.act(r, changes))
			if problem := k.made(r, made); problem != "" {
				t.Fatalf("after Do: %s", problem)
			}
			if _, ok := made.Journal[k.act(r, changes).Node]; !ok {
				t.Error("the act is not in the journal")
			}
			if made.UndoEntries == 0 {
				t.Error("nothing was saved")
			}
			k.stage(r, s)
			again := r.do(s, k.act(r, changes))
			if d := diff(stateOf(made), stateOf(again)); d != "" {
				t.Errorf("doing it again changed something (-first +second):\n%s", d)
			}
			if again.UndoEntries != made.UndoEntries {
				t.Errorf("doing it again saved something: %d entries, then %d", made.UndoEntries, again.UndoEntries)
			}
			r.end(s)
			if seen := r.observe(h, k.query(r)); diff(stateOf(made), stateOf(seen)) != "" {
				t.Errorf("Verify and Observe differ:\n%s", diff(stateOf(made), stateOf(seen)))
			}

			if k.fill != nil {
				k.fill(r)
			}
			s = r.begin(h, newRun())
			keys := r.undo(s, host.Scope{})
			r.end(s)
			if k.keys != nil && !slices.Equal(keys, k.keys(r)) {
				t.Errorf("undone %q, want %q", keys, k.keys(r))
			}
			k.compare(r, h, before)

			s = r.begin(h, newRun())
			if keys := r.undo(s, host.Scope{}); len(keys) != 0 {
				t.Errorf("the second undo undid %q", keys)
			}
			r.end(s)
			k.compare(r, h, before)
		})
	}
}

// compare fails the test when the host is not as before.
func (k kind) compare(r *rig, h host.Host, before *host.Facts) {
	r.t.Helper()
	q := k.query(r)
	q.Paths = append(q.Paths, host.PathQuery{Path: host.StateDir})
	after := r.observe(h, q)
	if !r.FilesOnly && after.Paths[host.StateDir].Exists {
		r.t.Errorf("%s is left behind", host.StateDir)
	}
	delete(after.Paths, host.StateDir)
	if d := diff(stateOf(before), stateOf(after)); d != "" {
		r.t.Errorf("the host is not as before (-before +after):\n%s", d)
	}
	if after.UndoEntries != 0 || len(after.Journal) != 0 {
		r.t.Errorf("%d undo entries and the journal %v are left", after.UndoEntries, after.Journal)
	}
}
