// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func bundleDir() string { return cmp.Or(os.Getenv("KUBEXM_BUNDLE"), "../../../build/bundle") }

// programs is the directory of etcd, etcdctl and etcdutl in the bundle.
func programs(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(bundleDir(), "etcd", "*", runtime.GOARCH))
	if err != nil || len(found) != 1 {
		t.Fatalf("there is no etcd in the bundle: make the bundle first (%v %v)", found, err)
	}
	dir, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is a member that runs as a process on this machine, at a loopback address of its own. The scripts are those of the
// steps; systemd is a script of a few lines.
type process struct {
	t                      *testing.T
	dir, programs, address string
	settings               etcd.Settings
	ca                     pki.KeyPair
}

// addresses counts the members of all tests, which run beside each other.
var addresses atomic.Int32

// processes are n members that do not run yet, the first of which begins the cluster.
func processes(t *testing.T, n int, tuning spec.Etcd) []*process {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	var all []*process
	var members []spec.Member
	for i := range n {
		address := fmt.Sprintf("127.77.%d.%d", os.Getpid()%250, addresses.Add(1))
		members = append(members, spec.Member{Name: fmt.Sprintf("n%d", i+1), Address: address})
	}
	for i, m := range members {
		p := &process{t: t, dir: t.TempDir(), programs: programs(t), address: m.Address, ca: ca}
		tuning.DataDir = filepath.Join(p.dir, "data")
		p.settings = etcd.Settings{
			Name: m.Name, Address: m.Address, Cluster: "prod", Spec: tuning, First: i == 0, Members: members, Form: etcd.Unit,
		}
		p.write(ca)
		t.Cleanup(func() {
			p.stop()
			if t.Failed() {
				log, _ := os.ReadFile(p.path("log"))
				t.Logf("%s says: %s", m.Name, log[max(0, len(log)-600):])
			}
		})
		all = append(all, p)
	}
	return all
}

func (p *process) path(name string) string { return filepath.Join(p.dir, name) }

func (p *process) put(name string, content []byte) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), content, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

var flagInUnit = regexp.MustCompile(`"(--[^"]*)"`)

// write makes of the steps' files and certificates what they make on a host, in the member's directory.
func (p *process) write(ca pki.KeyPair) {
	p.t.Helper()
	p.put("ssl/ca.pem", ca.Cert)
	for _, c := range step.Certificates(etcd.Certificates(p.settings)) {
		made, err := ca.Sign(pki.LeafRequest{CommonName: c.CommonName, DNSNames: c.DNSNames, IPs: c.Addresses, Usages: c.Usages})
		if err != nil {
			p.t.Fatal(err)
		}
		p.put("ssl/"+filepath.Base(c.Path), made.Cert)
		p.put("ssl/"+filepath.Base(c.KeyPath), made.Key.Reveal())
	}
	if err := os.MkdirAll(p.settings.Spec.DataDir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	unit := fileOf(p.t, etcd.Member(p.settings, graph.Output[string]{Name: "done"}))
	p.put("unit", []byte(unit.Content.String()))
	var flags []string
	for _, f := range flagInUnit.FindAllStringSubmatch(unit.Content.String(), -1) {
		// 127.0.0.1 is one for all of them here.
		flags = append(flags, strings.NewReplacer(
			"/etc/kubexm/etcd", p.dir, ",https://127.0.0.1:2379", "", "127.0.0.1:2381", p.address+":2381").Replace(f[1]))
	}
	p.put("flags", []byte(strings.Join(flags, "\n")))
}

func fileOf(t *testing.T, s step.Step) step.File {
	t.Helper()
	parts := s.(step.Sequence).Parts
	return parts[slices.IndexFunc(parts, func(p step.Step) bool { return step.KindOf(p) == "file" })].(step.File)
}

// command is a script of a step, told of this member's directory instead of the host's.
func (p *process) command(ctx context.Context, argv []string, also ...string) *exec.Cmd {
	at := slices.Index(argv, "/bin/sh")
	here := append([]string{
		"dir=" + p.dir, "config=" + p.path("unit"), "program=" + filepath.Join(p.programs, "etcd"), "run=" + p.path("run"),
	}, also...)
	argv = slices.Concat(argv[:at], here, argv[at:])
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	fake, _ := filepath.Abs("testdata/bin")
	cmd.Env = append(os.Environ(), "PATH="+fake+":"+p.programs+":"+os.Getenv("PATH"), "QUESTIONS="+p.path("questions"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// converge does to the member what an engine does: nothing where the check says so, else the command, after which the check must
// hold. It returns what the check and then the command said.
func (p *process) converge(s step.Step, also ...string) (reason, failure string) {
	p.t.Helper()
	parts := s.(step.Sequence).Parts
	c := parts[len(parts)-1].(step.Command)
	reason, ok := p.run(c.Done.Check, also...)
	if ok {
		return "", ""
	}
	began := time.Now()
	failure, ok = p.run(c.Argv, also...)
	p.t.Logf("%s: %s: %s: %s %s", p.settings.Name, c.Title, reason, time.Since(began).Round(time.Millisecond), failure)
	if !ok {
		return reason, cmp.Or(failure, "failed without a word")
	}
	if still, ok := p.run(c.Done.Check, also...); !ok {
		p.t.Errorf("%s ran, and the check still says %s", c.Title, still)
	}
	return reason, ""
}

func (p *process) run(argv []string, also ...string) (said string, ok bool) {
	p.t.Helper()
	out, err := p.command(p.t.Context(), argv, also...).CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

func (p *process) member() step.Step {
	return etcd.Member(p.settings, graph.Output[string]{Name: "done"})
}

// must converges, and wants the reason.
func (p *process) must(s step.Step, reason string, also ...string) {
	p.t.Helper()
	why, failure := p.converge(s, also...)
	if failure != "" {
		p.t.Fatalf("%s: %s", p.settings.Name, failure)
	}
	if !strings.Contains(why, reason) || (reason == "") != (why == "") {
		p.t.Errorf("%s: ran because %q, want %q", p.settings.Name, why, reason)
	}
}

// refuses converges, and wants a failure that says why.
func (p *process) refuses(s step.Step, want string) {
	p.t.Helper()
	if _, failure := p.converge(s); !strings.Contains(failure, want) {
		p.t.Errorf("%s: the failure is %q, it should say %q", p.settings.Name, failure, want)
	}
}

// systemctl is the script of a few lines.
func (p *process) systemctl(verb string) {
	_ = p.command(context.Background(), []string{"env", "/bin/sh", "-c", "systemctl " + verb}).Run()
}

func (p *process) stop() { p.systemctl("stop") }

func (p *process) pid() string {
	p.t.Helper()
	pid, err := os.ReadFile(p.path("pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(pid)
}

// ctl is etcdctl at this member.
func (p *process) ctl(words ...string) string {
	p.t.Helper()
	out, err := p.tryCtl(words...)
	if err != nil {
		p.t.Fatalf("etcdctl %v at %s: %v: %s", words, p.settings.Name, err, out)
	}
	return out
}

func (p *process) tryCtl(words ...string) (string, error) { return p.etcdctl("", words...) }

// put1MiB writes a value that is too large for a command line.
func (p *process) put1MiB() (string, error) {
	return p.etcdctl(strings.Repeat("x", 1<<20), "put", "large")
}

func (p *process) etcdctl(stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(p.programs, "etcdctl"), append([]string{
		"--endpoints=https://" + p.address + ":2379", "--cacert=" + p.path("ssl/ca.pem"),
		"--cert=" + p.path("ssl/admin-"+p.settings.Name+".pem"), "--key=" + p.path("ssl/admin-"+p.settings.Name+"-key.pem"),
	}, words...)...)
	var out bytes.Buffer
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// members are the names of the voting members as this one knows them; learners have a star.
func (p *process) members() string {
	p.t.Helper()
	var names []string
	for line := range strings.Lines(p.ctl("member", "list")) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		if f[5] == "true" {
			f[2] += "*"
		}
		names = append(names, f[2])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// wantThree wants the first three to be the voting members.
func (p *process) wantThree() {
	p.t.Helper()
	const want = "n1 n2 n3"
	if got := p.members(); got != want {
		p.t.Fatalf("the members are %q, want %q", got, want)
	}
}

func (p *process) leads() bool {
	p.t.Helper()
	out := p.ctl("endpoint", "status", "-w", "fields")
	field := func(name string) string {
		return regexp.MustCompile(`"` + name + `" : (\d+)`).FindStringSubmatch(out)[1]
	}
	return field("Leader") == field("MemberID")
}

// without are the settings when the named hosts leave.
func (p *process) without(names ...string) etcd.Settings {
	s := p.settings
	s.Members, s.Leaving = nil, nil
	for _, m := range p.settings.Members {
		if slices.Contains(names, m.Name) {
			s.Leaving = append(s.Leaving, m)
		} else {
			s.Members = append(s.Members, m)
		}
	}
	return s
}

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	all := processes(t, 4, spec.Etcd{})
	n1, n2, n3, n4 := all[0], all[1], all[2], all[3]

	n2.refuses(n2.member(), "it must be begun and well before n2 can join")
	// What another made as a static pod is not taken over.
	if _, failure := n1.converge(n1.member(), "manifest="+n1.path("unit")); !strings.Contains(failure, "etcd.type that the cluster was made with, kubeadm") {
		t.Errorf("beside a static pod a unit is begun: %q", failure)
	}
	n1.must(n1.member(), "no voting member answers here")
	n1.must(n1.member(), "")
	n1.ctl("put", "color", "blue")
	n2.must(n2.member(), "no voting member answers here")

	// Cut at any time, it goes on where it was.
	parts := n3.member().(step.Sequence).Parts
	join := parts[len(parts)-1].(step.Command)
	for after := 20 * time.Millisecond; after < 2*time.Second; after = after * 3 / 2 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		out, err := n3.command(ctx, join.Argv).CombinedOutput()
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			t.Fatalf("%s", out)
		}
	}
	if _, failure := n3.converge(n3.member()); failure != "" {
		t.Fatal(failure)
	}
	n3.wantThree()
	if got := n3.ctl("get", "color", "--print-value-only"); got != "blue" {
		t.Errorf("n3 has %q", got)
	}

	// Anyone who is said to begin must not begin a second cluster.
	first := n4.settings
	first.First = true
	n4.refuses(etcd.Member(first, graph.Output[string]{Name: "done"}), "let it join as a later member instead")

	// A member that has lost its data comes back as another.
	n3.stop()
	if err := os.RemoveAll(n3.settings.Spec.DataDir); err != nil {
		t.Fatal(err)
	}
	n3.must(n3.member(), "no voting member answers here")
	n3.wantThree()
	// So does the first, which does not begin anew.
	n1.stop()
	if err := os.RemoveAll(n1.settings.Spec.DataDir); err != nil {
		t.Fatal(err)
	}
	n1.systemctl("start")
	n1.must(n1.member(), "no voting member answers here")
	n1.wantThree()

	// The leader is removed, and comes back with data that nobody wants.
	var leader *process
	for _, p := range all[:3] {
		if p.leads() {
			leader = p
		}
	}
	other := all[(slices.Index(all, leader)+1)%3]
	other.must(etcd.Members(other.settings), "")
	other.must(etcd.Members(other.without(leader.settings.Name)), "is a member still")
	if !other.leads() {
		t.Error("the leader was removed without handing over to the member that removes it")
	}
	leader.systemctl("stop")
	leader.must(leader.member(), "no voting member answers here")
	leader.wantThree()

	leader.refuses(etcd.Members(leader.without(leader.settings.Name)), "is itself to go")

	// Nobody is removed who is needed.
	other.stop()
	third := all[3-slices.Index(all, leader)-slices.Index(all, other)]
	leader.refuses(etcd.Members(leader.without(third.settings.Name)), "would have no quorum")
	leader.must(etcd.Members(leader.without(other.settings.Name)), "is a member still")
}

// Of two that go, the one that does not answer goes first, in whatever order etcd has them: without it the other may go as well.
func TestTheDeadGoFirst(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), "no voting member answers here")
	}
	n1, alive, dead := all[0], all[1], all[2]
	if lines := n1.ctl("member", "list"); strings.Index(lines, "n3,") < strings.Index(lines, "n2,") {
		alive, dead = dead, alive
	}
	dead.stop()
	n1.must(etcd.Members(n1.without(alive.settings.Name, dead.settings.Name)), "is a member still")
	if got := n1.members(); got != "n1" {
		t.Errorf("the members are %q", got)
	}
}

// Anyone who cannot join learns who keeps them waiting.
func TestJoinsWait(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	n1, n2, n3 := all[0], all[1], all[2]
	second := fmt.Sprintf("n2 (https://%s:2380)", n2.address)
	n1.must(n1.member(), "no voting member answers here")
	// Cut off as soon as it was announced.
	n1.ctl("member", "add", "n2", "--learner", "--peer-urls=https://"+n2.address+":2380")
	n3.refuses(n3.member(), "n3 waits for "+second+": etcd takes one new member at a time")
	if got := n1.members(); got != "* n1" {
		t.Errorf("the members are %q", got)
	}
	n2.must(n2.member(), "no voting member answers here")

	n2.stop()
	n3.refuses(n3.member(), "These do not answer: "+second)
	n2.must(n2.member(), "no voting member answers here")
	n3.must(n3.member(), "no voting member answers here")
	n3.wantThree()
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), "no voting member answers here")
	}
	n1, n2, n3 := all[0], all[1], all[2]
	before := n1.pid()
	touch := func(p *process) { p.put("ssl/ca.pem", read(t, p.path("ssl/ca.pem"))) }
	touch(n1)
	n1.must(n1.member(), "older than "+n1.path("ssl/ca.pem"))
	if n1.pid() == before {
		t.Error("it was not restarted")
	}
	n1.must(n1.member(), "")

	n3.stop()
	touch(n1)
	before = n1.pid()
	n1.refuses(n1.member(), "would cost the cluster its quorum, because these members do not answer: n3")
	if n1.pid() != before {
		t.Error("it was restarted")
	}
	n3.must(n3.member(), "no voting member answers here")
	// Two at a time: one waits for the other.
	touch(n2)
	failures := make(chan string, 2)
	for _, p := range []*process{n1, n2} {
		go func() {
			_, failure := p.converge(p.member())
			failures <- failure
		}()
	}
	for range 2 {
		if failure := <-failures; failure != "" {
			t.Error(failure)
		}
	}
}

// What a member costs are the questions for which etcdctl is started: each takes as long as all else of a script.
func TestMemberIsAskedLittle(t *testing.T) {
	t.Parallel()
	n := processes(t, 1, spec.Etcd{})[0]
	asked := func() int {
		t.Helper()
		all := string(read(t, n.path("questions")))
		n.put("questions", nil)
		t.Logf("asked:\n%s", all)
		return strings.Count(all, "\n")
	}
	n.must(n.member(), "no voting member answers here")
	asked()
	if n.must(n.member(), ""); asked() != 1 {
		t.Error("a member that is as it must be is asked more than once")
	}
	n.put("ssl/ca.pem", read(t, n.path("ssl/ca.pem")))
	n.must(n.member(), "older than "+n.path("ssl/ca.pem"))
	// Who it is, thrice; who else votes, by the list, before and under the lock; and until it answers again, a few times on a slow machine.
	if n := asked(); n < 5 || n > 8 {
		t.Errorf("a restart asks %d times, want 6", n)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestMaintenance(t *testing.T) {
	t.Parallel()
	all := processes(t, 2, spec.Etcd{QuotaBackendBytes: 16 << 20})
	for _, p := range all {
		p.must(p.member(), "no voting member answers here")
	}
	leader, other := all[0], all[1]
	if other.leads() {
		leader, other = other, leader
	}
	leader.must(etcd.Maintenance(leader.settings), "")
	full := false
	for range 40 {
		if out, err := leader.put1MiB(); err != nil {
			if full = strings.Contains(out, "database space exceeded"); !full {
				t.Fatal(out)
			}
			break
		}
	}
	if !full {
		t.Fatal("the database did not reach its quota")
	}
	other.must(etcd.Maintenance(other.settings), "") // the leader's host does it
	leader.must(leader.member(), "")                 // a full database is no reason to join again
	leader.must(etcd.Maintenance(leader.settings), "has reached its quota")
	other.ctl("put", "large", "small")

	for range 6 { // with room to spare below the quota: pages are freed a little after they are replaced
		if out, err := leader.put1MiB(); err != nil {
			t.Fatal(out)
		}
	}
	field := func(p *process, name string) int {
		value := regexp.MustCompile(`"` + name + `" : (\d+)`).FindStringSubmatch(p.ctl("endpoint", "status", "-w", "fields"))[1]
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	leader.ctl("compact", "--physical", strconv.Itoa(field(leader, "Revision")))
	// Each member gives up history by itself, and pages become free with what is written next: less than half, the step checks,
	// is to be in use at both before it runs.
	for _, p := range all {
		for deadline := time.Now().Add(time.Minute); 2*field(p, "DBSizeInUse") >= field(p, "DBSize"); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d bytes in use of %d, a minute after history was given up", p.settings.Name, field(p, "DBSizeInUse"), field(p, "DBSize"))
			}
			leader.ctl("put", "large", "small")
			time.Sleep(50 * time.Millisecond)
		}
	}
	if !leader.leads() { // a busy machine elects another
		leader = other
	}
	leader.must(etcd.Maintenance(leader.settings), "") // small things are left alone
	leader.must(etcd.Maintenance(leader.settings), "is more than half free", "loose=2000000")
}
