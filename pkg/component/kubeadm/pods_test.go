// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var none graph.Output[string]

// follow has the static pods follow, and is what that comes to.
func (p *controlPlane) follow() (differed []string, log, failure string) {
	p.t.Helper()
	c, n := of(90)
	return p.converge(kubeadm.StaticPods(c, n), "")
}

// differs is why the step of that name runs, "" if it does not.
func (p *controlPlane) differs(name string) string {
	p.t.Helper()
	c, n := of(90)
	for _, s := range kubeadm.StaticPods(c, n) {
		if s.Meta().Name == name {
			d, err := s.Precheck(step.View{Facts: p.observe(s.Observe())})
			if err != nil {
				p.t.Fatal(err)
			}
			if len(d) == 0 {
				return ""
			}
			return d[0].From
		}
	}
	p.t.Fatalf("there is no step %s", name)
	return ""
}

// unmarked is a manifest without our marks.
func unmarked(manifest string) string {
	return regexp.MustCompile(`(?m)^(    kubexm\.cluster\.x-k8s\.io/.*|  annotations:)\n`).ReplaceAllString(manifest, "")
}

// upgraded is a host whose kubeadm would make other manifests but etcd's.
func upgraded(t *testing.T) *controlPlane {
	t.Helper()
	p := newControlPlane(t)
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		p.renders(component+".yaml", strings.Replace(p.read("manifests/"+component+".yaml"), "spec: {}", "spec: {new: true}", 1))
	}
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

// made is what differs while a host follows.
var (
	placed    = []string{"kubeadm/etcd", "kubeadm/apiserver", "kubeadm/controller-manager", "kubeadm/scheduler"}
	followed  = slices.Concat([]string{"kubeadm/begin-change"}, placed, []string{"kubeadm/end-change", "kubeadm/upload"})
	restarted = "kubelet restarts kube-apiserver, kubelet restarts kube-controller-manager, kubelet restarts kube-scheduler"
)

// Each component is changed that differs, one after the other, and is waited for. Etcd is as it was: which members it names is of
// the time when it joined.
func TestStaticPods(t *testing.T) {
	p := upgraded(t)
	differed, does, failure := p.follow()
	if want := restarted + ", kubeadm uploads"; !slices.Equal(differed, followed) || does != want || failure != "" {
		t.Errorf("%q differ, it does %q, and fails with %q", differed, does, failure)
	}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		got := p.read("manifests/" + component + ".yaml")
		if !strings.Contains(got, "new: true") || strings.Count(got, "kubexm.cluster.x-k8s.io/") != 1 || strings.Count(got, "annotations:") != 1 {
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
	if differed, does, failure := p.follow(); differed != nil || does != "" || failure != "" {
		t.Errorf("again %q differ, it does %q, and fails with %q", differed, does, failure)
	}
}

// What kubeadm has just made is not made again.
func TestStaticPodsThatWereJustMade(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	c.Version = "v1.35.4"
	if differed, does, failure := p.converge(kubeadm.StaticPods(c, n), ""); differed != nil || does != "" || failure != "" {
		t.Errorf("%q differ, it does %q, and fails with %q", differed, does, failure)
	}
}

// What is said of one component changes no other.
func TestStaticPodsChangeAlone(t *testing.T) {
	p := newControlPlane(t)
	if _, _, failure := p.follow(); failure != "" {
		t.Fatal(failure)
	}
	p.renders("kube-scheduler.yaml", strings.Replace(p.read("manifests/kube-scheduler.yaml"), "spec: {}", "spec: {new: true}", 1))
	c, n := of(90)
	c.Spec.Kubernetes.Scheduler.ExtraArgs = []spec.Arg{{Name: "v", Value: "1"}}
	differed, does, failure := p.converge(kubeadm.StaticPods(c, n), "")
	want := []string{"kubeadm/begin-change", "kubeadm/scheduler", "kubeadm/end-change", "kubeadm/upload"}
	if !slices.Equal(differed, want) || does != "kubelet restarts kube-scheduler, kubeadm uploads" || failure != "" {
		t.Errorf("%q differ, it does %q, and fails with %q", differed, does, failure)
	}
}

// Etcd's own manifest may differ, too: who its members were stays in it.
func TestStaticPodsOfEtcd(t *testing.T) {
	p := upgraded(t)
	p.write("ssl/admin-n1.pem", "")
	p.renders("etcd.yaml", strings.Replace(p.read("renders/etcd+etcd.yaml"), "--name=n1", "--name=n1\n    - --new=true", 1))
	// While no other member is away.
	if _, does, failure := p.follow(); !strings.HasPrefix(does, "lock, kubelet restarts etcd, unlock, kubelet restarts kube-apiserver, ") || failure != "" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	got := p.read("manifests/etcd.yaml")
	for _, want := range []string{"--new=true", "n0=https://10.0.0.9:2380,n1=", "--initial-cluster-state=existing", "kubexm.cluster.x-k8s.io/manifest"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("want %s once in\n%s", want, got)
		}
	}
}

// A member that is away is brought back without the lock, which nobody could give.
func TestStaticPodsOfEtcdThatIsAway(t *testing.T) {
	p := upgraded(t)
	p.write("ssl/admin-n1.pem", "")
	p.write("away", "")
	p.write("manifests/etcd.yaml", "{\n")
	if _, does, failure := p.follow(); strings.Contains(does, "lock") || failure != "" || !strings.Contains(p.read("manifests/etcd.yaml"), "--name=n1") {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
}

// What somebody has done to a manifest is found by the copy that is kept of it, and repaired, with what etcd's alone says: who its
// members were.
func TestStaticPodsThatAreSpoiled(t *testing.T) {
	for _, f := range []struct{ component, content string }{
		{"kube-apiserver", "{\n"},
		{"etcd", ""},
		{"kube-scheduler", strings.Replace(manifest, "spec: {}", "spec: {new: false}", 1)},
	} {
		t.Run(f.component, func(t *testing.T) {
			p := upgraded(t)
			if why := p.differs("kubeadm/begin-change"); !strings.Contains(why, "etcd.made has another content") {
				t.Errorf("made of another version: %q", why)
			}
			if _, _, failure := p.follow(); failure != "" {
				t.Fatal(failure)
			}
			file, why := "manifests/"+f.component+".yaml", f.component+".yaml is not as it was made"
			before := p.read(file)
			if f.content == "" {
				if err := os.Remove(p.path(file)); err != nil {
					t.Fatal(err)
				}
				why = f.component + ".yaml is absent"
			} else {
				p.write(file, f.content)
			}
			if got := p.differs("kubeadm/begin-change"); !strings.Contains(got, why) {
				t.Errorf("it says %q", got)
			}
			differed, does, failure := p.follow()
			name := "kubeadm/" + strings.TrimPrefix(f.component, "kube-")
			if want := []string{"kubeadm/begin-change", name, "kubeadm/end-change"}; !slices.Equal(differed, want) || failure != "" {
				t.Errorf("%q differ, and it fails with %q", differed, failure)
			}
			// The kubelet has not seen what was there meanwhile.
			if diff := cmp.Diff(unmarked(before), unmarked(p.read(file))); diff != "" || strings.Contains(does, "uploads") {
				t.Errorf("it does %q, and %s is not as before: %s", does, file, diff)
			}
			if differed, _, _ := p.follow(); differed != nil {
				t.Errorf("then %q differ", differed)
			}
		})
	}
}

// Where etcd's manifest and the API server's are spoiled at once, etcd itself says that it is back: no API server can.
func TestStaticPodsThatAreSpoiledAtOnce(t *testing.T) {
	p := upgraded(t)
	if _, _, failure := p.follow(); failure != "" {
		t.Fatal(failure)
	}
	p.write("manifests/etcd.yaml", "{\n")
	p.write("manifests/kube-apiserver.yaml", "{\n")
	differed, _, failure := p.follow()
	if want := []string{"kubeadm/begin-change", "kubeadm/etcd", "kubeadm/apiserver", "kubeadm/end-change"}; !slices.Equal(differed, want) || failure != "" {
		t.Errorf("%q differ, and it fails with %q", differed, failure)
	}
}

// A run that was cut before the component was seen to run with its manifest is gone on with: it is waited for.
func TestStaticPodsThatWereCut(t *testing.T) {
	c, n := of(90)
	for _, at := range followed {
		t.Run(strings.TrimPrefix(at, "kubeadm/"), func(t *testing.T) {
			p := upgraded(t)
			before, _, failure := p.converge(kubeadm.StaticPods(c, n), at)
			if failure != "" {
				t.Fatal(failure)
			}
			after, _, failure := p.follow()
			if all := slices.Concat(before, after); !slices.Equal(all, followed) || failure != "" {
				t.Errorf("%q differed, then %q, and it fails with %q", before, after, failure)
			}
			if differed, _, _ := p.follow(); differed != nil {
				t.Errorf("then %q differ", differed)
			}
		})
	}
}

// When one does not come up, all is what it was, and nothing is under way.
func TestStaticPodsAreRolledBack(t *testing.T) {
	p := upgraded(t)
	before := p.files()
	p.write("ill", "kube-controller-manager")
	p.write("says", "2026-11-21T21:26:58.043330301Z stderr F Error: unknown flag: --new\n")
	_, _, failure := p.follow()
	if want := "kube-controller-manager is Ready with its manifest: kube-controller-manager is not; the last that it said: " +
		"Error: unknown flag: --new"; failure != want {
		t.Errorf("it fails with %q", failure)
	}
	if diff := cmp.Diff(before, p.files()); diff != "" {
		t.Errorf("it is not what it was: %s", diff)
	}
	if err := os.Remove(p.path("ill")); err != nil {
		t.Fatal(err)
	}
	if _, _, failure := p.follow(); failure != "" || !strings.Contains(p.read("manifests/kube-scheduler.yaml"), "new: true") {
		t.Errorf("the next time it fails with %q", failure)
	}
}

// One that has ended three times with its manifest is not waited for any more; those of the Pod before do not count.
func TestStaticPodsThatCrash(t *testing.T) {
	p := upgraded(t)
	p.write("ill", "kube-scheduler")
	p.write("kubexm-change/1", "")
	const log = "logs/kube-system_kube-scheduler-n1_0123/kube-scheduler/3.log"
	p.write(log, "2026-11-21T21:26:58.043330301Z stderr F it has ended\n")
	c, n := of(90)
	for _, s := range kubeadm.StaticPods(c, n) {
		if s.Meta().Name != "kubeadm/scheduler-ready" {
			continue
		}
		for after, want := range map[time.Duration]int{-time.Hour: 1, time.Hour: step.NotAnyMore} {
			at := time.Now().Add(after)
			if err := os.Chtimes(p.path(log), at, at); err != nil {
				t.Fatal(err)
			}
			// Two minutes ago the change began, and a minute ago the manifest was placed.
			for i, name := range []string{"kubexm-change", "manifests/kube-scheduler.yaml"} {
				was := time.Now().Add(time.Duration(i-2) * time.Minute)
				if err := os.Chtimes(p.path(name), was, was); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range p.observe(s.Observe()).Commands {
				if r.ExitCode != want || !strings.Contains(string(r.Stdout), "the last that it said: it has ended") {
					t.Errorf("logged %s ago, it ends with %d and says %q", -after, r.ExitCode, r.Stdout)
				}
			}
		}
		return
	}
	t.Fatal("nobody waits for the scheduler")
}

func TestStaticPodsThatKubeadmRefuses(t *testing.T) {
	p := upgraded(t)
	before := p.files()
	p.write("refuse", "")
	_, does, failure := p.follow()
	if does != "" || failure != "kubeadm cannot make the manifest of etcd: unknown flag" {
		t.Errorf("it does %q, and fails with %q", does, failure)
	}
	if diff := cmp.Diff(before, p.files()); diff != "" {
		t.Errorf("it is not what it was: %s", diff)
	}
}

// The turn among hosts is that of all who change a control plane, and is taken only where there is something to change.
func TestStaticPodsTakeTurns(t *testing.T) {
	c, n := of(90)
	for _, steps := range [][]step.Step{kubeadm.StaticPods(c, n), kubeadm.Renew(c, n, []string{"apiserver"}, time.Unix(0, 0))} {
		opens, _ := step.SavepointOf(steps[0])
		if opens == nil || opens.Turn != "control-plane" || opens.Settled.Check == nil {
			t.Errorf("they begin with %+v", steps[0])
		}
	}
}

// The kubelet's files are written that differ, and left alone that do not, by whose age the kubelet knows that it need not restart. When
// the change is rolled back they are what they were.
func TestKubeletConfig(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	for file, content := range map[string]string{"config.yaml": "new\n", "kubeadm-flags.env": "same\n"} {
		p.renders(file, content)
	}
	p.write("kubelet/config.yaml", "old\n")
	p.write("kubelet/kubeadm-flags.env", "same\n")
	p.write("kubeadm-kubelet.yaml", "another version\n")
	before, err := os.Stat(p.path("kubelet/kubeadm-flags.env"))
	if err != nil {
		t.Fatal(err)
	}
	files := p.files()
	steps := []step.Step{kubeadm.BeginKubelet(c, n, "/nowhere"), kubeadm.KubeletConfig(c, n)}
	fails := step.New(step.Meta{Name: "fails"}, step.Command{Title: "fail", Argv: []string{"/bin/sh", "-c", "echo asked to fail; exit 1"}})
	differed, _, failure := p.converge(append(slices.Clone(steps), fails), "")
	if failure != "asked to fail" || !slices.Equal(differed, []string{"kubelet/begin-change", "kubeadm/kubelet", "fails"}) {
		t.Fatalf("%q differ, and it fails with %q", differed, failure)
	}
	if diff := cmp.Diff(files, p.files()); diff != "" {
		t.Errorf("it is not what it was: %s", diff)
	}
	differed, _, failure = p.converge(steps, "")
	after, err := os.Stat(p.path("kubelet/kubeadm-flags.env"))
	if err != nil || failure != "" || len(differed) != 2 || !os.SameFile(before, after) || p.read("kubelet/config.yaml") != "new\n" {
		t.Errorf("%q differ, it fails with %q; the flags: %v; the configuration is %q", differed, failure, err, p.read("kubelet/config.yaml"))
	}
	if config := p.read("config"); !strings.Contains(config, "cgroupDriver") || !strings.Contains(config, "certificatesDir: /etc/kubernetes/none") {
		t.Errorf("kubeadm is given\n%s", config)
	}
}
