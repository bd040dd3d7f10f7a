// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery/recoverytest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

var recoveryTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// lostPairs are a cluster's key pairs, and what identifies them.
func lostPairs(t *testing.T) (pki.Authorities, pki.Fingerprints) {
	t.Helper()
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	prints, err := pairs.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	return pairs, prints
}

// controlPlaneScope is that of the host of a control plane's Machine.
func controlPlaneScope() *scope {
	s := testScope()
	s.config.UID, s.config.Name = "1", "prod-1"
	s.key = client.ObjectKeyFromObject(s.config)
	s.host.Name = "cp1"
	s.machine.Name, s.machine.Labels = "prod-1", map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	s.machine.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "controlplane.cluster.x-k8s.io/v1beta1", Kind: "KubexmControlPlane", Name: "prod", UID: "2",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	return s
}

// TestReadPairs: a host's pairs count if its record says that it is this host of the cluster, and if they are those that are recorded.
func TestReadPairs(t *testing.T) {
	own, prints := lostPairs(t)
	other, _ := lostPairs(t)
	type world struct {
		disk  recoverytest.Disk
		owner *host.Owner
		scope *scope
		away  error
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"all is well": {func(*world) {}, ""},
		"the host's own authority is not recorded anywhere else": {func(w *world) { w.scope.config.Annotations = nil }, ""},
		"another pair": {func(w *world) {
			w.disk["sa.pub"], w.disk["sa.key"] = other.ServiceAccount.Cert, other.ServiceAccount.Key.Reveal()
		},
			"the key pair sa there is another one"},
		"half a pair":                 {func(w *world) { delete(w.disk, "etcd/ca.key") }, "there is no /etc/kubernetes/pki/etcd/ca.key"},
		"a host that was reset":       {func(w *world) { w.owner = nil }, "it has no record of the cluster"},
		"another host of the cluster": {func(w *world) { w.owner.Host = "cp2" }, "its name is cp2, not cp1"},
		"another cluster's host":      {func(w *world) { w.owner.Authority = "sha256:other" }, "its cluster's authority is"},
		"another cluster's, to be adopted": {func(w *world) {
			w.owner.Authority, w.owner.Cluster = "sha256:other", "fleet/dev"
			w.scope.config.Annotations[bootstrapv1.AdoptHostAnnotation] = "fleet/dev"
		}, "its cluster's authority is"},
		"a host that does not answer": {func(w *world) { w.away = errors.New("no route to host") }, "no route to host"},
	} {
		t.Run(name, func(t *testing.T) {
			disk, err := recoverytest.Of(own)
			if err != nil {
				t.Fatal(err)
			}
			w := world{disk: disk, scope: controlPlaneScope(), owner: &host.Owner{
				Cluster: "fleet/prod", Authority: prints[pki.ClusterName], Role: "ControlPlane", Host: "cp1",
			}}
			w.scope.config.Annotations = map[string]string{bootstrapv1.AuthorityAnnotation: prints[pki.ClusterName]}
			tc.change(&w)
			m := fake.New("cp1")
			if w.owner != nil {
				record, err := json.Marshal(w.owner)
				if err != nil {
					t.Fatal(err)
				}
				m.Put(host.StateDir+"/"+host.OwnerFile, string(record), 0o600)
			}
			m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result { return w.disk.Exec(c) }
			var told []event.Event
			r := &KubexmConfigReconciler{
				Reader: kubefake.NewClientBuilder().Build(), Reads: event.ReaderFunc(func(e event.Event) { told = append(told, e) }),
			}
			j := &recoveryJob{withoutPlan: r.withoutPlan(w.scope, recovering, recoveryTime), wanted: prints}
			j.dial = func(context.Context, string) (host.Host, error) {
				if w.away != nil {
					return nil, w.away
				}
				return m.Connect(), nil
			}
			out, end := j.do(t.Context(), nobody), event.Changed
			if tc.want != "" {
				end = event.Failed
			}
			if len(told) != 4 || told[0].Intent != recovering || told[1].Host != "cp1" || told[2].Type != end || told[3].Type != event.RunEnded {
				t.Errorf("it was told %+v", told)
			}
			if text := fmt.Sprintf("%+v %v %+v", out, out.err, told); strings.Contains(text, "PRIVATE") {
				t.Errorf("a key is shown: %s", text)
			}
			if stats := m.Stats(); stats.Exchanges > 2 || stats.BytesStaged > 0 {
				t.Errorf("it does more than look and read: %+v", stats)
			}
			if tc.want != "" {
				if out.err == nil || !strings.Contains(out.err.Error(), tc.want) || !out.recovered.Cluster.IsZero() {
					t.Errorf("got %v, want %q", out.err, tc.want)
				}
				return
			}
			if out.err != nil || !out.recovered.Etcd.Key.Equal(own.Etcd.Key) || !out.asked.Equal(recoveryTime) {
				t.Errorf("it reads %+v", out)
			}
		})
	}
}

// TestTakesRecovery: the Secrets that are missing are written as Cluster API knows them, those that are there stay, and what was read is
// not lost when the API does not answer.
func TestTakesRecovery(t *testing.T) {
	pairs, _ := lostPairs(t)
	pairs.CompleteEncryption()
	s, away := controlPlaneScope(), errors.New("the API is away")
	kept := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-proxy"}, Data: map[string][]byte{"tls.crt": []byte("theirs")},
	}
	api := kubefake.NewClientBuilder().WithObjects(kept).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if away != nil && o.GetName() == "prod-etcd" {
				return away
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build()
	r := &KubexmConfigReconciler{
		Client: api, Reader: api, Runner: NewRunner(t.Context(), 1, time.Second), Events: events.NewFakeRecorder(9),
	}
	ends := func(err error) error {
		t.Helper()
		s.ended = false
		s.job = &hostrun.State[outcome]{
			What: recovering, Started: recoveryTime, Ended: recoveryTime.Add(time.Second),
			Result: outcome{asked: recoveryTime, err: err, recovered: pairs},
		}
		_, _, failed := r.collectResult(t.Context(), s)
		return failed
	}
	interruption := &engine.Error{Cause: errors.New("the manager ends")}
	if err := ends(interruption); err != nil || !s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation).EndTime.IsZero() {
		t.Errorf("interrupted, it says %+v, %v", s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation), err)
	}
	if err := ends(nil); !errors.Is(err, away) || !s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation).EndTime.IsZero() {
		t.Errorf("without an API, it says %+v, %v", s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation), err)
	}
	away = nil
	err, last := ends(nil), s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation)
	if err != nil || !s.ended || last.Outcome != bootstrapv1.RunSucceeded || !last.StartTime.Time.Equal(recoveryTime) {
		t.Errorf("it says %+v, %v", last, err)
	}
	for name, data := range map[string]map[string][]byte{
		"prod-ca":         {"tls.crt": pairs.Cluster.Cert, "tls.key": pairs.Cluster.Key.Reveal()},
		"prod-etcd":       {"tls.crt": pairs.Etcd.Cert, "tls.key": pairs.Etcd.Key.Reveal()},
		"prod-proxy":      kept.Data,
		"prod-sa":         {"tls.crt": pairs.ServiceAccount.Cert, "tls.key": pairs.ServiceAccount.Key.Reveal()},
		"prod-encryption": {"key": pairs.Encryption.Key.Reveal()},
	} {
		got := &corev1.Secret{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, got); err != nil {
			t.Fatal(err)
		}
		for key, want := range data {
			if !bytes.Equal(got.Data[key], want) || len(got.Data) != len(data) {
				t.Errorf("the Secret %s has another %s", name, key)
			}
		}
		owner := metav1.GetControllerOf(got)
		if name == "prod-proxy" {
			continue
		}
		if owner == nil || owner.UID != "2" || owner.BlockOwnerDeletion != nil || got.Type != clusterv1.ClusterSecretType ||
			got.Labels[clusterv1.ClusterNameLabel] != "prod" {
			t.Errorf("the Secret %s is not as Cluster API knows it: %+v, %s", name, got.ObjectMeta, got.Type)
		}
	}
}

// TestRecovers: it is read once for each time that it is asked for, and never from a host, or by a request, that cannot have it.
func TestRecovers(t *testing.T) {
	_, prints := lostPairs(t)
	_, others := lostPairs(t)
	for name, tc := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"it is asked for":               {func(*scope) {}, "the host is dialled"},
		"of a worker":                   {func(s *scope) { s.machine.Labels = nil }, "the host is none of a control plane's"},
		"of a Machine that nobody owns": {func(s *scope) { s.machine.OwnerReferences = nil }, "the host is none of a control plane's"},
		"without fingerprints":          {func(s *scope) { s.config.AskRecovery("", recoveryTime) }, "no fingerprint follows the time"},
		"with what is none":             {func(s *scope) { s.config.AskRecovery("ca=abc", recoveryTime) }, "is no fingerprint"},
		"of other pairs": {func(s *scope) {
			s.config.AskRecovery(others.String(), recoveryTime)
		}, "was made with another key pair ca"},
	} {
		t.Run(name, func(t *testing.T) {
			s := controlPlaneScope()
			s.clusterConfig.Spec.Authorities = []bootstrapv1.AuthorityFingerprint{{Name: "ca", Fingerprint: prints["ca"]}}
			r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: events.NewFakeRecorder(9)}
			r.Reader = kubefake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "ssh"}, Type: corev1.SecretTypeSSHAuth,
				Data: map[string][]byte{"ssh-privatekey": []byte("x")},
			}).Build()
			r.Dial = func(context.Context, ssh.Config) (host.Host, error) { return nil, errors.New("the host is dialled") }
			if goOn, _, err := r.operate([]operation{r.recoverCertificates()})(t.Context(), s); !goOn || err != nil {
				t.Fatalf("nobody asks: goes on %v, %v", goOn, err)
			}
			s.config.AskRecovery(prints.String(), recoveryTime)
			tc.change(s)
			due, err := r.recoveryIsDue(t.Context(), s)
			if err != nil || due == nil {
				t.Fatalf("due %v, %v", due != nil, err)
			}
			s.job = &hostrun.State[outcome]{
				What: recovering, Started: recoveryTime, Ended: recoveryTime, Result: due.Do(t.Context(), nobody),
			}
			if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil {
				t.Fatalf("goes on %v, %v", goOn, err)
			}
			last := s.config.Status.Operation(bootstrapv1.RecoverCertificatesOperation)
			if last.Outcome != bootstrapv1.RunFailed || !strings.Contains(last.Message, tc.want) || last.StartTime.IsZero() {
				t.Errorf("it says %+v", last)
			}
			if due, err := r.recoveryIsDue(t.Context(), s); due != nil || err != nil {
				t.Errorf("once more: due %v, %v", due != nil, err)
			}
		})
	}
}
