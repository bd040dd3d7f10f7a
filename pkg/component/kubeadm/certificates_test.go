// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// When certificates are renewed, and who is restarted for it, on a host whose manifests are as they are to be.
func TestCertificates(t *testing.T) {
	const ends = "apiserver ends 2027-05-06T00:00:00Z"
	for _, tt := range []struct {
		name               string
		days               int32
		change             func(*controlPlane)
		why, does, failure string
	}{
		{"all last: 166 days", 90, nil, "", "", ""},
		{"half of what they are made for is the most", 300, func(p *controlPlane) {
			p.write("ends", "ca 315359995\napiserver ca 15768001 2027-05-22T00:00:00Z\n")
		}, "", "", ""},
		{"one ends soon", 170, nil, ends, "kubeadm renew all, " + restarted, ""},
		{"one has ended", 90, func(p *controlPlane) {
			p.write("ends", "ca 315359995\napiserver ca -5 2026-11-20T00:00:00Z\n")
		}, "apiserver ends 2026-11-20T00:00:00Z", "kubeadm renew all, " + restarted, ""},
		{"it ends with its authority", 170, func(p *controlPlane) {
			p.write("ends", "ca 14342400\napiserver ca 14342400 2027-05-06T00:00:00Z\n")
		}, "", "", ""},
		{"somebody has renewed and not restarted", 90, func(p *controlPlane) {
			p.write("scheduler.conf", "second\n")
		}, "scheduler.conf is newer than", "kubelet restarts kube-scheduler", ""},
		{"kubeadm refuses", 170, func(p *controlPlane) { p.write("refuse", "") }, ends, "kubeadm renew all",
			"kubeadm cannot renew the certificates (all): no key of the authority"},
		{"a component does not come back", 170, func(p *controlPlane) { p.write("ill", "kube-apiserver") }, ends,
			"kubeadm renew all, kubelet restarts kube-apiserver", "kube-apiserver is Ready with its manifest: kube-apiserver is not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newControlPlane(t)
			if _, _, failure := p.follow(); failure != "" {
				t.Fatal(failure)
			}
			if tt.change != nil {
				tt.change(p)
			}
			before := p.files()
			c, n := of(tt.days)
			steps := kubeadm.StaticPods(c, n)
			d, err := steps[0].Precheck(step.View{Facts: p.observe(steps[0].Observe())})
			if err != nil || (len(d) > 0) != (tt.why != "") || len(d) > 0 && !strings.Contains(d[0].From, tt.why) {
				t.Errorf("it begins because %v, %v", d, err)
			}
			_, does, failure := p.converge(steps, "")
			if does != tt.does || !strings.Contains(failure, tt.failure) || (failure == "") != (tt.failure == "") {
				t.Errorf("it does %q, and fails with %q", does, failure)
			}
			if diff := cmp.Diff(before, p.files()); failure != "" && diff != "" {
				t.Errorf("it failed, and is not what it was: %s", diff)
			}
			if differed, _, _ := p.converge(steps, ""); failure == "" && differed != nil {
				t.Errorf("again %q differ", differed)
			}
		})
	}
}

// For other names the API server gets another certificate, reads it, and nobody else is restarted. When it does not come up, it has what it
// had.
func TestServingCertificate(t *testing.T) {
	p := newControlPlane(t)
	if _, _, failure := p.follow(); failure != "" {
		t.Fatal(failure)
	}
	before := p.files()
	p.write("pki/ca.crt", "")
	p.write("pki/ca.key", "")
	c, n := of(90)
	c.Spec.Kubernetes.APIServer.CertSANs = []string{"api.example"}
	steps := kubeadm.StaticPods(c, n)
	p.write("ill", "kube-apiserver")
	if _, _, failure := p.converge(steps, ""); !strings.Contains(failure, "kube-apiserver is not") {
		t.Errorf("it fails with %q", failure)
	}
	for name, content := range before {
		if got := p.read(name); got != content {
			t.Errorf("%s is %q", name, got)
		}
	}
	_ = os.Remove(p.path("ill"))
	differed, does, failure := p.converge(steps, "")
	want := []string{"kubeadm/begin-change", "kubeadm/serving-certificate", "kubeadm/apiserver", "kubeadm/end-change", "kubeadm/upload"}
	if !slices.Equal(differed, want) || does != "kubeadm makes apiserver, kubelet restarts kube-apiserver, kubeadm uploads" || failure != "" {
		t.Errorf("%q differ, it does %q, and fails with %q", differed, does, failure)
	}
	config := p.read("config")
	if got := p.read("pki/apiserver.crt"); got != "apiserver for other names\n" || !strings.Contains(config, "api.example") {
		t.Errorf("the certificate is %q, made of\n%s", got, config)
	}
	if differed, _, _ := p.converge(steps, ""); differed != nil {
		t.Errorf("again %q differ", differed)
	}
}

// Where the clock was set back after certificates were made, a manifest that was written after them looks older. It does not stay so.
func TestCertificatesOfTheFuture(t *testing.T) {
	p := newControlPlane(t)
	at := time.Now().Add(time.Hour)
	if err := os.Chtimes(p.path("scheduler.conf"), at, at); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kubelet restarts kube-scheduler, kubeadm uploads", ""} {
		if _, does, failure := p.follow(); does != want || failure != "" {
			t.Errorf("it does %q, and fails with %q", does, failure)
		}
	}
}

// A manifest that somebody has written, and that is not as kubeadm writes it, cannot be marked for a restart: that is left to them.
func TestCertificatesWithManifestsOfOthers(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	p.write("manifests/kube-apiserver.yaml", "{kind: Pod}\n")
	before := p.files()
	_, _, failure := p.converge(kubeadm.Renew(c, n, []string{"apiserver"}, time.Unix(0, 0)), "")
	if !strings.Contains(failure, "is not as kubeadm writes it: restart kube-apiserver yourself") {
		t.Errorf("it fails with %q", failure)
	}
	if diff := cmp.Diff(before, p.files()); diff != "" {
		t.Errorf("it is not what it was: %s", diff)
	}
}

// Cut at any time, an act goes on where it was, and leaves no component without a manifest.
func TestActsAreCut(t *testing.T) {
	p := upgraded(t)
	c, n := of(170)
	for after := 5 * time.Millisecond; after < time.Second; after *= 2 {
		done := true
		for _, s := range kubeadm.StaticPods(c, n) {
			for _, part := range s.(step.Sequence).Parts {
				command, ok := part.(step.Command)
				if !ok {
					continue
				}
				ctx, cancel := context.WithTimeout(t.Context(), after)
				_, ok = p.run(ctx, command.Argv)
				cancel()
				done = done && ok
			}
		}
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			if !strings.HasPrefix(p.read("manifests/"+component+".yaml"), "apiVersion: v1\nkind: Pod\n") {
				t.Fatalf("after %s %s has no manifest", after, component)
			}
		}
		if done {
			break
		}
	}
	if _, _, failure := p.converge(kubeadm.StaticPods(c, n), ""); failure != "" {
		t.Error(failure)
	}
}

// What is asked for is renewed though it lasts, and only who reads it is restarted; once for each time at which it is asked for. Settings
// do not come along.
func TestRenew(t *testing.T) {
	p := upgraded(t)
	c, n := of(90)
	steps := func(day int) []step.Step {
		return kubeadm.Renew(c, n, []string{"apiserver", "etcd-peer"}, time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC))
	}
	const want = "kubeadm renew apiserver, kubeadm renew etcd-peer, kubelet restarts kube-apiserver"
	for _, day := range []int{1, 2} {
		differed, got, failure := p.converge(steps(day), "")
		names := []string{"kubeadm/begin-change", "kubeadm/certificates", "kubeadm/apiserver", "kubeadm/end-change"}
		if !slices.Equal(differed, names) || got != want || failure != "" {
			t.Errorf("%q differ, it does %q, and fails with %q", differed, got, failure)
		}
		if differed, got, failure := p.converge(steps(day), ""); differed != nil || got != "" || failure != "" {
			t.Errorf("again %q differ, it does %q, and fails with %q", differed, got, failure)
		}
	}
	if got := p.read("manifests/kube-apiserver.yaml"); strings.Contains(got, "new: true") || strings.Count(got, "kubexm.cluster.x-k8s.io/manifest") != 1 {
		t.Errorf("the manifest is\n%s", got)
	}
	config := p.read("config")
	if !strings.Contains(config, "certificateValidityPeriod: 8760h0m0s") || !strings.Contains(config, "local:") {
		t.Errorf("kubeadm is given\n%s", config)
	}
	// What nobody reads at its start takes no turn.
	if quiet := kubeadm.Renew(c, n, []string{"etcd-peer"}, time.Unix(0, 0)); len(quiet) != 1 {
		t.Errorf("%d steps renew what nobody is restarted for", len(quiet))
	}
}
