// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// operate asks for something on the hosts of a target.
func (f *fleet) operate(
	name string, kind bootstrapv1.KubexmOperationType, target bootstrapv1.OperationTarget, change ...func(*bootstrapv1.KubexmOperationSpec),
) {
	f.t.Helper()
	o := &bootstrapv1.KubexmOperation{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: bootstrapv1.KubexmOperationSpec{Type: kind, Target: target},
	}
	for _, c := range change {
		c(&o.Spec)
	}
	f.create(o)
}

func (f *fleet) operation(g Gomega, name string) *bootstrapv1.KubexmOperation {
	o := &bootstrapv1.KubexmOperation{}
	g.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)).To(Succeed())
	return o
}

// ended waits until an operation has, and returns it.
func (f *fleet) ended(name string, status metav1.ConditionStatus) *bootstrapv1.KubexmOperation {
	f.t.Helper()
	var o *bootstrapv1.KubexmOperation
	f.Eventually(func(g Gomega) {
		o = f.operation(g, name)
		said := conditions.Get(o, bootstrapv1.SucceededCondition)
		g.Expect(said).NotTo(BeNil())
		g.Expect(said.Status).To(Equal(status), "%+v %+v", said, o.Status.Hosts)
		g.Expect(o.Annotations[bootstrapv1.OperationCompletedAnnotation]).To(HaveSuffix(" " + said.Reason))
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(o.Status.CompletionTime.IsZero()).To(BeFalse())
	return o
}

const (
	kubeletCert = "/var/lib/kubelet/pki/kubelet.crt"
	kubeletKey  = "/var/lib/kubelet/pki/kubelet.key"
)

// contentOf is what a file on a host has, "" if there is none.
func contentOf(m *fake.Machine, file string) string {
	connection := m.Connect()
	defer connection.Close()
	facts, err := connection.Observe(context.Background(), host.Query{Paths: []host.PathQuery{{Path: file, Content: true}}})
	if err != nil {
		return ""
	}
	return string(facts.Paths[file].Content)
}

// TestOperations: what is asked for by an object is done with each host of its target, once, and its result is kept.
func TestOperations(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3, func(f *fleet) { f.lookEvery = time.Hour })
	defer f.explain()
	for _, m := range f.machines {
		m.OnCommand = func(m *fake.Machine, c host.Command) host.Result {
			switch {
			case c.Title == "read logs":
				return host.Result{Stdout: []byte("what was logged")}
			case slices.Contains(c.Argv, "/etc/kubernetes/pki"): // which certificates there are
				if cert := contentOf(m, kubeletCert); cert != "" {
					return host.Result{Stdout: []byte("# " + kubeletCert + "\n" + cert)}
				}
			case c.Title == "outdate certificates": // by which they are older than their keys
				m.Put(kubeletKey, contentOf(m, kubeletKey), 0o600)
			}
			return host.Result{}
		}
	}
	f.declare()
	f.scale(2)
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(3))
	cluster := bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"}
	workers := bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineDeploymentTarget, Name: "workers"}

	t.Log("the hosts of a Cluster are compared with their plans, and the operation becomes a part of it")
	f.operate("check", bootstrapv1.CheckDriftType, cluster)
	o := f.ended("check", metav1.ConditionTrue)
	f.Expect(o.Status.Hosts).To(HaveLen(3))
	for _, h := range o.Status.Hosts {
		f.Expect(h.Phase).To(Equal(bootstrapv1.OperationSucceeded))
		f.Expect(h.Message).To(Equal("up to date"))
	}
	f.Expect(o.Status.Summary).To(Equal("3/3"))
	f.Expect(o.Labels[clusterv1.ClusterNameLabel]).To(Equal("prod"))
	f.Expect(o.OwnerReferences).To(HaveLen(1))

	t.Log("what somebody changed is found by the next, and repaired")
	config, machine := f.worker(f)
	address := config.Status.Host.Address
	before := f.content(address)
	f.machines[address].Put(made, "changed by somebody\n", 0o644)
	f.operate("drift", bootstrapv1.CheckDriftType, bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineTarget, Name: machine.Name})
	o = f.ended("drift", metav1.ConditionTrue)
	f.Expect(o.Status.Hosts).To(HaveLen(1))
	f.Expect(o.Status.Hosts[0].Message).To(ContainSubstring(made))
	f.Eventually(func() string { return f.content(address) }, patience, 50*time.Millisecond).Should(Equal(before))

	t.Log("workers are repaired one after the other, and no check is needed to find out")
	f.machines[address].Put(made, "changed by somebody\n", 0o644)
	f.operate("repair", bootstrapv1.RepairType, workers)
	o = f.ended("repair", metav1.ConditionTrue)
	f.Expect(o.Status.Hosts).To(HaveLen(2))
	f.Expect(o.Status.Hosts[1].RequestTime.Before(&o.Status.Hosts[0].EndTime)).To(BeFalse())
	f.Expect(f.content(address)).To(Equal(before))

	t.Log("logs are kept")
	f.operate("logs", bootstrapv1.CollectLogsType, workers)
	o = f.ended("logs", metav1.ConditionTrue)
	for _, h := range o.Status.Hosts {
		kept, err := filepath.Glob(filepath.Join(f.dir, "host-logs", namespace, h.Name, "*"))
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(kept).To(ConsistOf(h.Message))
	}

	t.Log("a status that is lost is not done again")
	asked := func() string { c, _ := f.worker(f); return c.Annotations[bootstrapv1.ConvergeAnnotation] }
	request := asked()
	f.Expect(f.api.Status().Patch(t.Context(), f.operation(f, "repair"), client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`)))).To(Succeed())
	o = f.ended("repair", metav1.ConditionTrue)
	f.Expect(o.Status.Hosts).To(BeEmpty())
	f.Expect(asked()).To(Equal(request))

	t.Log("a host that does not answer fails, and no other is disrupted after it")
	f.setDown(address, host.KindUnreachable)
	f.operate("down", bootstrapv1.RepairType, workers, func(s *bootstrapv1.KubexmOperationSpec) { s.TimeoutSeconds = ptr.To[int32](4) })
	o = f.ended("down", metav1.ConditionFalse)
	first := o.Status.Hosts[0]
	if first.Name == config.Status.Host.Name {
		f.Expect(first.Phase).To(Equal(bootstrapv1.OperationFailed))
		f.Expect(first.Message).To(ContainSubstring("cannot connect to " + address))
		f.Expect(o.Status.Hosts[1].Phase).To(Equal(bootstrapv1.OperationSkipped))
	} else {
		f.Expect(o.Status.Hosts[1].Phase).To(Equal(bootstrapv1.OperationFailed))
	}
	f.setDown(address, "")

	t.Log("components are restarted on the hosts that have them, one after the other; what the cluster has on no host is said")
	for _, m := range f.machines {
		m.SetUnit("kubelet.service", host.UnitState{Load: "loaded", Active: "active", File: "enabled"})
	}
	restarts := func(components ...spec.ComponentName) func(*bootstrapv1.KubexmOperationSpec) {
		return func(s *bootstrapv1.KubexmOperationSpec) { s.Components = components }
	}
	f.operate("restart", bootstrapv1.RestartType, workers, restarts(spec.ComponentKubelet, spec.ComponentEtcd))
	o = f.ended("restart", metav1.ConditionTrue)
	f.Expect(o.Status.Hosts).To(HaveLen(2))
	f.Expect(o.Status.Hosts[0].Message).To(HavePrefix("Kubelet restarted, and well after "))
	f.Expect(o.Status.Hosts[1].RequestTime.Before(&o.Status.Hosts[0].EndTime)).To(BeFalse())
	f.operate("no-unit", bootstrapv1.RestartType, workers, restarts(spec.ComponentProxy))
	o = f.ended("no-unit", metav1.ConditionFalse)
	f.Expect(o.Status.Hosts[0].Message).To(ContainSubstring("has no Proxy that can be restarted on its hosts; it has ContainerRuntime,Kubelet,"))
	f.Expect(o.Status.Hosts[1].Phase).To(Equal(bootstrapv1.OperationSkipped))
	for why, s := range map[string]bootstrapv1.KubexmOperationSpec{
		"what is restarted is named for the type Restart": {Type: bootstrapv1.RestartType, Target: workers},
		"and for no other":  {Type: bootstrapv1.RebootType, Target: workers, Components: []spec.ComponentName{spec.ComponentKubelet}},
		"Unsupported value": {Type: bootstrapv1.RestartType, Target: workers, Components: []spec.ComponentName{"kube-proxy"}},
	} {
		refused := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}, Spec: s}
		f.Expect(f.api.Create(t.Context(), refused)).To(MatchError(ContainSubstring(why)))
	}

	t.Log("certificates are renewed on the hosts that have them, one after the other, and their new ends are shown at once")
	renews := func(names ...spec.CertificateName) func(*bootstrapv1.KubexmOperationSpec) {
		return func(s *bootstrapv1.KubexmOperationSpec) { s.Certificates = names }
	}
	certificate := ""
	for _, name := range []string{"renew", "renew-again"} {
		f.operate(name, bootstrapv1.RenewCertificatesType, workers, renews("apiserver", "kubelet"))
		o = f.ended(name, metav1.ConditionTrue)
		f.Expect(o.Status.Hosts).To(HaveLen(2))
		f.Expect(o.Status.Hosts[0].Message).To(HavePrefix("kubelet renewed, and well after "))
		f.Expect(o.Status.Hosts[1].RequestTime.Before(&o.Status.Hosts[0].EndTime)).To(BeFalse())
		config, _ = f.worker(f)
		made := contentOf(f.machines[config.Status.Host.Address], kubeletCert)
		f.Expect(made).NotTo(Equal(certificate))
		certificate = made
		is, err := pki.KeyPair{Cert: []byte(made)}.Certificate()
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(config.Status.Certificates).To(HaveLen(1))
		f.Expect(config.Status.Certificates[0].Path).To(Equal(kubeletCert))
		f.Expect(config.Status.Certificates[0].Type).To(Equal(bootstrapv1.ComponentCertificate))
		f.Expect(config.Status.Certificates[0].NotAfter.Time).To(BeTemporally("==", is.NotAfter))
	}
	f.operate("no-certificate", bootstrapv1.RenewCertificatesType, workers, renews("kubelet-client"))
	o = f.ended("no-certificate", metav1.ConditionFalse)
	f.Expect(o.Status.Hosts[0].Message).To(ContainSubstring("has no certificate kubelet-client that can be renewed on its hosts; it has "))
	f.Expect(o.Status.Hosts[1].Phase).To(Equal(bootstrapv1.OperationSkipped))
	for why, s := range map[string]bootstrapv1.KubexmOperationSpec{
		`spec.certificates[0]: Unsupported value: "ca"`: {
			Type: bootstrapv1.RenewCertificatesType, Target: workers, Certificates: []spec.CertificateName{"ca"},
		},
		"certificates are named for the type RenewCertificates": {Type: bootstrapv1.RebootType, Target: workers, Certificates: []spec.CertificateName{"kubelet"}},
	} {
		refused := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}, Spec: s}
		f.Expect(f.api.Create(t.Context(), refused)).To(MatchError(ContainSubstring(why)))
	}

	t.Log("what has ended goes when its time has passed; what cannot be, and a change, is refused")
	f.operate("gone", bootstrapv1.CollectLogsType, workers, func(s *bootstrapv1.KubexmOperationSpec) {
		s.TTLSecondsAfterFinished = ptr.To[int32](0)
	})
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "gone"}, &bootstrapv1.KubexmOperation{}))
	}, patience, 50*time.Millisecond).Should(BeTrue())
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"type":%q}}`, bootstrapv1.RebootType))
	f.Expect(f.api.Patch(t.Context(), f.operation(f, "logs"), patch)).To(MatchError(ContainSubstring("an operation cannot be changed")))
	f.operate("nobody", bootstrapv1.RebootType, bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineTarget, Name: "nobody"})
	f.Eventually(func(g Gomega) {
		g.Expect(conditions.GetReason(f.operation(g, "nobody"), bootstrapv1.SucceededCondition)).To(Equal(bootstrapv1.TargetNotFoundReason))
	}, patience, 50*time.Millisecond).Should(Succeed())
}
