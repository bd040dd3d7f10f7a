//go:build scratch

package ssh

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func scratch(t *testing.T) *Host {
	key, _ := os.ReadFile("/tmp/hx/pool/id_ed25519")
	h, err := Dial(context.Background(), Config{Name: "hx-1", Address: "10.77.1.11", User: "ops", Auth: Auth{PrivateKeys: []secret.Value{secret.New(key)}},
		HostKey: HostKey{KnownHosts: []string{"/tmp/hx/pool/known_hosts"}}})
	if err != nil {
		t.Fatalf("%#v %v", err, err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestScratch(t *testing.T) {
	ctx := context.Background()
	h := scratch(t)
	q := host.Query{Units: []string{"ssh.service", "nope.service"}, Sysctls: []string{"net.ipv4.ip_forward"}, Modules: []string{"br_netfilter", "overlay", "nope"},
		Packages: []string{"sudo", "nope"}, Mounts: []string{"/var", "/x"}, Ports: []int32{22, 80}, Commands: []host.CommandQuery{{ID: "a", Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}}}}
	for _, p := range []string{"/etc/passwd", "/etc/nope", "/etc", "/etc/mtab", "/bin"} {
		q.Paths = append(q.Paths, host.PathQuery{Path: p, Digest: true, Content: p == "/etc/passwd"})
	}
	f, err := h.Observe(ctx, q)
	if err != nil {
		t.Fatalf("%#v", err)
	}
	b, _ := json.MarshalIndent(f, "", " ")
	fmt.Println(string(b))
	for range 5 {
		at := time.Now()
		if f, err = h.Observe(ctx, q); err != nil {
			t.Fatal(err)
		}
		fmt.Println(time.Since(at))
	}
	fmt.Println(h.Stats())
}

func TestDo(t *testing.T) {
	ctx := context.Background()
	h := scratch(t)
	at := time.Now()
	s, err := h.Begin(ctx, host.Run{ID: fmt.Sprint("run ", at.UnixNano()), Holder: "scratch 1@x"})
	if err != nil {
		t.Fatalf("%#v", err)
	}
	fmt.Println("begin", time.Since(at))
	do := func(node string, q host.Query, c ...host.Change) {
		t.Helper()
		at := time.Now()
		f, err := s.Do(ctx, host.Act{Node: node, Task: "t", Digest: "d", Changes: c, Verify: q, Timeout: 30 * time.Second})
		fmt.Println(node, time.Since(at))
		if err != nil {
			e, _ := err.(*host.Error)
			fmt.Printf("   %v\n%#v\n", err, e)
			return
		}
		b, _ := json.Marshal(map[string]any{"p": f.Paths, "u": f.Units, "s": f.Sysctls, "b": f.Blocks, "e": f.UndoEntries, "sys": len(f.System.Hostname)})
		fmt.Println("  ", string(b))
	}
	pq := func(p ...string) (q host.Query) {
		for _, x := range p {
			q.Paths = append(q.Paths, host.PathQuery{Path: x, Digest: true, Content: true})
		}
		return
	}
	do("file", pq("/etc/xx/yy/a.conf"), host.File{Path: "/etc/xx/yy/a.conf", Mode: 0o644, Content: secret.New("hello 'x'\n%s\\n\n")})
	do("file2", pq("/etc/xx/yy/a.conf"), host.File{Path: "/etc/xx/yy/a.conf", Mode: 0o600, Owner: "ops", Content: secret.New("hello\x00\\2-%\n")})
	do("hosts", pq("/etc/hosts"), host.Block{Path: "/etc/hosts", Name: "nodes", Content: "10.0.0.1 a\n"})
	do("dir", pq("/srv/d"), host.Directory{Path: "/srv/d", Mode: 0o700})
	do("link", pq("/srv/d/l"), host.Link{Path: "/srv/d/l", Target: "../x"})
	do("absent", pq("/etc/motd"), host.Absent{Path: "/etc/motd"})
	unit := "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"
	do("unitfile", pq("/etc/systemd/system/kx.service"), host.File{Path: "/etc/systemd/system/kx.service", Mode: 0o644, Content: secret.New(unit)})
	do("unit", host.Query{Units: []string{"kx.service"}}, host.Unit{Name: "kx.service", Enabled: "enabled", Active: "started"})
	do("sysctl", host.Query{Sysctls: []string{"net.ipv4.ip_forward"}}, host.Sysctl{Name: "net.ipv4.ip_forward", Value: "0"})
	do("swap", host.Query{}, host.SwapOff{})
	do("module", host.Query{Modules: []string{"br_netfilter"}}, host.Module{Name: "br_netfilter"})
	do("claim", host.Query{}, host.Claim{Paths: []string{"/var/lib/foo", "/srv/d"}})
	do("cmd", host.Query{}, host.Command{Title: "fill", Argv: []string{"sh", "-c", "mkdir -p /var/lib/foo/m; mount -t tmpfs x /var/lib/foo/m; cat > /var/lib/foo/x"}, Stdin: secret.New("abc")})
	do("bad", host.Query{}, host.Command{Title: "bad", Argv: []string{"sh", "-c", "echo nope secretword; exit 7"}, Stdin: secret.New("secretword")})
	do("slow", host.Query{}, host.Command{Title: "slow", Argv: []string{"sleep", "100"}, Timeout: 300 * time.Millisecond})
	do("undo", host.Query{}, host.Command{Title: "undo", Argv: []string{"true"}, Undo: []string{"sh", "-c", "echo done > /tmp/undone"}})
	var sum time.Duration
	for i := range 20 {
		at := time.Now()
		p := fmt.Sprintf("/etc/xx/f%d", i)
		_, err := s.Do(ctx, host.Act{Node: "n", Task: "t", Digest: "d", Changes: []host.Change{host.File{Path: p, Mode: 0o644, Content: secret.New("hello\n")}}, Verify: host.Query{Paths: []host.PathQuery{{Path: p, Digest: true}}}})
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Since(at)
	}
	fmt.Println("per Do", sum/20)
	at = time.Now()
	err = s.Undo(ctx, host.Scope{}, func(u host.Undone) { fmt.Println("  undone", u.Key, u.Node, u.Err) })
	fmt.Println("undo", time.Since(at), err)
	at = time.Now()
	fmt.Println("end", s.End(ctx, false), time.Since(at))
}

func TestStage(t *testing.T) {
	ctx := context.Background()
	h := scratch(t)
	s, err := h.Begin(ctx, host.Run{ID: "stage", Holder: "scratch 1@x"})
	if err != nil {
		t.Fatalf("%#v", err)
	}
	blob := host.Blob{Digest: "sha256:0fe534a17b10df6caa6894072f546905e347110e9991daf141f9b80ffc5387d0", Size: 200 << 20, Name: "r200", Open: func() (io.ReadCloser, error) { return os.Open("/tmp/r200") }}
	for range 3 {
		at := time.Now()
		if err := s.Stage(ctx, []host.Blob{blob}); err != nil {
			t.Fatalf("%#v", err)
		}
		fmt.Println("stage", time.Since(at))
		at = time.Now()
		if err := s.Stage(ctx, []host.Blob{blob}); err != nil {
			t.Fatalf("%#v", err)
		}
		fmt.Println("again", time.Since(at))
		at = time.Now()
		f, err := s.Do(ctx, host.Act{Node: "n", Task: "t", Digest: "d", Changes: []host.Change{host.File{Path: "/usr/local/bin/r200", Mode: 0o755, Blob: blob.Digest}}, Verify: host.Query{Paths: []host.PathQuery{{Path: "/usr/local/bin/r200", Digest: true}}}})
		fmt.Println("install", time.Since(at), err)
		fmt.Println(f.Paths)
		at = time.Now()
		fmt.Println(s.Undo(ctx, host.Scope{Node: "n"}, func(u host.Undone) { fmt.Println("  undone", u.Key, u.Node, u.Err) }), time.Since(at))
	}
	s.Undo(ctx, host.Scope{}, nil)
	fmt.Println("end", s.End(ctx, false), h.Stats())
}
