// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// decision is a step, what was seen of a host, and what comes of it: a line for each difference, and after "do" a line for
// each change that is made of it.
type decision struct {
	name  string
	step  step.Actor
	facts host.Facts
	want  string
}

// now is the host's clock in all facts here.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func decide(t *testing.T, all []decision) {
	t.Helper()
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.Taken = now
			want := strings.TrimSpace(strings.ReplaceAll(tt.want, "\t", ""))
			if diff := cmp.Diff(want, told(tt.step, &tt.facts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// told is what s makes of facts, in words.
func told(s step.Actor, facts *host.Facts) string {
	v := step.View{Facts: facts, Values: values{}, Node: "node", Digest: "input"}
	var lines []string
	d, err := s.Precheck(v)
	if err != nil {
		lines = append(lines, "error: "+err.Error())
	}
	for _, x := range d {
		lines = append(lines, fmt.Sprintf("%s: %s → %s", x.Subject, x.From, x.To))
	}
	if len(lines) == 0 {
		return "so already"
	}
	e, err := s.Effect(v)
	if err != nil {
		return strings.Join(append(lines, "do error: "+err.Error()), "\n")
	}
	for _, b := range e.Blobs {
		lines = append(lines, "stage "+b.Path)
	}
	if e.Stdin != nil {
		lines = append(lines, fmt.Sprintf("stream %s %s %s %d B", e.Stdin.Path, e.Stdin.Refs, e.Stdin.Digests, e.Stdin.Size))
	}
	for _, c := range e.Changes {
		lines = append(lines, "do "+change(c))
	}
	return strings.Join(lines, "\n")
}

// change is c in one line.
func change(c host.Change) string {
	switch c := c.(type) {
	case host.File:
		from := fmt.Sprintf("%q", c.Content.Reveal())
		if c.Blob != "" {
			from = "blob " + c.Blob
		}
		return fmt.Sprintf("%s %04o %s:%s %s", c.Key(), c.Mode, c.Owner, c.Group, from)
	case host.Directory:
		return fmt.Sprintf("%s %04o %s:%s", c.Key(), c.Mode, c.Owner, c.Group)
	case host.Block:
		return fmt.Sprintf("%s %q", c.Key(), c.Content)
	case host.Unit:
		return fmt.Sprintf("%s %s %s settle %s", c.Key(), c.Enabled, c.Active, c.Settle)
	case host.Sysctl:
		return c.Key() + " = " + c.Value
	case host.Package:
		return c.Key() + " " + strings.Join(c.Names, " ")
	case host.Claim:
		return c.Key() + " " + strings.Join(c.Paths, " ")
	case host.Command:
		return strings.TrimSpace(fmt.Sprintf("%s %q env %q stdin %q undo %q", c.Key(), c.Argv, c.Env, c.Stdin.Reveal(), c.Undo))
	}
	return c.Key()
}

// values knows the secret app/password; the output token is not known yet.
type values struct{}

func (values) Secret(ref step.SecretRef) ([]byte, error) {
	if ref == (step.SecretRef{Name: "app", Key: "password"}) {
		return []byte("hunter2"), nil
	}
	return nil, errors.New("there is no such secret")
}

func (values) Output(string) ([]byte, error) { return nil, step.ErrUnknown }

func sha(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// regular is a file of root's, and tree a directory.
func regular(content string, mode fs.FileMode) host.Path {
	return host.Path{Exists: true, Mode: mode, Owner: "root", Group: "root", Size: int64(len(content)), Digest: sha(content)}
}

func tree(mode fs.FileMode) host.Path {
	return host.Path{Exists: true, Mode: fs.ModeDir | mode, Owner: "root", Group: "root"}
}

func symlink(target string) host.Path {
	return host.Path{Exists: true, Mode: fs.ModeSymlink | 0o777, Owner: "root", Group: "root", Target: target}
}

// paths are the facts of one path.
func paths(name string, p host.Path) host.Facts {
	return host.Facts{Paths: map[string]host.Path{name: p}}
}
