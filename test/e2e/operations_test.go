// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestOperations has real hosts do what KubexmOperations ask for: they are compared with their plans, repaired, give their logs, renew
// their certificates, and reboot. The managers are killed meanwhile.
func TestOperations(t *testing.T) {
	e := start(t)
	ctx := t.Context()
	defer func() {
		if t.Failed() {
			t.Log(e.explain(ctx))
		}
	}()
	logs := "--host-logs-dir=" + filepath.Join(e.dir, "host-logs")
	e.startManagers(logs)
	e.apply(e.inventory()...)
	e.apply(e.cluster(clusterName)...)
	e.expectReady(1)
	cluster := bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: clusterName}
	workers := bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineDeploymentTarget, Name: clusterName + "-workers"}
	_, name := e.worker()
	host, err := hosts.Find(ctx, name)
	e.Expect(err).NotTo(HaveOccurred())
	onHost := func(script string) {
		t.Helper()
		_, err := host.Exec(ctx, "sh", "-euc", script)
		e.Expect(err).NotTo(HaveOccurred())
	}

	t.Log("both hosts are up to date")
	e.operate("check", bootstrapv1.CheckDriftType, cluster)
	for _, h := range e.operated("check", 2) {
		e.Expect(h.Message).To(Equal("up to date"), h.Name)
	}

	t.Log("what somebody changed is found, and repaired by that")
	onHost("echo spoiled >>/etc/containerd/config.toml")
	e.operate("drift", bootstrapv1.CheckDriftType, workers)
	e.Expect(e.operated("drift", 1)[0].Message).To(ContainSubstring("/etc/containerd/config.toml"))
	e.expectReady(1)
	onHost("! grep -q spoiled /etc/containerd/config.toml")

	t.Log("or at once, also where the managers are killed meanwhile")
	onHost("echo spoiled >>/etc/containerd/config.toml")
	e.operate("repair", bootstrapv1.RepairType, cluster)
	e.Eventually(func(g Gomega) {
		o, err := get(ctx, e, "repair", &bootstrapv1.KubexmOperation{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.Status.Hosts).To(ContainElement(HaveField("Phase", bootstrapv1.OperationRunning)))
	}).Should(Succeed())
	e.killManagers()
	e.startManagers(logs)
	e.operated("repair", 2)
	onHost("! grep -q spoiled /etc/containerd/config.toml")

	t.Log("logs come as files")
	e.operate("logs", bootstrapv1.CollectLogsType, workers)
	e.Expect(read(e, e.operated("logs", 1)[0].Message)).To(ContainSubstring("==> journal of kubelet.service <=="))

	t.Log("etcd is backed up where it has a member, and nowhere else")
	e.operate("backup", bootstrapv1.BackupEtcdType, cluster)
	file, ok := strings.CutPrefix(e.operated("backup", 1)[0].Message, "saved as ")
	e.Expect(ok).To(BeTrue())
	member, err := hosts.Find(ctx, e.operated("backup", 1)[0].Name)
	e.Expect(err).NotTo(HaveOccurred())
	status, err := member.Exec(ctx, "etcdutl", "snapshot", "status", file, "-w", "json")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(status).To(ContainSubstring(`"totalKey":`))

	t.Log("certificates are renewed, however long they last, with the components that must read them anew: nothing differs afterwards")
	before := e.certificateEnds()
	e.operate("renew", bootstrapv1.RenewCertificatesType, cluster)
	for _, h := range e.operated("renew", 2) {
		e.Expect(h.Message).To(MatchRegexp(`\bkubelet renewed|\bkubelet,`), h.Name) // what each Node has
	}
	after := e.certificateEnds()
	e.Expect(after).To(HaveLen(len(before)))
	for file, end := range before {
		e.Expect(after[file]).To(BeTemporally(">", end), file)
	}
	e.operate("renewed", bootstrapv1.CheckDriftType, cluster)
	for _, h := range e.operated("renewed", 2) {
		e.Expect(h.Message).To(Equal("up to date"), h.Name)
	}
	e.expectReady(1)

	t.Log("the worker reboots, and is a Node again")
	onHost("touch /run/gone-after-boot")
	e.operate("reboot", bootstrapv1.RebootType, workers)
	e.operated("reboot", 1)
	onHost("test ! -e /run/gone-after-boot")
	e.expectReady(1)

	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	// What a boot changes on the worker's host is none of ours.
	e.expectReset(slices.DeleteFunc(e.names(), func(n string) bool { return n == name })...)
	e.Eventually(func(g Gomega) { // they go with their Cluster
		left := &bootstrapv1.KubexmOperationList{}
		g.Expect(e.api.List(ctx, left, client.InNamespace(namespace))).To(Succeed())
		g.Expect(namesOf(left)).To(BeEmpty())
	}).Should(Succeed())
	e.stopManagers()
}

func (e *environment) operate(name string, kind bootstrapv1.KubexmOperationType, target bootstrapv1.OperationTarget) {
	e.t.Helper()
	e.Expect(e.api.Create(e.t.Context(), &bootstrapv1.KubexmOperation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: bootstrapv1.KubexmOperationSpec{Type: kind, Target: target},
	})).To(Succeed())
}

// certificateEnds are when those end that kubexm or kubeadm has made, by the host's KubexmConfig and the file.
func (e *environment) certificateEnds() map[string]time.Time {
	e.t.Helper()
	ends := map[string]time.Time{}
	for _, c := range e.allConfigs(e) {
		for _, one := range c.Status.Certificates {
			if one.Type == bootstrapv1.ComponentCertificate || one.Type == bootstrapv1.AdministratorCertificate {
				ends[c.Name+" "+one.Path] = one.NotAfter.Time
			}
		}
	}
	e.Expect(ends).NotTo(BeEmpty())
	return ends
}

// operated waits until an operation has succeeded on so many hosts.
func (e *environment) operated(name string, count int) (all []bootstrapv1.HostOperationStatus) {
	e.t.Helper()
	e.Eventually(func(g Gomega) {
		o, err := get(e.t.Context(), e, name, &bootstrapv1.KubexmOperation{})
		g.Expect(err).NotTo(HaveOccurred())
		if conditions.IsFalse(o, bootstrapv1.SucceededCondition) {
			StopTrying(conditions.GetMessage(o, bootstrapv1.SucceededCondition)).Attach("hosts", o.Status.Hosts).Now()
		}
		g.Expect(conditions.IsTrue(o, bootstrapv1.SucceededCondition)).To(BeTrue(), "%+v", o.Status.Hosts)
		all = o.Status.Hosts
	}, converging).Should(Succeed())
	e.Expect(all).To(HaveLen(count))
	return all
}

// read is a compressed log.
func read(e *environment, file string) string {
	e.t.Helper()
	f, err := os.Open(file)
	e.Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	in, err := gzip.NewReader(f)
	e.Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	_, err = io.Copy(&text, in)
	e.Expect(err).NotTo(HaveOccurred())
	return text.String()
}
