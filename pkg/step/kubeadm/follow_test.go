// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeadm"
)

// renders says what kubeadm would write: for the phase etcd or control-plane, by the file's name.
func (p *controlPlane) renders(phase, file, content string) {
	p.write("renders/"+phase+"+"+file, content)
}

// follow runs the script of StaticPods, with more in its environment, and returns what it does and how it fails.
func (p *controlPlane) follow(env ...string) (log, failure string) {
	p.t.Helper()
	c, n := of(90)
	p.write("log", "")
	argv := kubeadm.StaticPods(c, n).(step.Sequence).Parts[0].(step.Command).Argv
	failure, ok := p.run(p.t.Context(), argv, append(env, "logs="+p.path("logs"))...)
	if ok && failure != "" {
		p.t.Errorf("it said %q", failure)
	}
	if left, _ := filepath.Glob(p.path(".kubexm*")); left != nil {
		p.t.Errorf("it left %v", left)
	}
	return strings.ReplaceAll(strings.TrimSpace(p.read("log")), "\n", ", "), failure
}

// make records what is there as just made by kubeadm of another version.
func (p *controlPlane) make() {
	p.t.Helper()
	c, n := of(90)
	c.Version = "v1.35.4"
	var token graph.Output[string]
	for _, part := range kubeadm.JoinControlPlane(c, n, token, token).(step.Sequence).Parts {
		if record, ok := part.(step.Command); ok && record.Title == "record what kubeadm has made" {
			if said, ok := p.run(p.t.Context(), record.Argv); !ok || said != "" {
				p.t.Fatal(said)
			}
			return
		}
	}
	p.t.Fatal("nothing records the static pods")
}

// followed writes the file that the step writes last.
func (p *controlPlane) followed() {
	p.t.Helper()
	c, n := of(90)
	file := kubeadm.StaticPods(c, n).(step.Sequence).Parts[1].(step.File)
	p.write(filepath.Base(file.Path), file.Content[0].Literal)
}

// check is why the step runs, nothing if it does not.
func (p *controlPlane) check() string {
	p.t.Helper()
	c, n := of(90)
	said, ok := p.run(p.t.Context(), kubeadm.StaticPods(c, n).(step.Sequence).Parts[0].(step.Command).Done.Check)
	if ok != (said == "") {
		p.t.Errorf("the check says %q", said)
	}
	return said
}

// unmarked is a manifest without our marks.
func unmarked(manifest string) string {
	return regexp.MustCompile(`(?m)^(    kubexm\.io/.*|  annotations:)\n`).ReplaceAllString(manifest, "")
}

// newer is a manifest of another version of kubeadm.
func newer(manifest string) string {
	return strings.Replace(manifest, "spec: {}", "spec: {new: true}", 1)
}

func upgraded(t *testing.T) *controlPlane {
	t.Helper()
	p := newControlPlane(t)
	p.write("admin.conf", "")
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		p.renders("control", component+".yaml", newer(p.read("manifests/"+component+".yaml")))
	}
	p.write("manifests/etcd.yaml", etcdManifest)
	p.renders("etcd", "etcd.yaml", strings.NewReplacer(
		"    - --initial-cluster=n0=https://10.0.0.9:2380,n1=https://10.0.0.1:2380\n    - --initial-cluster-state=existing\n",
		"    - --initial-cluster=n1=https://10.0.0.1:2380\n").Replace(etcdManifest))
	return p
}

const etcdManifest = `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://10.0.0.1:2379
spec:
  containers:
  - command:
    - etcd
    - --initial-cluster=n0=https://10.0.0.9:2380,n1=https://10.0.0.1:2380
    - --initial-cluster-state=existing
    - --name=n1
`

const eachOnce = "kubelet restarts kube-apiserver, kubelet restarts kube-apiserver, kubelet restarts kube-controller-manager, " +
	"kubelet restarts kube-controller-manager, kubelet restarts kube-scheduler, kubelet restarts kube-scheduler"

// Each component is changed that differs, one after the other, and is waited for. Etcd is as it was: which members it names is of
// the time when it joined.
func TestStaticPods(t *testing.T) {
	p := upgraded(t)
	// A mark of before is no difference, and goes with the change.
	p.write("manifests/kube-scheduler.yaml", strings.Replace(p.read("manifests/kube-scheduler.yaml"),
		"metadata:\n", "metadata:\n  annotations:\n    kubexm.io/certificates: \"0123\"\n", 1))
	does, failure := p.follow()
	if want := "lock, " + eachOnce + ", kubeadm uploads, unlock"; does != want || failure != "" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		got := p.read("manifests/" + component + ".yaml")
		if !strings.Contains(got, "new: true") || strings.Count(got, "kubexm.io/") != 1 || strings.Count(got, "annotations:") != 1 {
			t.Errorf("%s is\n%s", component, got)
		}
		info, err := os.Stat(p.path("manifests/" + component + ".yaml"))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", component, info, err)
		}
	}
	if got := p.read("manifests/etcd.yaml"); got != etcdManifest {
		t.Errorf("etcd is\n%s", got)
	}
	if does, failure := p.follow(); does != "lock, kubeadm uploads, unlock" || failure != "" {
		t.Errorf("again it does %q, and fails with %q", does, failure)
	}
}

// Etcd's own manifest may differ, too: who its members were stays in it.
func TestStaticPodsOfEtcd(t *testing.T) {
	p := upgraded(t)
	p.renders("etcd", "etcd.yaml", strings.Replace(p.read("renders/etcd+etcd.yaml"), "--name=n1", "--name=n1\n    - --new=true", 1))
	if does, failure := p.follow(); !strings.HasPrefix(does, "lock, kubelet restarts etcd") || failure != "" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	got := p.read("manifests/etcd.yaml")
	for _, want := range []string{"--new=true", "n0=https://10.0.0.9:2380,n1=", "--initial-cluster-state=existing", "kubexm.io/manifest"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("want %s once in\n%s", want, got)
		}
	}
}

// What somebody has done to a manifest is found by the copy that is kept of it, and mended, with what etcd's alone says: who its
// members were.
func TestStaticPodsThatAreSpoiled(t *testing.T) {
	for _, f := range []struct{ component, content string }{
		{"kube-apiserver", "{\n"},
		{"etcd", ""},
		{"kube-scheduler", strings.Replace(manifest, "spec: {}", "spec: {new: false}", 1)},
	} {
		t.Run(f.component, func(t *testing.T) {
			p := upgraded(t)
			if why := p.check(); !strings.Contains(why, "made of another") {
				t.Errorf("before anything is made: %q", why)
			}
			p.make()
			if why := p.check(); !strings.Contains(why, "made of another") {
				t.Errorf("made of another version: %q", why)
			}
			if _, failure := p.follow(); failure != "" {
				t.Fatal(failure)
			}
			p.followed()
			if why := p.check(); why != "" {
				t.Fatalf("it was made, and is to be made again: %s", why)
			}
			file := "manifests/" + f.component + ".yaml"
			before := p.read(file)
			if f.content == "" {
				if err := os.Remove(p.path(file)); err != nil {
					t.Fatal(err)
				}
			} else {
				p.write(file, f.content)
			}
			if why := p.check(); !strings.Contains(why, f.component+".yaml is not as kubeadm has made it") {
				t.Errorf("it says %q", why)
			}
			does, failure := p.follow()
			restart := "kubelet restarts " + f.component
			if want := "lock, " + restart + ", " + restart + ", kubeadm uploads, unlock"; does != want || failure != "" {
				t.Errorf("it does %q, and fails with %q", does, failure)
			}
			if diff := cmp.Diff(unmarked(before), unmarked(p.read(file))); diff != "" {
				t.Errorf("%s is not as before: %s", file, diff)
			}
			if why := p.check(); why != "" {
				t.Errorf("then it says %q", why)
			}
		})
	}
}

// Renewed certificates leave a mark in a manifest, which is not for this step to mind.
func TestStaticPodsWithRenewedCertificates(t *testing.T) {
	p := upgraded(t)
	if _, failure := p.follow(); failure != "" {
		t.Fatal(failure)
	}
	p.followed()
	for _, component := range []string{"kube-apiserver", "kube-scheduler"} {
		file := "manifests/" + component + ".yaml"
		p.write(file, strings.Replace(p.read(file), "    kubexm.io/", "    kubexm.io/certificates: \"0123\"\n    kubexm.io/", 1))
	}
	if why := p.check(); why != "" {
		t.Errorf("it says %q", why)
	}
}

// A run that was cut before the component was seen to run with its manifest is taken up: it is waited for, and put back.
func TestStaticPodsThatWereCut(t *testing.T) {
	p := upgraded(t)
	before := p.read("manifests/kube-scheduler.yaml")
	p.make()
	p.write("manifests/kube-scheduler.yaml", p.read("renders/control+kube-scheduler.yaml"))
	p.write("ill", "kube-scheduler")
	if _, failure := p.follow(); !strings.Contains(failure, "kube-scheduler does not become Ready") {
		t.Errorf("it fails with %q", failure)
	}
	if got := p.read("manifests/kube-scheduler.yaml"); got != before {
		t.Errorf("it is\n%s", got)
	}
}

// When one does not come up, it and those before it are what they were.
func TestStaticPodsArePutBack(t *testing.T) {
	p := upgraded(t)
	before := map[string]string{}
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		before[component] = p.read("manifests/" + component + ".yaml")
	}
	p.write("ill", "kube-controller-manager")
	const log = "logs/kube-system_kube-controller-manager-n1_0123/kube-controller-manager/0.log"
	p.write(log, "2026-11-21T21:26:58.043330301Z stderr F Error: unknown flag: --new\n")
	p.write(strings.Replace(log, "/0.log", "/1.log", 1), "") // it has just been started once more
	if _, failure := p.follow(); !strings.Contains(failure, "kube-controller-manager does not become Ready with its new manifest, so the manifests were put back; "+
		"the last that it said: Error: unknown flag: --new") {
		t.Errorf("it fails with %q", failure)
	}
	for component, want := range before {
		if got := p.read("manifests/" + component + ".yaml"); got != want {
			t.Errorf("%s is\n%s", component, got)
		}
	}
	if err := os.Remove(p.path("ill")); err != nil {
		t.Fatal(err)
	}
	if _, failure := p.follow(); failure != "" || !strings.Contains(p.read("manifests/kube-scheduler.yaml"), "new: true") {
		t.Errorf("the next time it fails with %q", failure)
	}
}

// One that ends again and again is not waited for as long as one that takes its time.
func TestStaticPodsThatCrash(t *testing.T) {
	p := upgraded(t)
	p.write("ill", "kube-scheduler")
	pod := "logs/kube-system_kube-scheduler-n1_0123/kube-scheduler/"
	p.write(pod+"3.log", "2026-11-21T21:26:58.043330301Z stderr F of the Pod before\n")
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(p.path(pod+"3.log"), before, before); err != nil {
		t.Fatal(err)
	}
	began := time.Now() // the script counts in whole seconds of the clock: of three, two may have passed
	if _, failure := p.follow("patience=3"); !strings.Contains(failure, "kube-scheduler does not become Ready") || time.Since(began) < 2*time.Second {
		t.Errorf("the Pod before counts: it fails after %s with %q", time.Since(began), failure)
	}
	after := time.Now().Add(time.Hour)
	if err := os.Chtimes(p.path(pod+"3.log"), after, after); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if _, failure := p.follow("patience=60"); !strings.Contains(failure, "kube-scheduler does not become Ready") || time.Since(began) > 30*time.Second {
		t.Errorf("it fails after %s with %q", time.Since(began), failure)
	}
}

func TestStaticPodsThatKubeadmRefuses(t *testing.T) {
	p := upgraded(t)
	p.write("refuse", "")
	does, failure := p.follow()
	if does != "lock, unlock" || !strings.Contains(failure, "kubeadm cannot make the manifests (control-plane all): unknown flag") {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
}

// KubeletConfig writes what differs and leaves alone what does not, by whose age the kubelet knows that it need not restart.
func TestKubeletConfig(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	for file, content := range map[string]string{"config.yaml": "new\n", "kubeadm-flags.env": "same\n"} {
		p.renders("kubelet", file, content)
	}
	p.write("kubelet/config.yaml", "old\n")
	p.write("kubelet/kubeadm-flags.env", "same\n")
	before, err := os.Stat(p.path("kubelet/kubeadm-flags.env"))
	if err != nil {
		t.Fatal(err)
	}
	argv := kubeadm.KubeletConfig(c, n, "/nowhere").(step.Sequence).Parts[0].(step.Command).Argv
	for i, a := range argv {
		if strings.HasPrefix(a, "kubelet=") {
			argv[i] = "kubelet=" + p.path("kubelet")
		}
		if strings.HasPrefix(a, "kept=") {
			argv[i] = "kept=" + p.path("kept")
		}
	}
	if said, ok := p.run(t.Context(), argv); !ok || said != "" {
		t.Fatal(said)
	}
	after, err := os.Stat(p.path("kubelet/kubeadm-flags.env"))
	if err != nil || !os.SameFile(before, after) || p.read("kubelet/config.yaml") != "new\n" {
		t.Errorf("the flags: %v; the configuration is %q", err, p.read("kubelet/config.yaml"))
	}
	if config := p.read("config"); !strings.Contains(config, "cgroupDriver") || !strings.Contains(config, "certificatesDir: /etc/kubernetes/none") {
		t.Errorf("kubeadm is told\n%s", config)
	}
}
