// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestRestoreEtcd restores etcd by an object, for a control plane of one host, and for one of three with etcd on hosts of its own. The
// managers are killed again and again meanwhile, a little later each time: whoever comes next goes on with the same restore.
func TestRestoreEtcd(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		e := startWith(t, "e2r1", "control-plane", "worker")
		defer e.explainFailure()
		e.startManagers()
		e.apply(e.inventory()...)
		e.apply(e.cluster(clusterName)...)
		e.expectReady(1)
		e.backsUpAndRestores(1, 1)
		e.expectReady(1)
		e.requestDeletion(clusterName)
		e.expectDeleted(clusterName, converging)
		e.expectReset(e.names()...)
		e.stopManagers()
	})
	t.Run("three", func(t *testing.T) {
		e := startWith(t, "e2r3", slices.Concat(
			slices.Repeat([]string{"control-plane"}, controlPlanes), slices.Repeat([]string{"etcd"}, etcdMembers),
			slices.Repeat([]string{"load-balancer"}, loadBalancers), []string{"worker"},
		)...)
		defer e.explainFailure()
		e.startManagers()
		e.apply(e.inventory()...)
		e.apply(e.availableCluster()...)
		settled := func() {
			e.Eventually(func(g Gomega) { e.settled(t.Context(), g, 1) }, 2*converging).Should(Succeed())
		}
		settled()
		e.backsUpAndRestores(etcdMembers, controlPlanes+etcdMembers)
		settled()
		e.requestDeletion(clusterName)
		e.expectDeleted(clusterName, converging)
		e.expectReset(e.names()...)
		e.stopManagers()
	})
}

// explainFailure says how all stands, before anything is stopped.
func (e *environment) explainFailure() {
	if e.t.Failed() {
		e.t.Log(e.explain(e.t.Context()))
	}
}

// backsUpAndRestores saves a backup on the hosts of so many members, writes something else, and restores it on so many hosts.
func (e *environment) backsUpAndRestores(members, hostCount int) {
	e.t.Helper()
	ctx := e.t.Context()
	says := func(name string) {
		e.t.Helper()
		e.Eventually(func() error {
			_, err := e.workload().CoreV1().ConfigMaps("default").Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}).Should(Succeed())
	}
	cluster := bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: clusterName}
	says("first")
	e.operate("backup", bootstrapv1.BackupEtcdType, cluster)
	saved := e.operated("backup", members)[0]
	file, ok := strings.CutPrefix(saved.Message, "saved as ")
	e.Expect(ok).To(BeTrue(), saved.Message)
	says("second")

	e.t.Log("what is not there is refused, and nothing stands still for it")
	e.restoreFrom("none", saved.Name, strings.TrimSuffix(file, ".db")+"-none.db")
	e.Eventually(func(g Gomega) {
		o, err := get(ctx, e, "none", &bootstrapv1.KubexmOperation{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.IsFalse(o, bootstrapv1.SucceededCondition)).To(BeTrue(), "%+v", o.Status)
		g.Expect(conditions.GetMessage(o, bootstrapv1.SucceededCondition)).To(ContainSubstring("nothing says whose snapshot"))
		shared, err := get(ctx, e, clusterName, &bootstrapv1.KubexmClusterConfig{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(shared.Annotations).NotTo(HaveKey(bootstrapv1.HeldByAnnotation))
	}).Should(Succeed())

	e.t.Log("restored, while the managers are killed")
	e.restoreFrom("restore", saved.Name, file)
	began, cuts, underWay, id := time.Now(), 0, false, ""
	for after := 2 * time.Second; ; after += 2 * time.Second {
		o := e.restoring("restore", after)
		if now := o.Annotations[bootstrapv1.OperationRestoreAnnotation]; id == "" {
			id = now
		} else {
			e.Expect(now).To(Equal(id), "another restore")
		}
		if ended := conditions.Get(o, bootstrapv1.SucceededCondition); ended != nil && ended.Status != metav1.ConditionUnknown {
			e.Expect(ended.Status).To(Equal(metav1.ConditionTrue), ended.Message)
			break
		}
		e.Expect(time.Since(began)).To(BeNumerically("<", 2*converging), "%+v", o.Status)
		underWay = underWay || o.Annotations[bootstrapv1.OperationRestoringAnnotation] != ""
		cuts++
		e.killManagers()
		e.startManagers()
	}
	e.t.Logf("the managers were killed %d times within %s", cuts, time.Since(began))
	e.Expect(underWay).To(BeTrue(), "it was never killed while the restore was under way")
	e.operated("restore", hostCount)

	e.t.Log("the cluster has what the backup has, and the hosts go on")
	e.Eventually(func(g Gomega) {
		api := e.workload().CoreV1().ConfigMaps("default")
		_, err := api.Get(ctx, "first", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = api.Get(ctx, "second", metav1.GetOptions{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		configs, err := list(ctx, e, clusterName, &bootstrapv1.KubexmConfigList{})
		g.Expect(err).NotTo(HaveOccurred())
		for _, c := range configs.Items {
			g.Expect(c.Status.HeldBy).To(BeEmpty(), c.Name)
		}
	}, converging).Should(Succeed())
	says("third")
	for _, h := range e.operated("restore", hostCount) {
		at, err := hosts.Find(ctx, h.Name)
		e.Expect(err).NotTo(HaveOccurred())
		_, err = at.Exec(ctx, "test", "!", "-e", "/var/lib/kubexm/etcd-restore")
		e.Expect(err).NotTo(HaveOccurred(), h.Name)
	}
}

// restoreFrom asks for a restore.
func (e *environment) restoreFrom(name, host, path string) {
	e.t.Helper()
	e.Expect(e.api.Create(e.t.Context(), &bootstrapv1.KubexmOperation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: bootstrapv1.KubexmOperationSpec{
			Type: bootstrapv1.RestoreEtcdType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: clusterName},
			RestoreEtcd: bootstrapv1.EtcdRestore{
				Snapshot:            bootstrapv1.EtcdSnapshotSource{Host: bootstrapv1.EtcdSnapshotOnHost{Name: host, Path: path}},
				AcceptedLossSeconds: ptr.To[int32](24 * 60 * 60),
			},
		},
	})).To(Succeed())
}

// restoring is the operation after a while, or when it has ended.
func (e *environment) restoring(name string, after time.Duration) *bootstrapv1.KubexmOperation {
	e.t.Helper()
	for until := time.Now().Add(after); ; {
		o, err := get(e.t.Context(), e, name, &bootstrapv1.KubexmOperation{})
		e.Expect(err).NotTo(HaveOccurred())
		if o.Annotations[bootstrapv1.OperationCompletedAnnotation] != "" || time.Now().After(until) {
			return o
		}
		time.Sleep(poll) // it is to be killed at a time, not at an event
	}
}
