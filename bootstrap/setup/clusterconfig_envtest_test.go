// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// planned are the digests of the targets that hosts were planned for, by the hosts' names, each once.
type planned struct {
	mu      sync.Mutex
	targets map[string][]string
	last    map[string]spec.Target
}

func (p *planned) plan(n pipeline.Node, bundle *artifact.Bundle) (*plan.Plan, error) {
	raw, err := json.Marshal(n.Target)
	if err != nil {
		return nil, err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(raw))
	p.mu.Lock()
	defer p.mu.Unlock()
	if name := n.Target.Host.Name; !slices.Contains(p.targets[name], digest) {
		p.targets[name] = append(p.targets[name], digest)
	}
	p.last[n.Target.Host.Name] = n.Target
	return plans(n, bundle)
}

// begin forgets what was planned before.
func (p *planned) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets, p.last = map[string][]string{}, map[string]spec.Target{}
}

func (p *planned) seen() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.targets)
}

// pool labels the fleet's hosts by what they are for.
func (f *fleet) pool(name string, hosts ...string) {
	for _, h := range hosts {
		f.Expect(f.api.Patch(f.t.Context(), &infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: h}},
			client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"pool":%q}}}`, name)))).To(Succeed())
	}
}

// clusterConfig is what the hosts of the cluster are to know.
func (f *fleet) clusterConfig(g Gomega) *bootstrapv1.KubexmClusterConfig {
	c := &bootstrapv1.KubexmClusterConfig{}
	g.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, c)).To(Succeed())
	return c
}

// strip takes the statuses of all objects of these kinds away, as a move or a restored backup does.
func (f *fleet) strip(lists ...client.ObjectList) {
	f.t.Helper()
	for _, list := range lists {
		f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		raw, err := json.Marshal(list)
		f.Expect(err).NotTo(HaveOccurred())
		var names struct {
			Items []struct {
				Metadata struct{ Name string }
			}
		}
		f.Expect(json.Unmarshal(raw, &names)).To(Succeed())
		kinds, _, err := f.api.Scheme().ObjectKinds(list)
		f.Expect(err).NotTo(HaveOccurred())
		for _, item := range names.Items {
			made, err := f.api.Scheme().New(kinds[0].GroupVersion().WithKind(kinds[0].Kind[:len(kinds[0].Kind)-len("List")]))
			f.Expect(err).NotTo(HaveOccurred())
			object, ok := made.(client.Object)
			f.Expect(ok).To(BeTrue())
			object.SetNamespace(namespace)
			object.SetName(item.Metadata.Name)
			f.Expect(client.IgnoreNotFound(f.api.Status().Patch(f.t.Context(), object,
				client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`))))).To(Succeed())
		}
	}
}

// pause pauses the Cluster, or lets it go on.
func (f *fleet) pause(yes bool) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}}
	f.Expect(f.api.Patch(f.t.Context(), cluster, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"paused":%v}}`, yes)))).To(Succeed())
}

// TestPlansOutliveStatuses: every input of a plan is in a specification, so that a cluster whose objects have lost their statuses is
// planned as it was, and never as something else in between.
func TestPlansOutliveStatuses(t *testing.T) {
	t.Parallel() // most of it is waiting
	p := &planned{}
	p.begin()
	f := newFleetWith(t, 9, p.plan)
	defer f.explain()
	kubeconfig, err := os.ReadFile(filepath.Join(f.dir, "kubeconfig"))
	f.Expect(err).NotTo(HaveOccurred())
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: capisecret.Name("prod", capisecret.Kubeconfig), Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{capisecret.KubeconfigDataName: kubeconfig},
	})
	f.endpoint = "10.1.0.100"
	f.selector = map[string]string{"pool": "nodes"}
	f.declare(func(cp *controlplanev1.KubexmControlPlane) {
		f.pool("etcd", "host4", "host5", "host6")
		f.pool("lb", "host7", "host8")
		f.pool("nodes", "host1", "host2", "host3", "host9")
		cp.Spec.Replicas = ptr.To[int32](3)
		cp.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: f.endpoint, Port: 6443}
		cp.Spec.Cluster.LoadBalancer = spec.LoadBalancer{Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{
			Hosts: spec.Hosts{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "lb"}}},
		}}
		cp.Spec.Cluster.Etcd = spec.Etcd{
			Type: spec.EtcdKubexm, Hosts: spec.Hosts{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "etcd"}}},
		}
	})
	settled := func(g Gomega) {
		f.joined()
		g.Expect(f.readyConfigs()).To(Equal(9))
		members := f.clusterConfig(g).Spec.Members
		g.Expect(members).To(HaveLen(8))
		for _, m := range members {
			g.Expect(m.Phase).To(Equal(bootstrapv1.MemberServing), m.Name)
			g.Expect(m.Address).NotTo(BeEmpty(), m.Name)
		}
		for _, c := range f.configs() {
			g.Expect(c.Status.MembersDigest).To(Equal(bootstrapv1.MembersDigest(members)), c.Name)
		}
	}
	f.Eventually(settled, 2*patience, 50*time.Millisecond).Should(Succeed())
	p.begin()
	f.Eventually(func() int { return len(p.seen()) }, patience, 50*time.Millisecond).Should(Equal(9)) // each is observed
	before := p.seen()
	for name, target := range p.last {
		if target.Host.Role == spec.RoleLoadBalancer {
			f.Expect(target.MembersWith(spec.RoleControlPlane)).To(HaveLen(3), name)
		}
		if target.Host.Role == spec.RoleControlPlane {
			f.Expect(target.EtcdMembers()).To(HaveLen(3), name)
		}
	}
	said := f.clusterConfig(f).Spec

	t.Log("all objects lose their statuses")
	f.pause(true)
	f.Eventually(func(g Gomega) {
		for _, c := range f.configs() {
			g.Expect(conditions.IsTrue(&c, clusterv1.PausedCondition)).To(BeTrue())
		}
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.strip(&bootstrapv1.KubexmConfigList{}, &controlplanev1.KubexmControlPlaneList{},
		&infrav1.KubexmHostList{}, &infrav1.KubexmMachineList{},
		&infrav1.KubexmClusterList{}, &clusterv1.MachineList{}, &clusterv1.ClusterList{})
	p.begin()
	f.pause(false)
	f.Eventually(settled, 2*patience, 50*time.Millisecond).Should(Succeed())
	f.Eventually(func() int { return len(p.seen()) }, patience, 50*time.Millisecond).Should(Equal(9))
	f.Expect(p.seen()).To(Equal(before), "what hosts were planned for, each host's targets in order")
	f.Expect(f.clusterConfig(f).Spec).To(Equal(said))
}

// TestHostsThatNobodyHasChosen: who may create KubexmConfigs gets no etcd member, and no host, by that alone.
func TestHostsThatNobodyHasChosen(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	free := ""
	list := &infrav1.KubexmHostList{}
	f.Expect(f.api.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	for _, h := range list.Items {
		if h.Spec.ClaimRef.Name == "" {
			free = h.Name
		}
	}
	of := func(name string) *bootstrapv1.KubexmConfig {
		return &bootstrapv1.KubexmConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}},
			Spec:       bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: free, Role: spec.RoleEtcd}},
		}
	}
	f.Expect(f.api.Create(t.Context(), of("mine"))).To(MatchError(ContainSubstring("are chosen in a KubexmControlPlane")))

	t.Log("one that says of itself that it is another control plane's gets past the webhook, and no further")
	other := &controlplanev1.KubexmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: controlplanev1.KubexmControlPlaneSpec{Version: version},
	}
	other.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "any",
	}
	f.create(other)
	forged := of("forged")
	forged.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubexmControlPlane", Name: "other", UID: other.UID, Controller: ptr.To(true),
	}}
	f.Expect(f.api.Create(t.Context(), forged)).To(Succeed())
	refused := func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(forged), forged)).To(Succeed())
		g.Expect(conditions.GetReason(forged, bootstrapv1.HostConvergedCondition)).To(Equal(bootstrapv1.NotMemberReason))
		g.Expect(conditions.GetMessage(forged, bootstrapv1.HostConvergedCondition)).To(ContainSubstring("choose it in the KubexmControlPlane"))
		for _, m := range f.clusterConfig(g).Spec.Members {
			g.Expect(m.Name).NotTo(Equal(free))
		}
		h := &infrav1.KubexmHost{}
		g.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: free}, h)).To(Succeed())
		g.Expect(h.Spec.ClaimRef.Name).To(BeEmpty())
	}
	f.Eventually(refused, patience, 50*time.Millisecond).Should(Succeed())
	f.Consistently(refused, time.Second, 50*time.Millisecond).Should(Succeed())
	f.Expect(f.used()).To(HaveLen(2))
}

// TestAnotherProvidersControlPlane: workers of a Cluster whose control plane is none of ours follow what a user writes.
func TestAnotherProvidersControlPlane(t *testing.T) {
	t.Parallel() // most of it is waiting
	p := &planned{}
	p.begin()
	f := newFleetWith(t, 1, p.plan)
	defer f.explain()
	f.foreign, f.endpoint = true, "10.1.0.200"
	f.declare()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	f.Expect(err).NotTo(HaveOccurred())
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: capisecret.Name("prod", capisecret.ClusterCA), Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"tls.crt": ca.Cert, "tls.key": ca.Key.Reveal()},
	})
	f.Eventually(func(g Gomega) {
		config, _ := f.worker(g)
		message := conditions.GetMessage(config, bootstrapv1.HostConvergedCondition)
		g.Expect(message).To(And(ContainSubstring("KubexmClusterConfig prod does not exist yet"), ContainSubstring("create it")))
	}, patience, 50*time.Millisecond).Should(Succeed())

	t.Log("a user writes what hosts share")
	f.create(&bootstrapv1.KubexmClusterConfig{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: bootstrapv1.KubexmClusterConfigSpec{
		Version: version, ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.1.0.200", Port: 6443},
		Cluster: spec.Cluster{LoadBalancer: spec.LoadBalancer{Type: spec.LoadBalancerNodeLocal}},
		Members: []bootstrapv1.ClusterMember{{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.201", Phase: bootstrapv1.MemberServing}},
	}})
	f.Eventually(f.used, patience, 50*time.Millisecond).Should(HaveLen(1))
	p.mu.Lock()
	defer p.mu.Unlock()
	target := p.last["host1"]
	f.Expect(target.Members).To(Equal([]spec.Member{{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.201"}}))
	f.Expect(target.Cluster.ControlPlaneEndpoint.Address).To(Equal("10.1.0.200"))
}
