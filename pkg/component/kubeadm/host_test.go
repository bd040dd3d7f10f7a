// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// controlPlane is a directory that steps take for a control plane host's /etc/kubernetes. kubeadm, kubectl with the kubelet behind
// it, and etcdctl are scripts of a few lines, in testdata/bin.
type controlPlane struct {
	t       *testing.T
	dir     string
	journal map[string]host.JournalEntry
}

const manifest = `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443
  labels:
    component: kube-apiserver
spec: {}
`

// newControlPlane is a host whose control plane was just made, of another version.
func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	p := &controlPlane{t, t.TempDir(), map[string]host.JournalEntry{}}
	old := time.Now().Add(-200 * 24 * time.Hour)
	const annotations = "  annotations:\n    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: 10.0.0.1:6443\n"
	plain := strings.Replace(manifest, annotations, "", 1)
	for _, f := range []struct {
		name, content string
		made          time.Duration
	}{
		{"ends", "ca 315359995\netcd-ca 3.15359995e+08\nfront-proxy-ca 315359995\n" +
			"apiserver ca 14342400 2027-05-06T00:00:00Z\netcd-peer etcd-ca 14342400 2027-05-06T00:00:00Z\n", 0},
		{"pki/apiserver.crt", "first\n", 0},
		{"pki/apiserver-kubelet-client.crt", "first\n", 0},
		{"pki/front-proxy-client.crt", "first\n", 0},
		{"controller-manager.conf", "first\nclient-key-data: secret\n", 0},
		{"scheduler.conf", "first\n", 0},
		{"admin.conf", "", 0},
		{"kubelet.conf", "", 0},
		{"manifests/etcd.yaml", etcdManifest, time.Second},
		{"manifests/kube-apiserver.yaml", manifest, time.Second},
		{"manifests/kube-controller-manager.yaml", plain, time.Second},
		{"manifests/kube-scheduler.yaml", plain, time.Second},
	} {
		p.write(f.name, f.content)
		if err := os.Chtimes(p.path(f.name), old.Add(f.made), old.Add(f.made)); err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(f.name, "manifests/"); ok {
			p.write("running/"+strings.TrimSuffix(name, ".yaml"), f.content)
			p.renders(name, strings.NewReplacer(
				"    - --initial-cluster=n0=https://10.0.0.9:2380,n1=https://10.0.0.1:2380\n    - --initial-cluster-state=existing\n",
				"    - --initial-cluster=n1=https://10.0.0.1:2380\n").Replace(f.content))
		}
	}
	p.made()
	return p
}

// made records what is there as just made by kubeadm of another version.
func (p *controlPlane) made() {
	p.t.Helper()
	c, n := of(90)
	c.Version = "v1.35.4"
	for _, part := range kubeadm.JoinControlPlane(c, n, none, none).(step.Sequence).Parts {
		if record, ok := part.(step.Command); ok && record.Title == "record what kubeadm has made" {
			if said, ok := p.run(p.t.Context(), record.Argv); !ok || said != "" {
				p.t.Fatal(said)
			}
			return
		}
	}
	p.t.Fatal("nothing records the static pods")
}

// renders says what kubeadm would write into the file of that name.
func (p *controlPlane) renders(file, content string) {
	phase := "control"
	switch {
	case file == "etcd.yaml":
		phase = "etcd"
	case !strings.HasPrefix(file, "kube-"):
		phase = "kubelet"
	}
	p.write("renders/"+phase+"+"+file, content)
}

func (p *controlPlane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *controlPlane) write(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *controlPlane) read(name string) string {
	p.t.Helper()
	content, err := os.ReadFile(p.path(name))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(content)
}

// files is what the host has of a control plane, by name.
func (p *controlPlane) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"manifests/*", "kubexm-*/*", "pki/*", "*.conf", "kubeadm-*", "kubelet/*"} {
		names, err := filepath.Glob(p.path(pattern))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, name := range names {
			name, _ = filepath.Rel(p.dir, name)
			all[name] = p.read(name)
		}
	}
	return all
}

// here is text with the host's paths in this directory.
func (p *controlPlane) here(text string) string {
	return strings.NewReplacer("/etc/kubernetes", p.dir, "/var/lib/kubelet", p.path("kubelet"), "/var/log/pods", p.path("logs"),
		"/etc/kubexm/etcd/ssl", p.path("ssl"), "/var/lib/kubexm", p.path("kubexm")).Replace(text)
}

func (p *controlPlane) command(ctx context.Context, argv []string, env ...string) *exec.Cmd {
	argv = slices.Clone(argv)
	for i := range argv {
		if !strings.HasPrefix(argv[i], "config=") { // which is a text, not a path
			argv[i] = p.here(argv[i])
		}
	}
	if at := slices.Index(argv, "/bin/sh"); at > 0 {
		argv = slices.Concat(argv[:at], []string{"patience=0"}, env, argv[at:])
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	fake, _ := filepath.Abs("testdata/bin")
	cmd.Env = append(os.Environ(), "PATH="+fake+":"+os.Getenv("PATH"), "dir="+p.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

func (p *controlPlane) run(ctx context.Context, argv []string, env ...string) (string, bool) {
	out, err := p.command(ctx, argv, env...).CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// observe answers a query.
func (p *controlPlane) observe(q host.Query) *host.Facts {
	p.t.Helper()
	f := &host.Facts{Paths: map[string]host.Path{}, Commands: map[string]host.Result{}, Journal: maps.Clone(p.journal)}
	for _, asked := range q.Paths {
		info, err := os.Stat(p.here(asked.Path))
		if err != nil {
			f.Paths[asked.Path] = host.Path{}
			continue
		}
		fact := host.Path{Exists: true, Mode: info.Mode(), Owner: "root", Group: "root", Modified: info.ModTime()}
		if content, err := os.ReadFile(p.here(asked.Path)); err == nil {
			sum := sha256.Sum256(content)
			fact.Digest = "sha256:" + hex.EncodeToString(sum[:])
		}
		f.Paths[asked.Path] = fact
	}
	for _, asked := range q.Commands {
		cmd := p.command(p.t.Context(), asked.Argv)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.t.Fatal(err)
		}
		f.Commands[asked.ID] = host.Result{ExitCode: cmd.ProcessState.ExitCode(), Stdout: out}
	}
	return f
}

// undo restores what a change replaced.
type undo func()

// change does what an act on a host does.
func (p *controlPlane) change(c host.Change) (undo, error) {
	p.t.Helper()
	switch c := c.(type) {
	case host.File:
		file := p.here(c.Path)
		before, err := os.ReadFile(file)
		if err := os.WriteFile(file, c.Content.Reveal(), c.Mode); err != nil {
			return nil, err
		}
		return func() {
			if err != nil {
				_ = os.Remove(file)
			} else {
				_ = os.WriteFile(file, before, c.Mode)
			}
		}, nil
	case host.Command:
		if said, ok := p.run(p.t.Context(), c.Argv); !ok {
			return nil, errors.New(said)
		} else if said != "" {
			p.t.Errorf("%s says %q", c.Title, said)
		}
		return func() {
			if len(c.Undo) == 0 {
				return
			}
			if said, ok := p.run(p.t.Context(), c.Undo); !ok {
				p.t.Errorf("undo of %s: %s", c.Title, said)
			}
		}, nil
	}
	p.t.Fatalf("an act of these steps is a %T", c)
	return nil, nil
}

// converge runs steps, one after the other, as the engine does: those that differ, and when one fails behind a savepoint, what was done
// since is undone. What is waited for is there soon or never. It returns the names of those that differed, what kubeadm and the kubelet
// did, and the failure. stop, if not "", is the name of the step after which the run is cut.
func (p *controlPlane) converge(steps []step.Step, stop string) (differed []string, log, failure string) {
	p.t.Helper()
	p.write("log", "")
	var since []undo
	opened := false
	for _, s := range steps {
		name := s.Meta().Name
		v := step.View{Facts: p.observe(s.Observe()), Node: name, Digest: digestOf(p.t, s)}
		d, err := s.Precheck(v)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(d) > 0 {
			if !step.Waits(s) {
				differed = append(differed, name)
			}
			var e step.Effect
			e, err = s.(step.Actor).Effect(v)
			if step.Waits(s) { // what the kubelet did when it was asked the first time is seen the second
				v.Facts = p.observe(s.Observe())
				if d, _ := s.Precheck(v); len(d) == 0 {
					err = nil
				} else {
					_, err = s.(step.Actor).Effect(v)
				}
			}
			for _, c := range e.Changes {
				var back undo
				if back, err = p.change(c); err != nil {
					break
				}
				since = append(since, back)
			}
		}
		if err == nil && len(d) > 0 {
			p.journal[name] = host.JournalEntry{Digest: v.Digest}
			if d, err := s.Precheck(step.View{Facts: p.observe(s.Observe()), Node: name, Digest: v.Digest}); err != nil || len(d) > 0 {
				p.t.Errorf("%s ran, and still differs: %v, %v", name, d, err)
			}
		}
		opens, commits := step.SavepointOf(s)
		opened = opened && commits == "" || opens != nil && len(d) > 0
		if err != nil {
			if opened {
				for _, back := range slices.Backward(since) {
					back()
				}
			}
			failure = err.Error()
			break
		}
		if name == stop {
			break
		}
	}
	if left, _ := filepath.Glob(p.path(".kubexm*")); left != nil {
		p.t.Errorf("it left %v", left)
	}
	return differed, strings.ReplaceAll(strings.TrimSpace(p.read("log")), "\n", ", "), failure
}

func digestOf(t *testing.T, s step.Step) string {
	t.Helper()
	text, err := step.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func of(days int32) (kubeadm.Cluster, kubelet.Node) {
	target := target(spec.RoleControlPlane)
	target.Cluster.Certificates.RenewBeforeDays = days
	c := kubeadm.Cluster{Name: "prod", Version: "v1.36.3", Spec: target.Cluster, EtcdImageTag: "3.6.14-0"}
	return c, kubelet.NodeOf(target, containerd.Runtime{}.Endpoint(), "")
}
