// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// testMachine is about what only a real machine has: processes, file systems, units that fail.
func testMachine(t *testing.T, fixture func(t *testing.T) Fixture) {
	for name, test := range map[string]func(r *rig){
		"Secrets": testSecrets, "DiskFull": testDiskFull, "Timeout": testTimeout, "Killed": testKilled, "Cancel": testCancel, "Orphan": testOrphan,
		"Stream": testStream, "StreamCut": testStreamCut, "UnitFails": testUnitFails, "UnitIsAskedAgain": testUnitIsAskedAgain,
		"ClaimWithMount": testClaimWithMount, "Swap": testSwap, "CommandUndo": testCommandUndo, "Exec": testExec, "Observe": testObserve,
	} {
		t.Run(name, func(t *testing.T) { test(newRig(t, fixture(t))) })
	}
}

// sh runs a script on the host as root, outside of what is tested.
func (r *rig) sh(script string, args ...string) string {
	r.t.Helper()
	h := r.Dial(r.t)
	defer h.Close()
	return strings.TrimSpace(run(r.t, h, "", script, args...))
}

// runs reports whether a process with these arguments is there.
func (r *rig) runs(args string) bool {
	r.t.Helper()
	return r.sh(`ps axww -o args= | grep -v "^sh -c\|grep\|^timeout\|^sudo" | grep -cF -- "$1" || true`, args) != "0"
}

// eventually waits until what holds, and fails the test when it never does.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	for !holds() {
		select {
		case <-r.ctx.Done():
			r.t.Fatalf("never: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func command(title string, argv ...string) host.Command {
	return host.Command{Title: title, Argv: argv}
}

// testSecrets looks for a secret wherever others could see it while it is in use.
func testSecrets(r *rig) {
	const word = "Qcloud-" + "4711-hidden"
	s := r.begin(r.dial(), newRun())
	c := command("log in", "sh", "-c", `cat >/dev/null; touch "$1"; while [ -e "$1" ]; do sleep 0.1; done; echo "`+"$2"+`" >&2; exit 3`, "sh", r.Dir+"/waiting", "the end")
	c.Stdin = secret.New(word)
	done := make(chan error, 1)
	go func() {
		_, err := s.Do(r.ctx, host.Act{Node: "n", Task: "t", Changes: []host.Change{
			host.File{Path: r.Dir + "/token", Mode: 0o600, Content: secret.New(word + "\n")}, c,
		}})
		done <- err
	}()
	r.eventually("the command waits", func() bool { return r.sh(`ls "$1"`, r.Dir) == "token\nwaiting" })
	seen := r.sh(`cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n'; grep -r . /var/lib/kubexm /run/kubexm 2>/dev/null; journalctl -n 200 --no-pager 2>/dev/null`)
	if strings.Contains(seen, word) {
		r.t.Errorf("the secret can be seen:\n%s", seen)
	}
	r.sh(`rm "$1"`, r.Dir+"/waiting")
	err := <-done
	if errs := hostErrors(err); len(errs) == 0 || errs[0].ExitCode != 3 || !strings.Contains(errs[0].Output, "the end") {
		r.t.Errorf("the failing command: %v", err)
	}
	leak := command("leak", "sh", "-c", "cat >&2; exit 1")
	leak.Stdin = secret.New(word)
	_, err = s.Do(r.ctx, host.Act{Node: "n2", Changes: []host.Change{leak}})
	if err == nil || strings.Contains(explain(err), word) {
		r.t.Errorf("a command that prints its secret: %s", explain(err))
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

func testDiskFull(r *rig) {
	mount := r.Dir + "/small"
	r.sh(`mkdir -p "$1" && mount -t tmpfs -o size=1m none "$1" && echo old >"$1/f"`, mount)
	r.t.Cleanup(func() { r.sh(`umount "$1"`, mount) })
	h := r.dial()
	s := r.begin(h, newRun())
	a := file(r, "n", "t", "small/f", strings.Repeat("x", 2<<20))
	_, err := s.Do(r.ctx, a)
	if host.KindOf(err) != host.KindDiskFull {
		r.t.Errorf("a file larger than its disk: %v", err)
	}
	if got := content(r, h, "small/f"); got != "old\n" {
		r.t.Errorf("the old file holds %.20q", got)
	}
	r.sh(`mount -o remount,size=8m "$1"`, mount)
	r.do(s, a)
	r.undo(s, host.Scope{})
	r.end(s)
	if got := content(r, h, "small/f"); got != "old\n" {
		r.t.Errorf("after the undo the file holds %.20q", got)
	}
}

func testTimeout(r *rig) {
	s := r.begin(r.dial(), newRun())
	c := command("sleep", "sleep", "4711.1")
	c.Timeout = 300 * time.Millisecond
	_, err := s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{c}})
	if host.KindOf(err) != host.KindTimeout {
		r.t.Errorf("a command over its time: %v", err)
	}
	c.Timeout = 0
	_, err = s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{c}, Timeout: 300 * time.Millisecond})
	if host.KindOf(err) != host.KindTimeout {
		r.t.Errorf("an act over its time: %v", err)
	}
	if r.runs("sleep 4711.1") {
		r.t.Error("the command still runs")
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

// testKilled: who is killed by others, or says 124 by itself, has not taken too long.
func testKilled(r *rig) {
	h := r.dial()
	s := r.begin(h, newRun())
	try := func(c host.Command) *host.Error {
		r.t.Helper()
		c.Timeout = max(c.Timeout, 300*time.Millisecond)
		_, err := s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{c}, Timeout: time.Minute})
		var e *host.Error
		if !errors.As(err, &e) {
			r.t.Fatalf("%s: %v", c.Title, err)
		}
		return e
	}
	die, say := command("die", "sh", "-c", "kill -KILL $$"), command("say", "sh", "-c", "exit 124")
	die.Timeout, say.Timeout = 30*time.Second, 30*time.Second
	if e := try(die); e.Kind != host.KindCommand || e.ExitCode != 137 || !strings.Contains(e.Message, "killed") {
		r.t.Errorf("a command that is killed: %s: %v", e.Kind, e)
	}
	if e := try(say); e.Kind != host.KindCommand || e.ExitCode != 124 {
		r.t.Errorf("a command that ends with 124: %s: %v", e.Kind, e)
	}
	if e := try(command("stay", "sh", "-c", `trap "" TERM; sleep 4711.3; sleep 4711.3`)); e.Kind != host.KindTimeout {
		r.t.Errorf("a command over its time that must be killed: %s: %v", e.Kind, e)
	}
	for c, code := range map[*host.Command]int{&die: 137, &say: 124} {
		if got, err := h.Exec(r.ctx, *c); err != nil || got.ExitCode != code {
			r.t.Errorf("%s outside of a session: %v, %v", c.Title, got, err)
		}
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

func testCancel(r *rig) {
	s := r.begin(r.dial(), newRun())
	ctx, cancel := context.WithCancel(r.ctx)
	go func() {
		for !r.runs("sleep 4711.2") && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	_, err := s.Do(ctx, host.Act{Node: "n", Changes: []host.Change{command("sleep", "sh", "-c", "sleep 4711.2; true")}})
	if !errors.Is(err, context.Canceled) {
		r.t.Errorf("a cancelled act: %v", err)
	}
	if r.runs("sleep 4711.2") {
		r.t.Error("the command still runs")
	}
	if f := r.do(s, file(r, "n2", "t", "f", "x")); f.UndoEntries != 1 {
		r.t.Errorf("the session goes on with %d undo entries", f.UndoEntries)
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

// testOrphan cuts the connection while an act runs: it goes on to its end, and the next writer waits for that.
func testOrphan(r *rig) {
	first, next := r.dial(), newRun()
	s := r.begin(first, newRun())
	gone := make(chan error, 1)
	go func() {
		// It goes on until the next writer waits for it, and for a while then.
		const slow = `touch "$1"; while [ ! -e "$2" ]; do sleep 0.1; done
until grep -q "$4" "$5"; do sleep 0.1; done; sleep 2; touch "$3"`
		_, err := s.Do(r.ctx, host.Act{Node: "long", Digest: "d", Changes: []host.Change{
			command("slow", "sh", "-c", slow, "sh", r.Dir+"/began", r.Dir+"/go", r.Dir+"/ended", next.ID, host.StateDir+"/holder"),
		}})
		gone <- err
	}()
	r.eventually("the command runs", func() bool { return r.sh(`ls "$1"`, r.Dir) == "began" })
	_ = first.Close()
	if err := <-gone; host.KindOf(err) != host.KindUnreachable {
		r.t.Errorf("an act whose connection is cut: %v", err)
	}
	h := r.dial()
	short, cancel := context.WithTimeout(r.ctx, 4*time.Second)
	defer cancel()
	if _, err := h.Begin(short, newRun()); host.KindOf(err) != host.KindLocked {
		r.t.Errorf("a writer while the orphan runs: %v", err)
	}
	r.sh(`touch "$1"`, r.Dir+"/go")
	h = r.dial()
	s = r.begin(h, next)
	if got := content(r, h, "ended"); got != "" {
		r.t.Errorf("the next writer came before the orphan had ended: %q", got)
	}
	if !s.Waited() {
		r.t.Error("the next writer is not told that it has waited")
	}
	if _, ok := r.observe(h, host.Query{}).Journal["long"]; !ok {
		r.t.Error("the orphan has not written the journal")
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

func testStream(r *rig) {
	const size = 5<<20 + 12345
	s := r.begin(r.dial(), newRun())
	c := command("count", "sh", "-c", `sha256sum >"$1"`, "sh", r.Dir+"/sum")
	c.StdinStream = true
	want := strings.Repeat("0123456789abcde\n", size/16)
	var sent int64
	r.do(s, host.Act{Node: "n", Changes: []host.Change{c}, Progress: func(n int64) { sent = n },
		Stdin: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(want)), nil }})
	if sent != int64(len(want)) {
		r.t.Errorf("progress ended at %d of %d", sent, len(want))
	}
	if got := r.sh(`cat "$1"`, r.Dir+"/sum"); "sha256:"+strings.Fields(got)[0] != digestOf(want) {
		r.t.Error("the command read something else")
	}
	// A command that does not read its stream to the end is no reason to hang.
	c = command("head", "sh", "-c", "head -c 10 >/dev/null")
	c.StdinStream = true
	r.do(s, host.Act{
		Node: "n", Changes: []host.Change{c}, Stdin: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(want)), nil },
	})
	r.undo(s, host.Scope{})
	r.end(s)
}

// testStreamCut ends a stream early: the command must not take it for complete.
func testStreamCut(r *rig) {
	s := r.begin(r.dial(), newRun())
	c := command("take", "sh", "-c", `cat >"$1.part" && mv "$1.part" "$1"`, "sh", r.Dir+"/taken")
	c.StdinStream = true
	broken := errors.New("the disk is broken")
	_, err := s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{c}, Stdin: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 3<<20)), errorReader{broken})), nil
	}})
	if !errors.Is(err, broken) {
		r.t.Errorf("a stream that breaks: %v", err)
	}
	if got := content(r, r.dial(), "taken"); got != "(absent)" {
		r.t.Error("the command took half of its stream for all of it")
	}
	r.undo(s, host.Scope{})
	r.end(s)
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func testUnitFails(r *rig) {
	r.t.Cleanup(func() { r.Remove(r.t, unitFile) })
	h := r.dial()
	before := r.observe(h, unitQuery(r))
	s := r.begin(h, newRun())
	settles := func(active, does string, settle time.Duration) error {
		_, err := s.Do(r.ctx, host.Act{Node: "n", Changes: []host.Change{
			host.File{Path: unitFile, Mode: 0o644, Content: secret.New("[Service]\nExecStart=/bin/sh -c '" + does + "'\n")},
			host.Unit{Name: unitName, Active: active, Settle: settle},
		}})
		return err
	}
	unit := func(active, does string) error { return settles(active, does, 2*time.Second) }
	if err := unit("started", "echo Error: of a run that is over; exec sleep 1000"); err != nil {
		r.t.Fatal(explain(err))
	}
	err := unit("restarted", "echo Error: I cannot; seq 5; sleep 0.3; exit 7")
	errs := hostErrors(err)
	if len(errs) == 0 || errs[0].Change != "unit "+unitName || strings.Contains(errs[0].Output, "of a run that is over") {
		r.t.Errorf("a unit that does not stay up: %s", explain(err))
	} else if lines := strings.Split(errs[0].Output, "\n"); len(lines) < 3 || lines[1] != "Error: I cannot" {
		r.t.Errorf("why the unit does not stay up is not said first: %s", explain(err))
	}
	testUnitFailsBeforeItIsHeard(r, unit)
	// One that runs when it is to be started must stay up as well.
	const brief = "sleep 2; echo Error: not for long; exit 7"
	if err := settles("restarted", brief, 0); err != nil {
		r.t.Fatal(explain(err))
	}
	if errs := hostErrors(settles("started", brief, 4*time.Second)); len(errs) == 0 || !strings.Contains(errs[0].Output, "Error: not for long") {
		r.t.Errorf("a unit that runs, but not for long: %v", errs)
	}
	r.undo(s, host.Scope{})
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, unitQuery(r)))); d != "" {
		r.t.Errorf("the host is not as before:\n%s", d)
	}
}

// testUnitFailsBeforeItIsHeard has a journal that is behind: what a unit said arrives after it has ended.
func testUnitFailsBeforeItIsHeard(r *rig, unit func(active, does string) error) {
	const signal = `systemctl kill -s "$1" systemd-journald.service`
	r.sh(signal, "STOP")
	r.t.Cleanup(func() { r.sh(signal, "CONT") })
	done := make(chan error, 1)
	go func() { done <- unit("restarted", "echo Error: I am late; exit 7") }()
	r.eventually("the journal is waited for", func() bool { return r.runs("journalctl --sync") })
	r.sh(signal, "CONT")
	if errs := hostErrors(<-done); len(errs) == 0 || !strings.Contains(errs[0].Output, "Error: I am late") {
		r.t.Errorf("what the unit said late is not said: %v", errs)
	}
}

// testUnitIsAskedAgain undoes a unit while systemd does not answer yet, as on a host that boots: what is not said is not taken for a unit
// that is not there, which would stay enabled without its file.
func testUnitIsAskedAgain(r *rig) {
	h := r.dial()
	before := r.observe(h, unitQuery(r))
	s := r.begin(h, newRun())
	r.do(s, host.Act{Node: "n", Changes: []host.Change{
		host.File{Path: unitFile, Mode: 0o644, Content: secret.New(unitText)}, host.Unit{Name: unitName, Enabled: "enabled", Active: "started"},
	}})
	r.t.Cleanup(func() { r.sh(`[ ! -e /usr/bin/systemctl.real ] || mv /usr/bin/systemctl.real /usr/bin/systemctl`) })
	r.sh(`mv /usr/bin/systemctl /usr/bin/systemctl.real
printf '#!/bin/sh\n[ -e "%s/answers" ] || { : >"%s/asked"; exit 1; }\nexec /usr/bin/systemctl.real "$@"\n' "$1" "$1" >/usr/bin/systemctl
chmod 0755 /usr/bin/systemctl`, r.Dir)
	done := make(chan error, 1)
	go func() { done <- s.Undo(r.ctx, host.Scope{}, nil) }()
	r.eventually("systemd is asked", func() bool { return r.sh(`[ ! -e "$1/asked" ] || echo yes`, r.Dir) == "yes" })
	r.sh(`: >"$1/answers"`, r.Dir)
	if err := <-done; err != nil {
		r.t.Fatal(explain(err))
	}
	r.end(s)
	if d := diff(stateOf(before), stateOf(r.observe(h, unitQuery(r)))); d != "" {
		r.t.Errorf("not as before (-before +after):\n%s", d)
	}
	if link := r.sh(`ls "/etc/systemd/system/multi-user.target.wants/$1" 2>/dev/null || true`, unitName); link != "" {
		r.t.Errorf("%s is left", link)
	}
}

func testClaimWithMount(r *rig) {
	h := r.dial()
	s := r.begin(h, newRun())
	data := r.Dir + "/data dir"
	r.do(s, host.Act{Node: "n", Changes: []host.Change{
		host.Claim{Paths: []string{data}},
		command("fill", "sh", "-c", `mkdir -p "$1/a/b" && mount -t tmpfs none "$1/a" && mkdir "$1/a/c" && mount -t tmpfs none "$1/a/c" && touch "$1/a/c/f"`, "sh", data),
	}})
	if got := r.sh(`awk -v at="$1" '{gsub(/\\040/, " ", $2)} $2 == at {print $3}' /proc/mounts`, data+"/a/c"); got != "tmpfs" {
		r.t.Errorf("mounted: %q", got)
	}
	r.undo(s, host.Scope{})
	r.end(s)
	if got := r.sh(`ls -A "$1"; grep -c "$1" /proc/mounts || true`, r.Dir); got != "0" {
		r.t.Errorf("left behind: %s", got)
	}
}

// testSwap has swap lines in fstab, but no swap: what is on is the whole machine's.
func testSwap(r *rig) {
	had := r.sh(`cp -a /etc/fstab /etc/fstab.hosttest 2>/dev/null && echo yes || true`)
	r.t.Cleanup(func() {
		if had == "yes" {
			r.sh(`mv /etc/fstab.hosttest /etc/fstab`)
		} else {
			r.sh(`rm -f /etc/fstab`)
		}
	})
	const fstab = "# swap is below\n/dev/sda1 / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n  /swapfile\tswap\tswap\tdefaults\n"
	r.Put(r.t, "/etc/fstab", fstab, 0o644)
	h := r.dial()
	q := host.Query{Paths: []host.PathQuery{{Path: "/etc/fstab", Content: true}}}
	before := r.observe(h, q)
	if len(before.System.Swap) > 0 {
		r.t.Fatal("the test machine has swap on, which the tests must not turn off")
	}
	s := r.begin(h, newRun())
	f := r.do(s, host.Act{Node: "n", Changes: []host.Change{host.SwapOff{}}, Verify: q})
	want := "# swap is below\n/dev/sda1 / ext4 defaults 0 1\n#kubexm# /dev/sda2 none swap sw 0 0\n#kubexm#   /swapfile\tswap\tswap\tdefaults\n"
	if got := string(f.Paths["/etc/fstab"].Content); got != want {
		r.t.Errorf("fstab is\n%s", got)
	}
	if f = r.do(s, host.Act{Node: "n", Changes: []host.Change{host.SwapOff{}}}); f.UndoEntries != 1 {
		r.t.Errorf("%d undo entries", f.UndoEntries)
	}
	// As if these had been on: one that is gone since, and one that is no swap any more.
	r.Put(r.t, r.Dir+"/no-swap", "data", 0o600)
	r.sh(`printf '%s\n' /dev/zram4711 "$1" >>/var/lib/kubexm/undo/1`, r.Dir+"/no-swap")
	r.undo(s, host.Scope{})
	r.end(s)
	if got := string(r.observe(h, q).Paths["/etc/fstab"].Content); got != fstab {
		r.t.Errorf("after the undo fstab is\n%s", got)
	}
}

func testCommandUndo(r *rig) {
	h := r.dial()
	s := r.begin(h, newRun())
	c := command("touch", "touch", r.Dir+"/it's")
	c.Env = []string{"LANG=it's $HOME"}
	c.Undo = []string{"rm", "-f", r.Dir + "/it's"}
	a := host.Act{Node: "n", Changes: []host.Change{c}}
	r.do(s, a)
	if f := r.do(s, a); f.UndoEntries != 1 {
		r.t.Errorf("%d undo entries", f.UndoEntries)
	}
	if got := content(r, h, "it's"); got != "" {
		r.t.Errorf("the command did not run: %q", got)
	}
	fails := command("fails", "true")
	fails.Undo = []string{"sh", "-c", "echo cannot undo >&2; exit 9"}
	r.do(s, host.Act{Node: "n2", Changes: []host.Change{fails}})
	var seen []string
	err := s.Undo(r.ctx, host.Scope{}, func(u host.Undone) { seen = append(seen, fmt.Sprint(u.Key, " ", u.Err == nil)) })
	if errs := hostErrors(err); len(errs) != 1 || errs[0].ExitCode != 9 || !strings.Contains(errs[0].Output, "cannot undo") {
		r.t.Errorf("an undo that fails: %s", explain(err))
	}
	if got := fmt.Sprint(seen); got != "[command fails false command touch true]" {
		r.t.Errorf("reported %s", got)
	}
	if f := r.observe(h, host.Query{}); f.UndoEntries != 1 {
		r.t.Errorf("%d entries are left, want the failed one", f.UndoEntries)
	}
	r.end(s)
	r.sh("rm -rf /var/lib/kubexm") // nothing can undo it
}

func testExec(r *rig) {
	h := r.dial()
	c := command("x", "sh", "-c", `cat; echo "$GREETING"; echo err >&2; exit 5`)
	c.Stdin, c.Env = secret.New(binary), []string{"GREETING=it's\nme"}
	got, err := h.Exec(r.ctx, c)
	if err != nil {
		r.t.Fatal(explain(err))
	}
	if got.ExitCode != 5 || string(got.Stdout) != binary+"it's\nme\n" || string(got.Stderr) != "err\n" {
		r.t.Errorf("got %d, %q, %q", got.ExitCode, got.Stdout, got.Stderr)
	}
	if got, err = h.Exec(r.ctx, command("x", "/no/such/program")); err != nil || got.ExitCode != 127 {
		r.t.Errorf("a program that is not there: %v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(r.ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := h.Exec(ctx, command("x", "sleep", "4711.3")); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Errorf("a command whose context ends: %v", err)
	}
	r.eventually("the command is stopped", func() bool { return !r.runs("sleep 4711.3") })
}

func testObserve(r *rig) {
	h := r.dial()
	r.Put(r.t, r.Dir+"/a", "==> /etc/passwd <==\n@0 - end 0\n", 0o644)
	r.Put(r.t, r.Dir+"/b\\ c", "", 0o600)
	f := r.observe(h, host.Query{
		Paths: []host.PathQuery{
			{Path: r.Dir + "/a", Content: true, Digest: true}, {Path: r.Dir + "/b\\ c", Content: true, Digest: true},
			{Path: r.Dir + "/a/below", Content: true, Digest: true}, {Path: "/dev/null", Content: true, Digest: true}, {Path: "/proc/self"},
		},
		Units: []string{"nope.service", "ssh.service", "nope-2.service"}, Sysctls: []string{"kernel.nope", "kernel.ostype"},
		Packages: []string{"nope", "bash"}, Modules: []string{"nope"}, Ports: []int32{22, 4},
		Commands: []host.CommandQuery{
			{ID: "one", Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}},
			{ID: "two", Argv: []string{"printf", "no newline"}}, {ID: "none", Argv: []string{"/nope"}},
		},
	})
	for what, ok := range map[string]bool{
		"content like a head":  string(f.Paths[r.Dir+"/a"].Content) == "==> /etc/passwd <==\n@0 - end 0\n",
		"digest of empty file": f.Paths[r.Dir+"/b\\ c"].Digest == digestOf(""),
		"path below a file":    !f.Paths[r.Dir+"/a/below"].Exists,
		"device":               f.Paths["/dev/null"].Exists && f.Paths["/dev/null"].Digest == "",
		"link":                 f.Paths["/proc/self"].Target != "",
		"unknown unit":         f.Units["nope.service"].Load == "not-found" && f.Units["nope-2.service"].Load == "not-found",
		"active unit":          f.Units["ssh.service"].Active == "active" && !f.Units["ssh.service"].Since.IsZero(),
		"unknown sysctl":       f.Sysctls["kernel.nope"] == "",
		"sysctl":               f.Sysctls["kernel.ostype"] == "Linux",
		"packages":             f.Packages["nope"] == "" && f.Packages["bash"] != "",
		"module":               !f.Modules["nope"],
		"ports":                f.Ports[22].Process == "sshd" && f.Ports[4] == host.Listener{},
		"command's exit code":  f.Commands["one"].ExitCode == 3,
		"command's output":     string(f.Commands["one"].Stdout) == "out\n" && string(f.Commands["one"].Stderr) == "err\n",
		"output's missing end": string(f.Commands["two"].Stdout) == "no newline",
		"command not there":    f.Commands["none"].ExitCode == 127,
		"system": f.System.OSID != "" && f.System.CPUs > 0 && f.System.MemoryBytes > 0 &&
			f.System.Root && f.System.DiskFreeBytes > 0 && f.System.BootTime.Before(time.Now()),
		"addresses":      len(f.System.Addresses) > 0 && f.System.DefaultInterface != "" && len(f.System.HostnameAddresses) > 0,
		"time service":   f.System.TimeSync == "chrony.service",
		"clocks are one": f.ClockSkew.Abs() < time.Second && time.Since(f.Taken).Abs() < time.Minute,
	} {
		if !ok {
			r.t.Errorf("%s is not as it should be", what)
		}
	}
	if r.t.Failed() {
		r.t.Logf("seen: %+v", f)
	}
}
