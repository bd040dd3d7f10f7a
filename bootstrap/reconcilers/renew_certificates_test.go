// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// firstAsked is when tests ask for the first time.
var firstAsked = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const (
	manifests  = "/etc/kubernetes/manifests/"
	kubeletCrt = "/var/lib/kubelet/pki/kubelet.crt"
)

// kubeadmMade are the files that "kubeadm certs renew" makes anew on the played host.
var kubeadmMade = []string{"pki/apiserver.crt", "pki/front-proxy-client.crt", "controller-manager.conf", "scheduler.conf"}

// renewable is a host that kubeadm has made, played: its components start when their manifests become others.
type renewable struct {
	*testing.T
	*fake.Machine
	target  spec.Target
	options engine.Options
	// signed makes a certificate as kubeadm does, which lasts for so long.
	signed func(time.Duration) ([]byte, metav1.Time)
	// ran are the commands by their titles and the certificates that were made by their paths, in order. at is called before and after
	// each change.
	ran []string
	at  func()
}

func newRenewable(t *testing.T, role spec.Role) *renewable {
	t.Helper()
	name := map[spec.Role]string{spec.RoleControlPlane: "cp1", spec.RoleWorker: "w1", spec.RoleEtcd: "e1", spec.RoleLoadBalancer: "lb1"}[role]
	h := &renewable{T: t, Machine: fake.New(name), target: saver(), at: func() {}}
	h.target.Host = spec.Host{Name: name, Role: role, Address: "10.1.0.9"}
	if role == spec.RoleEtcd {
		h.target.Cluster.Etcd.Hosts.Names = []string{name}
	}
	authorities, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	_, h.signed = authority(t)
	h.OnCommand = h.command
	h.OnChange = func(_ string, c host.Change) error {
		h.at()
		file, ok := c.(host.File)
		if made := ok && !strings.HasSuffix(file.Path, "-key.pem") && path.Base(file.Path) != "ca.pem" && path.Base(file.Path) != "ca.crt"; made &&
			(path.Ext(file.Path) == ".crt" || path.Ext(file.Path) == ".pem") {
			h.ran = append(h.ran, file.Path)
		}
		return nil
	}
	h.options = engine.Options{
		Dial:   func(context.Context, string) (host.Host, error) { return h.Connect(), nil },
		Holder: "test", Reader: nobody,
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			pair, _ := authorities.Get(ref.Name)
			if ref.Key == "tls.crt" {
				return pair.Cert, nil
			}
			return pair.Key.Reveal(), nil
		},
	}
	if role == spec.RoleControlPlane {
		h.kubeadm(time.Hour)
		for _, pod := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			h.Put(manifests+pod+".yaml", pod, 0o600)
		}
	}
	// It has what it must have.
	if out, _ := h.renew(t.Context(), firstAsked.Add(-time.Hour)); out.err != nil && role != spec.RoleLoadBalancer {
		t.Fatal(out.err)
	}
	return h
}

// kubeadm makes its certificates anew.
func (h *renewable) kubeadm(validity time.Duration) {
	cert, _ := h.signed(validity)
	for _, file := range kubeadmMade {
		h.Put("/etc/kubernetes/"+file, string(cert), 0o600)
	}
}

func (h *renewable) command(_ *fake.Machine, c host.Command) host.Result {
	defer h.at()
	pod, restarts := strings.CutPrefix(c.Title, "restart ")
	if slices.ContainsFunc([]string{"outdate", "renew", "restart"}, func(verb string) bool { return strings.HasPrefix(c.Title, verb+" ") }) {
		h.ran = append(h.ran, c.Title)
	}
	switch {
	case slices.Equal(c.Argv, certificate.Query().Commands[0].Argv):
		files := map[string][]byte{}
		for _, file := range []string{kubeletCrt, "/etc/kubexm/etcd/ssl/member-e1.pem", "/etc/kubernetes/pki/apiserver.crt"} {
			if content := h.content(file); content != "" {
				files[file] = []byte(content)
			}
		}
		return answer(files)
	case c.Argv[0] == "touch":
		for _, cert := range c.Argv[4:] {
			// A certificate that is older than its key is one whose key is newer.
			key := strings.NewReplacer(".crt", ".key", ".pem", "-key.pem").Replace(cert)
			if content := h.content(key); content != "" {
				h.Put(key, content, 0o600)
			}
		}
	case c.Title == "renew kubeadm's certificates":
		h.kubeadm(8760 * time.Hour)
	case restarts:
		h.Put(manifests+pod+".yaml", pod, 0o600)
	}
	return host.Result{}
}

func (h *renewable) content(file string) string {
	h.Helper()
	c := h.Connect()
	defer func() { _ = c.Close() }()
	f, err := c.Observe(context.Background(), host.Query{Paths: []host.PathQuery{{Path: file, Content: true}}})
	if err != nil {
		h.Fatal(err)
	}
	return string(f.Paths[file].Content)
}

// renew asks for names at a time, and returns what came of it and what was done on the host.
func (h *renewable) renew(ctx context.Context, asked time.Time, names ...spec.CertificateName) (outcome, string) {
	h.Helper()
	h.ran = nil
	ask := renewal{names: names, asked: asked}
	out := ask.do(ctx, h.options, h.target)
	return out, strings.Join(h.ran, ", ")
}

// TestRenewCertificates renews what a host has of what is asked for, once for each time at which that is, restarts those who must be for
// it, and says why where it cannot.
func TestRenewCertificates(t *testing.T) {
	const made = "outdate certificates, " + kubeletCrt
	for name, tc := range map[string]struct {
		role       spec.Role
		names      []spec.CertificateName
		ran        string
		says       string
		failed     string
		ends       string // the file whose end is shown
		planFailed bool
	}{
		"a worker's": {role: spec.RoleWorker, ran: made, says: "kubelet renewed", ends: kubeletCrt},
		"what a worker has of them": {
			role: spec.RoleWorker, names: []spec.CertificateName{"apiserver", "kubelet"}, ran: made, says: "kubelet renewed", ends: kubeletCrt,
		},
		"of kubeadm, with one component": {
			role: spec.RoleControlPlane, names: []spec.CertificateName{"apiserver"},
			ran:  "renew kubeadm's certificates, restart kube-apiserver",
			says: "apiserver renewed", ends: "/etc/kubernetes/pki/apiserver.crt",
		},
		"of etcd, on its own host": {
			role: spec.RoleEtcd, names: []spec.CertificateName{"etcd-member"},
			ran:  "outdate certificates, /etc/kubexm/etcd/ssl/member-e1.pem",
			says: "etcd-member renewed", ends: "/etc/kubexm/etcd/ssl/member-e1.pem",
		},
		"one that is not there": {
			role: spec.RoleControlPlane, names: []spec.CertificateName{"super-admin.conf"}, ran: "renew kubeadm's certificates", says: "the host has none of them: nothing was renewed",
		},
		"of others": {role: spec.RoleWorker, names: []spec.CertificateName{"apiserver"}, planFailed: true,
			failed: "w1 has none of these certificates to renew: apiserver; it has kubelet"},
		"of nobody": {role: spec.RoleWorker, names: []spec.CertificateName{"kubelet-client"}, planFailed: true,
			failed: "cluster prod has no certificate kubelet-client that can be renewed on its hosts; it has admin.conf, apiserver, "},
		"a load balancer's": {role: spec.RoleLoadBalancer, planFailed: true,
			failed: "lb1 has none of these certificates to renew: all; it has none that can be renewed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newRenewable(t, tc.role)
			for i, ask := range []struct {
				at  time.Time
				ran string
			}{{firstAsked, tc.ran}, {firstAsked, ""}, {firstAsked.Add(time.Minute), tc.ran}} {
				out, ran := h.renew(t.Context(), ask.at, tc.names...)
				if ran != ask.ran || !out.asked.Equal(ask.at) || out.planFailed != tc.planFailed {
					t.Errorf("request %d: it does %q, want %q: %v", i, ran, ask.ran, out.err)
				}
				if tc.failed != "" && (out.err == nil || !strings.Contains(out.err.Error(), tc.failed)) || tc.failed == "" && out.err != nil {
					t.Errorf("request %d: it says %v, want %q", i, out.err, tc.failed)
				}
				if out.note != tc.says {
					t.Errorf("request %d: it says %q, want %q", i, out.note, tc.says)
				}
				h.shows(out, tc.ends)
			}
		})
	}
}

// shows wants a file's end to be shown as that of a component's certificate that was just made for a year.
func (h *renewable) shows(out outcome, file string) {
	h.Helper()
	c := &bootstrapv1.KubexmConfig{}
	showCertificates(h.Context(), c, &out)
	if file == "" {
		return
	}
	at := slices.IndexFunc(c.Status.Certificates, func(s bootstrapv1.CertificateStatus) bool { return s.Path == file })
	if at < 0 || c.Status.Certificates[at].Type != bootstrapv1.ComponentCertificate ||
		!c.Status.Certificates[at].NotAfter.Time.Equal(endOf(h.T, []byte(h.content(file))).Time) {
		h.Errorf("%s is shown as %+v", file, c.Status.Certificates)
	}
}

// TestRenewalIsCut: whenever the manager ends, the next one goes on, and does nothing twice for one request.
func TestRenewalIsCut(t *testing.T) {
	for _, role := range []spec.Role{spec.RoleWorker, spec.RoleControlPlane} {
		_, once := newRenewable(t, role).renew(t.Context(), firstAsked)
		if !strings.Contains(once, kubeletCrt) {
			t.Fatalf("%s does %q", role, once)
		}
		cuts := 0
		for was := true; was; cuts++ {
			h := newRenewable(t, role)
			ctx, end := context.WithCancelCause(t.Context())
			left := cuts
			h.at = func() {
				if left--; left < 0 {
					end(errors.New("the manager ends"))
				}
			}
			out, first := h.renew(ctx, firstAsked)
			if out.err != nil && !interrupted(out.err) {
				t.Fatalf("%s, cut at %d: %v", role, cuts, out.err)
			}
			was, h.at = left < 0, func() {}
			out, rest := h.renew(t.Context(), firstAsked)
			if got := strings.Trim(first+", "+rest, ", "); out.err != nil || got != once {
				t.Errorf("%s, cut at %d: it does %q and then %q, want %q: %v", role, cuts, first, rest, once, out.err)
			}
			end(nil)
		}
		if least := 2 * len(strings.Split(once, ", ")); cuts < least {
			t.Errorf("%s was cut %d times, want at least %d", role, cuts, least)
		}
	}
}

// TestRenewalNamesWhatWasFound: a host of which nothing is remembered is observed first, and its certificate has the address that was
// found there.
func TestRenewalNamesWhatWasFound(t *testing.T) {
	for _, remembered := range []bool{false, true} {
		h := newRenewable(t, spec.RoleWorker)
		h.target.Cluster.Network.PodCIDRs = []string{"10.244.0.0/16", "fd00:10::/56"}
		h.target.Cluster.Network.ServiceCIDRs = []string{"10.96.0.0/16", "fd00:20::/112"}
		h.System.DefaultIPv6 = "fd00:1::9"
		ask := renewal{asked: time.Now()}
		if remembered {
			ask.system = &h.System
		}
		if out := ask.do(t.Context(), h.options, h.target); out.err != nil {
			t.Fatal(out.err)
		}
		cert, err := pki.KeyPair{Cert: []byte(h.content(kubeletCrt))}.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(cert.IPAddresses); got != "[10.1.0.9 fd00:1::9]" {
			t.Errorf("remembered %v: the certificate is for %s", remembered, got)
		}
	}
}

// TestRenewalIsDue: once for each request, of a host that was what it must be once; what is no request is said, or fails.
func TestRenewalIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		value     string
		converged int64
		done      string
		due       bool
		says, err string
	}{
		"nobody asks":         {converged: 1},
		"asked for all":       {value: "2026-11-23T12:00:00Z", converged: 1, due: true},
		"asked for some":      {value: "2026-11-23T12:00:00Z kubelet,apiserver", converged: 1, due: true},
		"by an object":        {value: "2026-11-23T12:00:00Z all KubexmOperation/x", converged: 1, due: true},
		"done":                {value: "2026-11-23T12:00:00Z kubelet", converged: 1, done: "2026-11-23T12:00:00Z"},
		"another time":        {value: "2026-11-23T12:00:01Z kubelet", converged: 1, done: "2026-11-23T12:00:00Z", due: true},
		"another time zone":   {value: "2026-11-23T13:00:00+01:00 kubelet", converged: 1, done: "2026-11-23T12:00:00Z"},
		"a host that is new":  {value: "2026-11-23T12:00:00Z"},
		"no time":             {value: "kubelet", converged: 1, says: "want a time, and certificates if not all"},
		"no such certificate": {value: "2026-11-23T12:00:00Z ca", converged: 1, due: true, err: `there is no certificate "ca": there are admin,`},
		"an object, and none": {value: "2026-11-23T12:00:00Z KubexmOperation/x", converged: 1, due: true, err: "there is no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			said := events.NewFakeRecorder(9)
			r, s := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: said}, testScope()
			s.planned = &job{}
			s.config.Status.ConvergedGeneration = tc.converged
			if tc.value != "" {
				s.config.Annotations = map[string]string{bootstrapv1.RenewCertificatesAnnotation: tc.value}
			}
			if tc.done != "" {
				at, err := time.Parse(time.RFC3339, tc.done)
				if err != nil {
					t.Fatal(err)
				}
				s.config.Status.OperationFor(bootstrapv1.RenewCertificatesOperation).RequestTime.Time = at
			}
			due, err := r.renewalIsDue(t.Context(), s)
			if err != nil || (due != nil) != tc.due {
				t.Fatalf("due %v, %v", due != nil, err)
			}
			if tc.says != "" && !strings.Contains(<-said.Events, tc.says) {
				t.Error("there is no event")
			}
			if tc.err != "" {
				if out := due.Do(t.Context(), nobody); out.err == nil || !strings.Contains(out.err.Error(), tc.err) || out.asked.IsZero() {
					t.Errorf("it says %v", out.err)
				}
			}
		})
	}
}

// TestRenewalResult keeps what was renewed and when it ends, or why it was not, and what was interrupted is not done. The host is observed
// soon, by which what a run cut short has left is found.
func TestRenewalResult(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ca, _ := authority(t)
	seen := engine.Report{Hosts: []engine.HostReport{{Host: "w1", Facts: &host.Facts{Commands: map[string]host.Result{
		asked: answer(map[string][]byte{"/etc/kubernetes/pki/ca.crt": ca.Cert}),
	}}}}}
	for name, tc := range map[string]struct {
		out   outcome
		want  bootstrapv1.RunOutcome
		says  string
		event string
	}{
		"renewed": {outcome{asked: at, note: "apiserver,kubelet renewed", report: seen}, bootstrapv1.RunSucceeded,
			"apiserver,kubelet renewed, and well after 1.5s", "Normal CertificatesRenewed"},
		"failed": {outcome{asked: at, err: errors.New("it does not start"), report: seen}, bootstrapv1.RunFailed,
			"it does not start", "Warning CertificateRenewalFailed"},
		"interrupted": {outcome{asked: at, err: &engine.Error{Cause: errors.New("the manager ends")}, report: seen}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := events.NewFakeRecorder(9)
			r, s := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: said}, testScope()
			r.store(s.config.UID, hostCache{converged: true, ended: at})
			s.job = &hostrun.State[outcome]{
				What: string(bootstrapv1.RenewCertificatesOperation), Started: at, Ended: at.Add(1500 * time.Millisecond), Result: tc.out,
			}
			if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil {
				t.Fatalf("goes on %v, %v", goOn, err)
			}
			last := s.config.Status.Operation(bootstrapv1.RenewCertificatesOperation)
			if last.Outcome != tc.want || last.Message != tc.says {
				t.Errorf("it is noted as %s: %q", last.Outcome, last.Message)
			}
			if len(s.config.Status.Certificates) != 1 {
				t.Errorf("its certificates are %v", s.config.Status.Certificates)
			}
			if soon := r.cached(s.config.UID).ended.IsZero(); soon != (tc.want != "") {
				t.Errorf("it is observed soon: %v", soon)
			}
			var told []string
			for len(said.Events) > 0 {
				told = append(told, <-said.Events)
			}
			if (tc.event != "") != slices.ContainsFunc(told, func(e string) bool { return strings.HasPrefix(e, tc.event) }) {
				t.Errorf("the events are %q", told)
			}
		})
	}
}
