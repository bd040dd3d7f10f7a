// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// asked is the host's answer to certificate.Query.
var asked = certificate.Query().Commands[0].ID

// answer is what a host says that has these files.
func answer(files map[string][]byte) host.Result {
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "# %s\n%s", path, files[path])
	}
	return host.Result{Stdout: []byte(text.String())}
}

// authority is one, and signed a certificate of it for so long, with its end.
func authority(t *testing.T) (ca pki.KeyPair, signed func(time.Duration) ([]byte, metav1.Time)) {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return ca, func(validity time.Duration) ([]byte, metav1.Time) {
		leaf, err := ca.Sign(pki.LeafRequest{CommonName: "x", Usages: []pki.Usage{pki.Client}, Validity: validity})
		if err != nil {
			t.Fatal(err)
		}
		return leaf.Cert, endOf(t, leaf.Cert)
	}
}

func endOf(t *testing.T, cert []byte) metav1.Time {
	t.Helper()
	is, err := pki.KeyPair{Cert: cert}.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return metav1.NewTime(is.NotAfter.UTC())
}

// TestTypesOfCertificates: each file on each kind of host is whose it is.
func TestTypesOfCertificates(t *testing.T) {
	ca, signed := authority(t)
	leaf, _ := signed(time.Hour)
	const (
		component     = bootstrapv1.ComponentCertificate
		kubelet       = bootstrapv1.KubeletCertificate
		administrator = bootstrapv1.AdministratorCertificate
		signs         = bootstrapv1.AuthorityCertificate
		other         = bootstrapv1.OtherCertificate
	)
	kubexm := func(t *spec.Target) {
		t.Cluster.Kubernetes.Type, t.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
	}
	for name, test := range map[string]struct {
		role   spec.Role
		change func(*spec.Target)
		want   map[string]bootstrapv1.CertificateType
	}{
		"a control plane by kubeadm": {spec.RoleControlPlane, func(*spec.Target) {}, map[string]bootstrapv1.CertificateType{
			"/etc/kubernetes/pki/apiserver-etcd-client.crt": component,
			"/etc/kubernetes/pki/apiserver.crt":             component,
			"/etc/kubexm/etcd/ssl/admin-h1.pem":             component,
			"/etc/kubexm/etcd/ssl/member-h1.pem":            component,
		}},
		"a control plane and etcd by kubeadm": {spec.RoleControlPlane, func(t *spec.Target) {
			t.Cluster.Etcd.Type = spec.EtcdKubeadm
		}, map[string]bootstrapv1.CertificateType{
			"/etc/kubernetes/admin.conf":                       administrator,
			"/etc/kubernetes/controller-manager.conf":          component,
			"/etc/kubernetes/kubelet.conf":                     kubelet,
			"/etc/kubernetes/pki/apiserver-etcd-client.crt":    component,
			"/etc/kubernetes/pki/apiserver-kubelet-client.crt": component,
			"/etc/kubernetes/pki/apiserver.crt":                component,
			"/etc/kubernetes/pki/ca.crt":                       signs,
			"/etc/kubernetes/pki/etcd/ca.crt":                  signs,
			"/etc/kubernetes/pki/etcd/healthcheck-client.crt":  component,
			"/etc/kubernetes/pki/etcd/peer.crt":                component,
			"/etc/kubernetes/pki/etcd/server.crt":              component,
			"/etc/kubernetes/pki/front-proxy-ca.crt":           signs,
			"/etc/kubernetes/pki/front-proxy-client.crt":       component,
			"/etc/kubernetes/pki/webhook.crt":                  other,
			"/etc/kubernetes/scheduler.conf":                   component,
			"/etc/kubernetes/super-admin.conf":                 administrator,
			"/var/lib/kubelet/pki/kubelet-client-current.pem":  kubelet,
			"/var/lib/kubelet/pki/kubelet.crt":                 component,
		}},
		"a worker by kubeadm": {spec.RoleWorker, func(*spec.Target) {}, map[string]bootstrapv1.CertificateType{
			"/etc/kubernetes/pki/ca.crt":                      signs,
			"/var/lib/kubelet/pki/kubelet-client-current.pem": kubelet,
			"/var/lib/kubelet/pki/kubelet.crt":                component,
		}},
		"a control plane by kubexm": {spec.RoleControlPlane, kubexm, map[string]bootstrapv1.CertificateType{
			"/etc/kubernetes/pki/admin.crt":                 administrator,
			"/etc/kubernetes/pki/apiserver-etcd-client.crt": component,
			"/etc/kubernetes/pki/apiserver.crt":             component,
			"/etc/kubernetes/pki/ca.crt":                    signs,
			"/etc/kubernetes/pki/kube-proxy.crt":            component,
			"/etc/kubexm/etcd/ssl/admin-h1.pem":             component,
			"/etc/kubexm/etcd/ssl/ca.pem":                   signs,
			"/etc/kubexm/etcd/ssl/member-before.pem":        other,
			"/etc/kubexm/etcd/ssl/member-h1.pem":            component,
			"/var/lib/kubelet/pki/kubelet-client.crt":       component,
			"/var/lib/kubelet/pki/kubelet.crt":              component,
		}},
		"an external etcd's": {spec.RoleControlPlane, func(t *spec.Target) {
			t.Cluster.Etcd = spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{Endpoints: []string{"https://10.1.0.9:2379"}}}
		}, map[string]bootstrapv1.CertificateType{
			"/etc/kubernetes/pki/apiserver-etcd-client.crt": other,
			"/etc/kubernetes/pki/apiserver.crt":             component,
		}},
		"a load balancer": {spec.RoleLoadBalancer, func(*spec.Target) {}, map[string]bootstrapv1.CertificateType{}},
	} {
		t.Run(name, func(t *testing.T) {
			target := spec.Target{
				ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: "h1", Role: test.role, Address: "10.1.0.2"},
			}
			test.change(&target)
			renewals, err := pipeline.Renewals([]spec.Target{target}, nil)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			for path, kind := range test.want {
				files[path] = leaf
				if kind == signs {
					files[path] = ca.Cert
				}
			}
			found, err := certificate.In(&host.Facts{Commands: map[string]host.Result{asked: answer(files)}})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bootstrapv1.CertificateType{}
			for _, c := range certificatesOf(found, renewals) {
				got[c.Path] = c.Type
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCertificatesOf: the list is the same in whichever order files were seen, is one that the API takes, and hides nothing that is
// amiss.
func TestCertificatesOf(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	var found []certificate.File
	for i := range 100 {
		found = append(found, certificate.File{Path: fmt.Sprintf("/etc/kubernetes/pki/%02d.crt", i), NotAfter: now.AddDate(0, 0, 100-i)})
	}
	found = append(found,
		certificate.File{Path: "/etc/kubernetes/pki/\xff.crt", NotAfter: now}, certificate.File{Path: "/etc/kubernetes/pki/\xfe.crt", NotAfter: now.AddDate(0, 0, 1)},
		certificate.File{Path: "/etc/kubernetes/pki/broken.crt", Message: strings.Repeat("ä", 2000)})
	want := certificatesOf(found, nil)
	slices.Reverse(found)
	if diff := cmp.Diff(want, certificatesOf(found, nil)); diff != "" {
		t.Errorf("in another order:\n%s", diff)
	}
	paths := map[string]bootstrapv1.CertificateStatus{}
	for _, c := range want {
		paths[c.Path] = c
	}
	if len(want) > 64 || len(paths) != len(want) {
		t.Errorf("%d certificates of %d files: the API takes 64, each file once", len(want), len(paths))
	}
	if !slices.IsSortedFunc(want, func(a, b bootstrapv1.CertificateStatus) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("not sorted: %v", want)
	}
	if _, last := paths["/etc/kubernetes/pki/00.crt"]; last || paths["/etc/kubernetes/pki/99.crt"].Path == "" {
		t.Error("those that end first are not those that are left")
	}
	if broken := paths["/etc/kubernetes/pki/broken.crt"]; !broken.NotAfter.IsZero() || len(broken.Message) < 100 || len(broken.Message) > 1024 {
		t.Errorf("of what cannot be read: %+v", broken)
	}
	if odd := paths["/etc/kubernetes/pki/�.crt"]; !odd.NotAfter.Time.Equal(now) {
		t.Errorf("of two names that read the same: %+v, want the first to end", odd)
	}
}

// TestCertificatesAreSeen: a run shows the certificates as it leaves them, a look shows them without an exchange of its own, and what
// could not be seen stays as it was.
func TestCertificatesAreSeen(t *testing.T) {
	ca, signed := authority(t)
	old, _ := signed(time.Hour)
	renewed, end := signed(30 * 24 * time.Hour)
	files := map[string][]byte{"/etc/kubernetes/pki/ca.crt": ca.Cert, "/etc/kubernetes/pki/apiserver.crt": old}
	m := fake.New("w1")
	failing := false
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		if failing {
			return host.Result{ExitCode: 124, Stderr: []byte("killed")}
		}
		return answer(files)
	}
	m.OnChange = func(string, host.Change) error {
		files["/etc/kubernetes/pki/apiserver.crt"] = renewed // in this very run
		return nil
	}
	s := testScope()
	s.host.Name = "w1"
	p := testPlan(t)
	down := false
	r := &KubexmConfigReconciler{Holder: "test", Reader: withAuthority(t, s.cluster)}
	newJob := func() *job {
		j := &job{
			target:  spec.Target{ClusterName: "prod", Host: spec.Host{Name: "w1", Role: spec.RoleControlPlane, Address: "10.1.0.2"}},
			options: r.optionsFor(s), remembered: &m.System,
			planner: func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) { return p, nil },
			bundle:  func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
		}
		j.options.Dial = func(context.Context, string) (host.Host, error) {
			if down {
				return nil, &host.Error{Kind: host.KindUnreachable, Host: "w1", Message: "no route"}
			}
			return m.Connect(), nil
		}
		return j
	}
	nobody := event.ReaderFunc(func(event.Event) {})
	c := &bootstrapv1.KubexmConfig{}
	want := []bootstrapv1.CertificateStatus{
		{Path: "/etc/kubernetes/pki/apiserver.crt", Type: bootstrapv1.ComponentCertificate, NotAfter: end},
		{Path: "/etc/kubernetes/pki/ca.crt", Type: bootstrapv1.AuthorityCertificate, NotAfter: endOf(t, ca.Cert)},
	}
	show := func(what string, out outcome) {
		t.Helper()
		showCertificates(t.Context(), c, &out)
		if diff := cmp.Diff(want, c.Status.Certificates); diff != "" {
			t.Errorf("%s:\n%s", what, diff)
		}
	}
	out := newJob().converge(t.Context(), nobody)
	if out.err != nil || out.report.Total().Changed != 1 {
		t.Fatalf("the run came to %+v: %v", out.report.Total(), out.err)
	}
	show("after a run in which one was renewed", out)
	out = newJob().look(t.Context(), nobody)
	if out.err != nil || out.report.Hosts[0].Exchanges != 1 {
		t.Errorf("a look came to %v after %d exchanges, want 1", out.err, out.report.Hosts[0].Exchanges)
	}
	show("after a look", out)
	failing = true
	show("after one that could not read them", newJob().look(t.Context(), nobody))
	down = true
	if out = newJob().look(t.Context(), nobody); unreachable(out.err) == "" {
		t.Fatalf("a look at a host that is down: %v", out.err)
	}
	show("after one that did not reach the host", out)
	show("without a plan", outcome{err: errors.New("artifacts: none"), report: engine.Report{}})

	// A host that is another than its plan says has certificates, too.
	down, failing = false, false
	m.Remove("/etc/a")
	files["/etc/kubernetes/pki/apiserver.crt"], files["/etc/kubernetes/pki/x.crt"] = old, []byte("-----BEGIN CERTIFICATE-----\n")
	want[0].NotAfter = endOf(t, old)
	want = append(want, bootstrapv1.CertificateStatus{Path: "/etc/kubernetes/pki/x.crt", Type: bootstrapv1.OtherCertificate, Message: "not PEM, or cut off"})
	out = newJob().look(t.Context(), nobody)
	if out.report.Converged() {
		t.Fatal("the host does not differ")
	}
	show("where something else differs", out)
}
