// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestAPIServerEndsBeforeItsEtcd: the API server of a host that leaves is ended before the others remove the host's etcd member, and
// they do not wait for a host that is away.
func TestAPIServerEndsBeforeItsEtcd(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 5)
	defer f.explain()
	var mu sync.Mutex
	var ended []string // the hosts, and whose members were removed when that was done
	isEnded := func(name string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(ended, func(e string) bool { return strings.HasPrefix(e, name+"[") })
	}
	for _, m := range f.machines {
		m.OnCommand = func(m *fake.Machine, c host.Command) host.Result {
			line := strings.Join(c.Argv, " ")
			if strings.Contains(line, "answers still\"") && !isEnded(m.System.Hostname) {
				return host.Result{ExitCode: 1} // the check, before it has run
			}
			if !strings.Contains(line, `rm -f "$dir/manifests/kube-apiserver.yaml"`) {
				return host.Result{}
			}
			said := &bootstrapv1.KubexmClusterConfig{}
			if err := f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, said); err != nil {
				t.Error(err)
			}
			var leaving []string
			for _, member := range said.Spec.Members {
				if member.Phase == bootstrapv1.MemberRemoved {
					leaving = append(leaving, member.Name)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, fmt.Sprint(m.System.Hostname, leaving))
			return host.Result{}
		}
	}
	kubeconfig, err := os.ReadFile(filepath.Join(f.dir, "kubeconfig"))
	f.Expect(err).NotTo(HaveOccurred())
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: capisecret.Name("prod", capisecret.Kubeconfig), Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{capisecret.KubeconfigDataName: kubeconfig},
	})
	f.declare(func(cp *controlplanev1.KubexmControlPlane) {
		cp.Spec.Replicas = ptr.To[int32](3)
		cp.Spec.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
		// There is no kubelet that could say that Pods and volumes are gone.
		cp.Spec.MachineTemplate.ObjectMeta.Annotations = map[string]string{
			clusterv1.ExcludeNodeDrainingAnnotation: "", clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: "",
		}
	})
	all := func() int { f.joined(); return f.readyConfigs() }
	f.Eventually(all, patience, 50*time.Millisecond).Should(Equal(4))
	f.Eventually(f.joined, patience, 50*time.Millisecond).Should(Equal(4))
	f.Expect(ended).To(BeEmpty())

	t.Log("a host that is away is given up")
	machines := f.controlPlaneMachines()
	lost := &machines[1]
	config := &bootstrapv1.KubexmConfig{}
	key := client.ObjectKey{Namespace: namespace, Name: lost.Spec.Bootstrap.ConfigRef.Name}
	f.Expect(f.api.Get(t.Context(), key, config)).To(Succeed())
	f.setDown(config.Status.Host.Address, host.KindUnreachable)
	f.Expect(f.api.Delete(t.Context(), lost)).To(Succeed())
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), key, config)).To(Succeed())
		g.Expect(conditions.GetReason(config, bootstrapv1.APIServerStoppedCondition)).To(Equal(bootstrapv1.APIServerNotStoppedReason))
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Eventually(f.notes, patience,
		50*time.Millisecond).WithArguments("APIServerStopFailed").Should(ConsistOf(ContainSubstring("cannot connect to " + config.Status.Host.Address)))
	f.Eventually(func() error {
		return f.api.Patch(t.Context(), lost, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, bootstrapv1.SkipHostResetAnnotation)))
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))
	}, patience, 50*time.Millisecond).Should(BeTrue())
	f.Eventually(all, patience, 50*time.Millisecond).Should(Equal(4))
	f.Eventually(f.joined, patience, 50*time.Millisecond).Should(Equal(4))

	t.Log("those that answer end theirs first")
	cp := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}}
	f.Expect(f.api.Patch(t.Context(), cp, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
	f.Eventually(f.controlPlaneMachines, patience, 50*time.Millisecond).Should(HaveLen(1))
	mu.Lock()
	defer mu.Unlock()
	f.Expect(ended).To(HaveLen(2), "%v", ended)
	for _, e := range ended {
		f.Expect(e).To(HaveSuffix("[]"), "its etcd member was already being removed")
	}
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments("APIServerStopped").Should(HaveLen(2)) // events are written beside all else
}

// controlPlaneMachines are those of the control plane, by their names.
func (f *fleet) controlPlaneMachines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace),
		client.HasLabels{clusterv1.MachineControlPlaneLabel})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}
