// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestFile(t *testing.T) {
	hello := step.File{Path: "/a", Mode: 0o644, Content: step.Literal("hello")}
	secret := step.File{Path: "/a", Mode: 0o600, Content: step.Join(step.Literal("pw="), step.Secret("app", "password"))}
	program := step.File{Path: "/a", Mode: 0o755, From: &step.Artifact{Path: "bin/a", Digest: sha("elf"), Size: 3}}
	read := program
	read.ReadBy = []string{"a.service"}
	owned := hello
	owned.Owner, owned.Group = "app", "app"
	numbered := hello
	numbered.Owner, numbered.Group = "0", "0"
	byNumber := hello
	byNumber.Owner, byNumber.Group = "1000", "app"
	apps, unnamed := regular("hello", 0o644), regular("hello", 0o644)
	apps.Owner, apps.Group, apps.UID, apps.GID = "app", "app", 1000, 1001
	unnamed.Owner, unnamed.Group, unnamed.UID, unnamed.GID = "1000", "app", 1000, 1001
	others := regular("hello", 0o644)
	instead := hello
	instead.Where = "/b"
	beside := paths("/a", host.Path{})
	beside.Paths["/b"] = regular("theirs", 0o644)
	others.Owner = "app"

	decide(t, []decision{
		{"same", hello, paths("/a", regular("hello", 0o644)), "so already"},
		{"absent", hello, paths("/a", host.Path{}), `
			file /a: absent → sha256:2cf24dba
			do file /a 0644 : "hello"`},
		{"other content", hello, paths("/a", regular("x", 0o644)), `
			file /a: sha256:2d711642 → sha256:2cf24dba
			do file /a 0644 : "hello"`},
		{"other mode", hello, paths("/a", regular("hello", 0o600)), `
			file /a: mode 0600 → mode 0644
			do file /a 0644 : "hello"`},
		{"other owner", hello, paths("/a", others), `
			file /a: owner app:root → owner root:root
			do file /a 0644 : "hello"`},
		{"owner wanted", owned, paths("/a", regular("hello", 0o644)), `
			file /a: owner root:root → owner app:app
			do file /a 0644 app:app "hello"`},
		{"root by number", numbered, paths("/a", regular("hello", 0o644)), "so already"},
		{"an account by number", byNumber, paths("/a", apps), "so already"},
		{"a number without an account", byNumber, paths("/a", unnamed), "so already"},
		{"an account by number, and root's", byNumber, paths("/a", regular("hello", 0o644)), `
			file /a: owner root:root → owner 1000:app
			do file /a 0644 1000:app "hello"`},
		{"root by number, and an account's", numbered, paths("/a", apps), `
			file /a: owner app:app → owner root:root
			do file /a 0644 0:0 "hello"`},
		{"directory in its place", hello, paths("/a", tree(0o755)), `
			file /a: directory → sha256:2cf24dba
			do file /a 0644 : "hello"`},
		{"link in its place", hello, paths("/a", symlink("/b")), `
			file /a: → /b → sha256:2cf24dba
			do file /a 0644 : "hello"`},

		{"read by a unit: absent", read, paths("/a", host.Path{}), `
			file /a: absent → sha256:780d84b2
			stage bin/a
			do unit a.service  left settle 0s
			do file /a 0755 : blob ` + sha("elf")},
		{"read by a unit: same", read, paths("/a", regular("elf", 0o755)), "so already"},
		{"nothing to take the place of", instead, paths("/a", host.Path{}), "so already"},
		{"nothing to take the place of, and others' there", instead, paths("/a", regular("x", 0o644)), `
			file /a: sha256:2d711642 → sha256:2cf24dba
			do file /a 0644 : "hello"`},
		{"something to take the place of", instead, beside, `
			file /a: absent → sha256:2cf24dba
			do file /a 0644 : "hello"`},

		{"secret: same", secret, paths("/a", regular("pw=hunter2", 0o600)), "so already"},
		{"secret: absent", secret, paths("/a", host.Path{}), `
			file /a: absent → <secret app/password>
			do file /a 0600 : "pw=hunter2"`},
		{"secret: another was there", secret, paths("/a", regular("pw=hunter1", 0o600)), `
			file /a: other content → <secret app/password>
			do file /a 0600 : "pw=hunter2"`},
		{"secret that is not there", step.File{Path: "/a", Content: step.Secret("app", "x")}, paths("/a", host.Path{}), `
			error: secret app/x: there is no such secret
			do error: secret app/x: there is no such secret`},
		{"output that is not known yet", step.File{Path: "/a", Content: step.FromOutput(graph.Output[string]{Name: "token"})}, paths("/a", regular("x", 0o644)), `
			error: output token: not known yet
			do error: output token: not known yet`},

		{"artifact: absent", program, paths("/a", host.Path{}), `
			file /a: absent → ` + sha("elf")[:15] + `
			stage bin/a
			do file /a 0755 : blob ` + sha("elf")},
		{"artifact: the mode alone needs no content", program, paths("/a", regular("elf", 0o644)), `
			file /a: mode 0644 → mode 0755
			do file /a 0755 : blob ` + sha("elf")},
	})
}

// What is shown of a secret must not tell whether a guess is right.
func TestFileTellsNoDigestOfSecrets(t *testing.T) {
	f := step.File{Path: "/a", Mode: 0o600, Content: step.Secret("app", "password")}
	for _, seen := range []host.Path{{}, regular("old password", 0o644), symlink("/x"), tree(0o700)} {
		d, err := f.Precheck(step.View{Facts: &host.Facts{Paths: map[string]host.Path{"/a": seen}}, Values: values{}})
		if err != nil || len(d) == 0 {
			t.Fatalf("%v %v", d, err)
		}
		for _, x := range d {
			if strings.Contains(x.From+x.To, "sha256:") {
				t.Errorf("%+v", x)
			}
		}
	}
}

func TestDirectory(t *testing.T) {
	d := step.Directory{Path: "/a", Mode: 0o700}
	decide(t, []decision{
		{"same", d, paths("/a", tree(0o700)), "so already"},
		{"absent", d, paths("/a", host.Path{}), `
			directory /a: absent → directory
			do directory /a 0700 :`},
		{"other mode", d, paths("/a", tree(0o755)), `
			directory /a: mode 0755 → mode 0700
			do directory /a 0700 :`},
		{"file in its place", d, paths("/a", regular("x", 0o644)), `
			directory /a: sha256:2d711642 → directory
			do directory /a 0700 :`},
	})
}

func TestAbsent(t *testing.T) {
	a := step.Absent{Path: "/a"}
	decide(t, []decision{
		{"absent", a, paths("/a", host.Path{}), "so already"},
		{"directory", a, paths("/a", tree(0o755)), `
			path /a: directory → absent
			do path /a`},
		{"link to nowhere", a, paths("/a", symlink("/nowhere")), `
			path /a: → /nowhere → absent
			do path /a`},
	})
}

func TestBlock(t *testing.T) {
	b := step.Block{Path: "/etc/hosts", Name: "hosts", Content: "10.0.0.1 api\n"}
	gone := step.Block{Path: "/etc/hosts", Name: "hosts"}
	has := func(text string) host.Facts { return host.Facts{Blocks: map[string]string{"/etc/hosts#hosts": text}} }
	decide(t, []decision{
		{"same", b, has("10.0.0.1 api\n"), "so already"},
		{"absent", b, host.Facts{}, `
			block hosts of /etc/hosts: absent → 13 bytes
			do block hosts of /etc/hosts "10.0.0.1 api\n"`},
		{"other", b, has("10.0.0.2 api\n"), `
			block hosts of /etc/hosts: 13 bytes → 13 bytes
			do block hosts of /etc/hosts "10.0.0.1 api\n"`},
		{"empty", b, has(""), `
			block hosts of /etc/hosts: 0 bytes → 13 bytes
			do block hosts of /etc/hosts "10.0.0.1 api\n"`},
		{"none wanted, none there", gone, host.Facts{}, "so already"},
		{"none wanted", gone, has("10.0.0.1 api\n"), `
			block hosts of /etc/hosts: 13 bytes → absent
			do block hosts of /etc/hosts ""`},
	})
}

func TestMode(t *testing.T) {
	for text, want := range map[string]step.Mode{"0644": 0o644, "600": 0o600, "1777": 0o1777, "0": 0} {
		var m step.Mode
		if err := m.UnmarshalText([]byte(text)); err != nil || m != want {
			t.Errorf("%s: %o, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "rw", "0888", "10000", "-1"} {
		var m step.Mode
		if err := m.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "octal") {
			t.Errorf("%q: %o, %v", text, m, err)
		}
	}
}
