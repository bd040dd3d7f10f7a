// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package binary_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// A flag restarts its component and no other, and the run ends when the API server is ready again.
func (r *rig) testFlags(t *testing.T) {
	const odd = `/var/log/kube "100%" $HOME\n;audit.log`
	r.target.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "audit-log-path", Value: odd}}
	if got := r.run(t); !slices.Equal(got, []string{"kubernetes/begin-change", "kubernetes/apiserver"}) {
		t.Errorf("%q differ", got)
	}
	if got := r.sh(t, "kubectl get --raw /readyz"); got != "ok" {
		t.Errorf("/readyz says %q", got)
	}
	line := r.sh(t, "tr '\\0' '\\n' <\"/proc/$(pidof kube-apiserver)/cmdline\"")
	if !slices.Contains(strings.Split(line, "\n"), "--audit-log-path="+odd) {
		t.Errorf("kube-apiserver was started with\n%s", line)
	}
	// While it was away, others may have lost their leases, and have ended to be started again.
	r.until(t, "! systemctl show -p ActiveState --value kube-controller-manager kube-scheduler | grep -q activating")
	if again := r.run(t); len(again) > 0 {
		t.Errorf("a second run changed %q", again)
	}
}

// While it is another host's turn, nothing is restarted here.
func (r *rig) testTurns(t *testing.T) {
	r.sh(t, "kubectl create -f - <<'END'\n"+turn+"\nEND")
	before := r.starts(t)
	r.target.Cluster.Kubernetes.Scheduler.ExtraArgs = []spec.Arg{{Name: "kube-api-qps", Value: "60"}}
	ended, waits := make(chan []string, 1), make(chan struct{})
	r.reader = event.ReaderFunc(func(e event.Event) {
		if e.Type == event.Waiting && strings.Contains(e.Message, "its turn (control-plane): another has it") {
			close(waits)
		}
	})
	go func() { ended <- r.run(t) }()
	select {
	case <-waits:
	case got := <-ended:
		t.Fatalf("it did not wait, and changed %q", got)
	}
	if now := r.starts(t); now != before {
		t.Errorf("components were started at\n%s\nand now\n%s", before, now)
	}
	r.sh(t, "kubectl delete lease -n kube-system kubexm-control-plane")
	got := <-ended
	r.reader = nil
	if !slices.Equal(got, []string{"kubernetes/begin-change", "kubernetes/scheduler"}) {
		t.Errorf("%q differ", got)
	}
	r.sh(t, "! kubectl get lease -n kube-system kubexm-control-plane 2>/dev/null")
	r.sh(t, "grep -q kube-api-qps=60 /proc/$(pidof kube-scheduler)/cmdline")
}

// What a component does not understand is taken back, from those too that were changed before it.
func (r *rig) testPutBack(t *testing.T) {
	const units = "cd /etc/systemd/system; sha256sum kube-apiserver.service kube-controller-manager.service kube-scheduler.service"
	before := r.sh(t, units)
	k := &r.target.Cluster.Kubernetes
	good := *k.DeepCopy()
	for component, set := range map[string]func(bad []spec.Arg){
		"kube-apiserver": func(bad []spec.Arg) { k.APIServer.ExtraArgs = bad },
		"kube-scheduler": func(bad []spec.Arg) {
			k.APIServer.ExtraArgs = []spec.Arg{{Name: "v", Value: "1"}}
			k.Scheduler.ExtraArgs = bad
		},
	} {
		set([]spec.Arg{{Name: "no-such-flag", Value: "1"}})
		_, err := r.engine().Run(t.Context(), r.plan(t))
		if want := "was rolled back to what it was before the change of its control plane"; err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), component) || !strings.Contains(err.Error(), "no-such-flag") {
			t.Errorf("it ended with %v, want %q and what it said", err, want)
		}
		if now := r.sh(t, units); now != before {
			t.Errorf("the units are\n%s\nand were\n%s", now, before)
		}
		r.sh(t, "kubectl get --raw /readyz; systemctl is-active kube-apiserver kube-controller-manager kube-scheduler; ! ls /etc/kubernetes/kubexm-change 2>/dev/null; ! kubectl get lease -n kube-system kubexm-control-plane 2>/dev/null")
		*k = *good.DeepCopy()
		if again := r.run(t); len(again) > 0 {
			t.Errorf("a run as before changed %q", again)
		}
	}
}

// What the kubelet does not understand is taken back, and the kubelet runs with what it had.
func (r *rig) testKubeletPutBack(t *testing.T) {
	const files = "sha256sum /etc/systemd/system/kubelet.service /var/lib/kubelet/config.yaml"
	before := r.sh(t, files)
	args := &r.target.Cluster.Kubernetes.Kubelet.ExtraArgs
	*args = []spec.Arg{{Name: "max-podz", Value: "1"}}
	_, err := r.engine().Run(t.Context(), r.plan(t))
	if err == nil || !strings.Contains(err.Error(), "was rolled back to what it was before the change of its kubelet") || !strings.Contains(err.Error(), "max-podz") {
		t.Errorf("it ended with %v, want that it was rolled back, and what the kubelet said", err)
	}
	if now := r.sh(t, files); now != before {
		t.Errorf("the files are\n%s\nand were\n%s", now, before)
	}
	r.sh(t, "curl -fsS http://127.0.0.1:10248/healthz; ! ls /etc/kubernetes/kubexm-kubelet 2>/dev/null")
	// What it does understand it gets.
	*args = []spec.Arg{{Name: "v", Value: "1"}}
	if got := r.run(t); !slices.Equal(got, []string{"kubelet/begin-change", "kubernetes/kubelet"}) {
		t.Errorf("%q differ", got)
	}
	r.sh(t, "tr '\\0' '\\n' <\"/proc/$(pidof kubelet)/cmdline\" | grep -qx -e --v=1")
	*args = nil
	r.run(t)
	// One that hangs is not as it must be.
	r.sh(t, "systemctl kill -s STOP kubelet")
	check, err := r.engine().Check(t.Context(), r.plan(t))
	if err != nil || len(check.Checks) != 1 || !strings.HasSuffix(check.Checks[0].Node, "kubelet/healthy") {
		t.Errorf("of a kubelet that does not answer, %+v differs (%v)", check, err)
	}
	r.sh(t, "systemctl kill -s CONT kubelet")
	r.until(t, "curl -fsS http://127.0.0.1:10248/healthz >/dev/null")
}
