// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// undoHost is a host of which systemd, swap and cp are played: $HERE/units has a file for each unit that systemd knows, of which
// $HERE/enabled and $HERE/active have those that are; $HERE/calls is what was asked for.
type undoHost struct {
	t   *testing.T
	dir string
}

const playedTools = `
systemctl() {
	while [ $# -gt 1 ] && [ "$1" != show ] && [ "$1" != is-enabled ]; do
		case $1 in enable | restart | stop | disable) verb=$1 ;; esac
		shift
	done
	for unit; do :; done
	case $1 in
	daemon-reload) [ ! -d "$HERE/unseen" ] || mv "$HERE/unseen"/* "$HERE/units/"; return ;;
	show)
		[ -e "$HERE/units/$unit" ] || { printf 'LoadState=not-found\nActiveState=inactive\nUnitFileState=\n'; return; }
		printf 'LoadState=loaded\nUnitFileState=%s\n' "$(systemctl is-enabled -- "$unit")"
		[ -e "$HERE/active/$unit" ] && echo ActiveState=active || echo ActiveState=inactive
		return ;;
	is-enabled)
		[ -e "$HERE/units/$unit" ] || { echo not-found; return 4; }
		[ -e "$HERE/enabled/$unit" ] && echo enabled || echo disabled
		return ;;
	esac
	echo "$verb $unit" >>"$HERE/calls"
	[ -e "$HERE/units/$unit" ] || { echo "Unit $unit not found." >&2; return 5; }
	case $verb in enable) : >"$HERE/enabled/$unit" ;; restart) : >"$HERE/active/$unit" ;; esac
}
c_journal() { :; }
swapon() {
	echo "swapon $2" >>"$HERE/calls"
	[ ! -e "$HERE/refused" ] && head -c 65536 -- "$2" | grep -qaF SWAPSPACE2
}
`

func newUndoHost(t *testing.T) undoHost {
	t.Helper()
	h := undoHost{t, t.TempDir()}
	for _, name := range []string{"undo", "run", "units", "enabled", "active"} {
		if err := os.Mkdir(h.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h undoHost) path(name string) string { return filepath.Join(h.dir, name) }

func (h undoHost) put(name, content string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.path(name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// run runs lines of the library, with what it has of a session, and returns its frames.
func (h undoHost) run(lines string) string {
	h.t.Helper()
	library := compact(coreLib) + compact(sessionLib) + compact(changeLib) + compact(unitLib) + compact(packageLib) + compact(undoLib)
	const session = `
S=$HERE T=$HERE/run N=mark Q=1 W=0 R="run node task" I=0 deadline=0 KX_CUT=
`
	cmd := exec.CommandContext(h.t.Context(), "/bin/sh", "-c", library+session+playedTools+lines)
	cmd.Env = []string{"HERE=" + h.dir, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	h.t.Logf("%s: %v\n%s", lines, err, out)
	var frames []string
	for line := range strings.Lines(string(out)) {
		if frame, is := strings.CutPrefix(strings.TrimSpace(line), "@mark "); is {
			frames = append(frames, frame[2:])
		}
	}
	return strings.Join(frames, "; ")
}

func (h undoHost) calls() string {
	content, err := os.ReadFile(h.path("calls"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return strings.Join(strings.Split(strings.TrimSpace(string(content)), "\n"), "; ")
}

// Units that somebody has removed since need nothing. Those whose file comes back when the rest is undone are put off until then.
func TestUndoOfUnits(t *testing.T) {
	const entry, later = "1 unit firewalld.service enabled active stopped", "1 left firewalld.service 0123"
	for name, test := range map[string]struct {
		systemd, lines, frames, calls string
	}{
		"is there":                        {"units", "u_entry " + entry, "later 1", "enable firewalld.service"},
		"is not seen yet":                 {"unseen", "u_entry " + entry, "later 1", "enable firewalld.service"},
		"is gone":                         {"", "u_entry " + entry, "later 1", ""},
		"disabled, and is gone":           {"", "u_entry 1 unit firewalld.service disabled inactive stopped", "undone 1", ""},
		"left, and is gone":               {"", "u_entry " + later, "later 1", ""},
		"at last, is there":               {"units", "u_later back " + entry, "undone 1", "enable firewalld.service; restart firewalld.service"},
		"at last, is gone":                {"", "u_later back " + entry, "undone 1", ""},
		"at last, left":                   {"units", "u_later back " + later, "undone 1", "restart firewalld.service"},
		"at last, left and gone":          {"", "u_later back " + later, "undone 1", ""},
		"at last, not all files are back": {"", "u_later some " + entry, "failed 1 1; kept 1", ""},
		"at last, an older entry counts":  {"units", "u_later back 1 unit firewalld.service enabled active -", "undone 1", "enable firewalld.service"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newUndoHost(t)
			if test.systemd != "" {
				h.put(test.systemd+"/firewalld.service", "")
			}
			if got := h.run(test.lines); got != test.frames {
				t.Errorf("it says %q, want %q", got, test.frames)
			}
			if got := h.calls(); got != test.calls {
				t.Errorf("it calls %q, want %q", got, test.calls)
			}
		})
	}
}

// What an older entry says of a unit is not overruled by one that is put off.
func TestPutOff(t *testing.T) {
	unit := func(kind string, data ...string) entry {
		return entry{seq: 2, kind: kind, word: "unit", target: "a.service", data: data}
	}
	now := unit("unit", "enabled", "active", "restarted")
	for want, older := range map[string][]entry{
		"2 unit a.service enabled active restarted": {unit("left", "0123")},
		"2 unit a.service - active restarted":       {unit("left", "0123"), unit("unit", "disabled", "inactive", "started")},
	} {
		if got := strings.Join(putOff(now, undoCall(now, true), older), " "); got != want {
			t.Errorf("it is put off as %q, want %q", got, want)
		}
	}
}

// Swap that is not there any more, or is none any more, is passed over. What can be turned on is, and what cannot is no success.
func TestUndoOfSwap(t *testing.T) {
	mark := strings.Repeat("\x00", 4086) + "SWAPSPACE2"
	h := newUndoHost(t)
	h.put("swap file", mark)
	h.put("zram0", "")
	h.put("data", strings.Repeat("\xff", 1<<17)+mark)
	var devices []string
	for _, name := range []string{"gone", "units", "zram0", "data", `swap\040file`, `deleted\040(deleted)`} {
		devices = append(devices, h.path(name))
	}
	h.put("undo/1", strings.Join(devices, "\n")+"\n\n")
	if got := h.run("u_entry 1 swap -"); got != "undone 1" {
		t.Errorf("it says %q", got)
	}
	if got, want := h.calls(), "swapon "+h.path("zram0")+"; swapon "+h.path("data")+"; swapon "+h.path("swap file"); got != want {
		t.Errorf("it calls %q, want %q", got, want)
	}
	h.put("undo/1", h.path("swap file")+"\n")
	h.put("refused", "")
	if got := h.run("u_entry 1 swap -"); got != "failed 1 1; kept 1" {
		t.Errorf("where the kernel refuses, it says %q", got)
	}
}

// What could not be copied whole is not left on a disk that it has filled.
func TestPartOfACopy(t *testing.T) {
	for name, lines := range map[string]string{
		"claim": `c_claim "$HERE/data" data`, "keep": `c_keep "$HERE/data"`,
		"absent": `mv() { return 1; }; c_absent "$HERE/data" data`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newUndoHost(t)
			h.put("data/file", "theirs")
			got := h.run(`cp() { command cp "$@"; echo "cp: No space left on device" >&2; return 1; }` + "\n" + lines)
			if !strings.HasSuffix(got, "failed 0 1") {
				t.Errorf("it says %q", got)
			}
			if left, err := os.ReadDir(h.path("undo")); err != nil || len(left) > 0 {
				t.Errorf("there is left %v (%v)", left, err)
			}
			if content, err := os.ReadFile(h.path("data/file")); err != nil || string(content) != "theirs" {
				t.Errorf("the file has %q (%v)", content, err)
			}
		})
	}
}
