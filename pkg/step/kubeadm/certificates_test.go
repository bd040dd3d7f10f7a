// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
)

// controlPlane is a directory that the scripts take for a control plane host's /etc/kubernetes. kubeadm, kubectl and etcdctl are
// scripts of a few lines, in testdata/bin.
type controlPlane struct {
	t   *testing.T
	dir string
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

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	p := &controlPlane{t, t.TempDir()}
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
		{"ssl/admin-n1.pem", "", 0},
		{"admin.conf", "", 0},
		{"manifests/kube-apiserver.yaml", manifest, time.Second},
		{"manifests/kube-controller-manager.yaml", plain, time.Second},
		{"manifests/kube-scheduler.yaml", plain, time.Second},
	} {
		p.write(f.name, f.content)
		if err := os.Chtimes(p.path(f.name), old.Add(f.made), old.Add(f.made)); err != nil {
			t.Fatal(err)
		}
	}
	return p
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

func (p *controlPlane) run(ctx context.Context, argv []string, env ...string) (string, bool) {
	at := slices.Index(argv, "/bin/sh")
	argv = slices.Concat(argv[:at], []string{
		"dir=" + p.dir, "ssl=" + p.path("ssl"), "admin=" + p.path("admin.conf"), "patience=0", "wait=0", "asking=0",
	}, env, argv[at:])
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	fake, _ := filepath.Abs("testdata/bin")
	cmd.Env = append(os.Environ(), "PATH="+fake+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// does is what a step of certificates comes to: why it runs, what it does, and how that fails.
func (p *controlPlane) does(s step.Step) (why, log, failure string) {
	p.t.Helper()
	c := s.(step.Sequence).Parts[0].(step.Command)
	if len(c.Done.Check) > 0 {
		said, ok := p.run(p.t.Context(), c.Done.Check)
		if ok {
			return "", "", ""
		}
		why, _, _ = strings.Cut(said, "\n")
	}
	p.write("log", "")
	failure, ok := p.run(p.t.Context(), c.Argv)
	if ok && failure != "" {
		p.t.Errorf("it said %q", failure)
	}
	if ok && len(c.Done.Check) > 0 {
		if still, ok := p.run(p.t.Context(), c.Done.Check); !ok {
			p.t.Errorf("it ran, and the check still says %q", still)
		}
	}
	return why, strings.ReplaceAll(strings.TrimSpace(p.read("log")), "\n", ", "), failure
}

func of(days int32) (kubeadm.Cluster, kubeadm.Node) {
	target := target(spec.RoleControlPlane)
	target.Cluster.Certificates.RenewBeforeDays = days
	c := kubeadm.Cluster{Name: "prod", Version: "v1.36.3", Spec: target.Cluster, EtcdImageTag: "3.6.14-0"}
	return c, kubeadm.NodeOf(target, containerd.Runtime{}.Endpoint(), "")
}

const restarted = "kubelet restarts kube-apiserver, kubelet restarts kube-controller-manager, kubelet restarts kube-scheduler"

func TestCertificates(t *testing.T) {
	for _, tt := range []struct {
		name               string
		days               int32
		change             func(*controlPlane)
		why, does, failure string
	}{
		{"no host of kubeadm yet", 90, func(p *controlPlane) {
			_ = os.Remove(p.path("manifests/kube-apiserver.yaml"))
			p.write("ends", "")
		}, "", "", ""},
		{"all last: 166 days", 90, nil, "", "", ""},
		{"half of what they are made for is the most", 300, func(p *controlPlane) {
			p.write("ends", "ca 315359995\napiserver ca 15768001 2027-05-22T00:00:00Z\n")
		}, "", "", ""},
		{"one ends soon", 170, nil, "apiserver ends 2027-05-06T00:00:00Z", "kubeadm renew all, lock, " + restarted + ", unlock", ""},
		{"one has ended", 90, func(p *controlPlane) {
			p.write("ends", "ca 315359995\napiserver ca -5 2026-11-20T00:00:00Z\n")
		}, "apiserver ends 2026-11-20T00:00:00Z", "kubeadm renew all, lock, " + restarted + ", unlock", ""},
		{"it ends with its authority", 170, func(p *controlPlane) {
			p.write("ends", "ca 14342400\napiserver ca 14342400 2027-05-06T00:00:00Z\n")
		}, "", "", ""},
		{"no etcd here", 170, func(p *controlPlane) { _ = os.RemoveAll(p.path("ssl")) },
			"apiserver ends 2027-05-06T00:00:00Z", "kubeadm renew all, " + restarted, ""},
		{"cut after the renewal, or somebody has renewed and not restarted", 90, func(p *controlPlane) {
			p.write("scheduler.conf", "second\n")
		}, "kube-scheduler must be restarted: certificates were renewed since", "lock, kubelet restarts kube-scheduler, unlock", ""},
		{"a manifest was taken away", 90, func(p *controlPlane) {
			_ = os.Remove(p.path("manifests/kube-scheduler.yaml"))
			p.write("scheduler.conf", "second\n")
		}, "", "", ""},
		{"kubeadm refuses", 170, func(p *controlPlane) { p.write("refuse", "") },
			"apiserver ends 2027-05-06T00:00:00Z", "kubeadm renew all",
			"kubeadm cannot renew the certificates (all): no key of the authority"},
		{"a component does not come back", 170, func(p *controlPlane) { p.write("ill", "kube-apiserver") },
			"apiserver ends 2027-05-06T00:00:00Z", "kubeadm renew all, lock, kubelet restarts kube-apiserver, unlock",
			"kube-apiserver has new certificates and was restarted, but is not Ready; " +
				"look at: kubectl -n kube-system describe pod kube-apiserver-n1"},
		{"somebody wrote a manifest of their own", 90, func(p *controlPlane) {
			p.write("manifests/kube-scheduler.yaml", "{kind: Pod}\n")
			_ = os.Chtimes(p.path("manifests/kube-scheduler.yaml"), time.Unix(1, 0), time.Unix(1, 0))
		}, "kube-scheduler must be restarted: certificates were renewed since", "lock, unlock", "is not as kubeadm writes it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newControlPlane(t)
			if tt.change != nil {
				tt.change(p)
			}
			c, n := of(tt.days)
			why, does, failure := p.does(kubeadm.Certificates(c, n))
			if why != tt.why || does != tt.does || !strings.Contains(failure, tt.failure) || (failure == "") != (tt.failure == "") {
				t.Errorf("because %q it does %q, and fails with %q", why, does, failure)
			}
		})
	}
}

// A component that does not come back is waited for again, and not restarted once more; the others are left alone until then.
func TestCertificatesGoOn(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(170)
	s := kubeadm.Certificates(c, n)
	p.write("ill", "kube-apiserver")
	if _, _, failure := p.does(s); !strings.Contains(failure, "is not Ready") {
		t.Fatal(failure)
	}
	before := p.read("manifests/kube-apiserver.yaml")
	if strings.Count(before, "kubexm.io/certificates") != 1 || strings.Count(before, "annotations:") != 1 {
		t.Errorf("the manifest is now\n%s", before)
	}
	_ = os.Remove(p.path("ill"))
	why, does, failure := p.does(s)
	wantWhy := "kube-apiserver kube-controller-manager kube-scheduler must be restarted: certificates were renewed since"
	if want := "lock, " + restarted + ", unlock"; why != wantWhy || does != want || failure != "" {
		t.Errorf("because %q it does %q, and fails with %q", why, does, failure)
	}
	if now := p.read("manifests/kube-apiserver.yaml"); now != before {
		t.Errorf("restarted once more: the manifest is now\n%s", now)
	}
	want := "metadata:\n  annotations:\n    kubexm.io/certificates: "
	scheduler := p.read("manifests/kube-scheduler.yaml")
	if !strings.Contains(scheduler, want) || strings.Count(scheduler, "\n") != strings.Count(manifest, "\n") {
		t.Errorf("the manifest is now\n%s", scheduler)
	}
	if why, _, _ := p.does(s); why != "" {
		t.Errorf("it runs again, because %q", why)
	}
	if left, _ := filepath.Glob(p.path(".kubexm*")); left != nil {
		t.Errorf("it left %v", left)
	}
}

// Cut at any time, it goes on where it was, and leaves no component without a manifest.
func TestCertificatesAreCut(t *testing.T) {
	p := newControlPlane(t)
	_ = os.RemoveAll(p.path("ssl")) // who is cut while it has etcd's lock goes on for a while
	c, n := of(170)
	s := kubeadm.Certificates(c, n)
	for after := 5 * time.Millisecond; after < time.Second; after *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, ok := p.run(ctx, s.(step.Sequence).Parts[0].(step.Command).Argv)
		cancel()
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			if !strings.HasPrefix(p.read("manifests/"+component+".yaml"), "apiVersion: v1\nkind: Pod\n") {
				t.Fatalf("after %s %s has no manifest", after, component)
			}
		}
		if ok {
			break
		}
	}
	if _, _, failure := p.does(s); failure != "" {
		t.Error(failure)
	}
}

// What is asked for is renewed though it lasts, and only who reads it is restarted; once for each time at which it is asked for.
func TestRenew(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	asked := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := kubeadm.Renew(c, n, []string{"apiserver", "etcd-peer"}, asked)
	_, does, failure := p.does(s)
	want := "kubeadm renew apiserver, kubeadm renew etcd-peer, lock, kubelet restarts kube-apiserver, unlock"
	if does != want || failure != "" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	config := p.read("config")
	if !strings.Contains(config, "certificateValidityPeriod: 8760h0m0s") || !strings.Contains(config, "local:") {
		t.Errorf("kubeadm is told\n%s", config)
	}
	for _, done := range []struct {
		digest string
		want   bool
	}{{"input", true}, {"another time", false}} {
		journal := map[string]host.JournalEntry{"node": {Digest: done.digest}}
		v := step.View{Node: "node", Digest: "input", Facts: &host.Facts{Journal: journal}}
		if d, err := s.Precheck(v); err != nil || (len(d) == 0) != done.want {
			t.Errorf("%s: %v, %v", done.digest, d, err)
		}
	}
}
