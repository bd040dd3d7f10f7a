// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Shell fills in what of a Fixture can be done by commands on the host h: IDs, Put, Link, Remove and Start. h is used beside the
// connections under test.
func Shell(f Fixture, h host.Host) Fixture {
	f.Commands = true
	f.IDs = func(t *testing.T) (uid, gid uint32) {
		t.Helper()
		said := run(t, h, "", `id -u "$1" && getent group "$2" | cut -d : -f 3`, f.Owner, f.Group)
		if n, err := fmt.Sscan(said, &uid, &gid); n != 2 {
			t.Fatalf("the numbers of %s and %s are not known: %v: %s", f.Owner, f.Group, err, said)
		}
		return uid, gid
	}
	f.Put = func(t *testing.T, path, content string, mode fs.FileMode) {
		t.Helper()
		bits := fmt.Sprintf("%04o", mode.Perm())
		if mode&fs.ModeSetuid != 0 {
			bits = "4" + bits[1:]
		}
		run(t, h, content, `umask 022; mkdir -p "$(dirname "$1")" && cat >"$1" && chmod "$2" "$1"`, path, bits)
	}
	f.Link = func(t *testing.T, path, target string) {
		t.Helper()
		run(t, h, "", `ln -s "$2" "$1"`, path, target)
	}
	f.Remove = func(t *testing.T, path string) {
		t.Helper()
		if strings.HasPrefix(path, "/etc/systemd/") {
			run(t, h, "", `systemctl disable --now "$2" 2>/dev/null; rm -f "$1"; systemctl daemon-reload; systemctl reset-failed "$2" 2>/dev/null; true`,
				path, path[strings.LastIndexByte(path, '/')+1:])
			return
		}
		run(t, h, "", `rm -rf "$1"`, path)
	}
	f.Start = func(t *testing.T, unit string) {
		t.Helper()
		run(t, h, "", `systemctl daemon-reload && systemctl restart "$1"`, unit)
	}
	return f
}

// run runs a script of sh on the host and returns what it printed.
func run(t *testing.T, h host.Host, stdin, script string, args ...string) string {
	t.Helper()
	// Not the test's context: cleanups run commands, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	r, err := h.Exec(ctx, host.Command{Title: "hosttest", Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdin: secret.New(stdin)})
	if err != nil {
		t.Fatalf("run %s: %s", script, explain(err))
	}
	if r.ExitCode != 0 {
		t.Fatalf("run %s: exit code %d: %s", script, r.ExitCode, r.Stderr)
	}
	return string(r.Stdout)
}
