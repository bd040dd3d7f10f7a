// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects turns a config file into the objects that a user of a management cluster would write: pure, so that what
// a config means in objects can be read in a golden file.
//
//	hosts        KubexmHost and a Secret with its credentials, for each, and one with its jump host's if it has one
//	roleGroups   KubexmControlPlane with its KubexmMachineTemplate; a pool of workers, those with the same labels, is a
//	             MachineDeployment with its KubexmMachineTemplate and KubexmConfigTemplate; hosts of etcd and of load balancers
//	             are named in KubexmControlPlane.spec.cluster
//	the rest     Cluster, KubexmCluster, KubexmControlPlane.spec.cluster, Secrets with the certificate authorities and with
//	             what an external etcd is reached with
package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Labels of KubexmHosts, by which the templates select them. PoolLabel is "control-plane", "etcd", "loadbalancer", "workers"
// or, for workers with labels of their own, "workers-" and a digest of these.
const (
	ClusterLabel = "infrastructure.cluster.x-k8s.io/cluster"
	PoolLabel    = "infrastructure.cluster.x-k8s.io/pool"

	controlPlanePool = "control-plane"
	etcdPool         = "etcd"
	balancerPool     = "loadbalancer"
	workerPool       = "workers"
)

// Inputs are what a config file does not say itself.
type Inputs struct {
	Namespace string
	// Endpoint is the address or the name at which the API server is reached.
	Endpoint string
	// Secrets are those that the config names, by their names and keys.
	Secrets map[string]map[string]secret.Value
	// Authorities become the cluster's Secrets of Cluster API.
	Authorities pki.Authorities
	// HostKey and PrivateKey are those of a host, and the others those of its jump host, nil where the objects are not to be applied, or
	// no host has one. Where there is neither a private key nor a password, the command logs in with what OpenSSH has here.
	HostKey, JumpHostKey       func(host string) string
	PrivateKey, JumpPrivateKey func(host string) secret.Value
	// Replace has control plane Machines replaced where their version changes. Else their hosts follow where they are.
	Replace bool
}

// Of are the objects for a config, in the order in which they are to be applied. The config is valid and has its defaults.
func Of(c *config.Cluster, in Inputs) []client.Object {
	m := &maker{Cluster: c, Inputs: in}
	if m.HostKey == nil {
		m.HostKey, m.PrivateKey = func(string) string { return "" }, func(string) secret.Value { return secret.Value{} }
	}
	if m.JumpHostKey == nil {
		m.JumpHostKey, m.JumpPrivateKey = func(string) string { return "" }, func(string) secret.Value { return secret.Value{} }
	}
	all := slices.Concat(m.authorities(), m.secrets(), AccessOf(c, m.Inputs))
	all = append(all, m.infraCluster(), m.cluster(), m.machineTemplate(controlPlanePool), m.controlPlane())
	for _, p := range pools(c) {
		all = append(all, m.machineTemplate(p.name), m.configTemplate(p), m.machineDeployment(p))
	}
	return all
}

// AccessOf are those of Of by which hosts are reached. The inputs have all that concerns that.
func AccessOf(c *config.Cluster, in Inputs) []client.Object {
	m := &maker{Cluster: c, Inputs: in}
	var all []client.Object
	for i := range c.Hosts {
		h := &c.Hosts[i]
		all = append(all, m.credentials(credentialsOf(h), h.User, m.PrivateKey(h.Name), h.Password, true))
		if j := h.ProxyJump; !j.IsZero() {
			all = append(all, m.credentials(jumpCredentialsOf(h), j.User, m.JumpPrivateKey(h.Name), j.Password, false))
		}
		all = append(all, m.host(h))
	}
	return all
}

type maker struct {
	*config.Cluster
	Inputs
}

func (m *maker) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: name}
}

// moving has an object that nobody owns go along when clusterctl moves the cluster.
func moving(meta metav1.ObjectMeta) metav1.ObjectMeta {
	metav1.SetMetaDataLabel(&meta, clusterctlv1.ClusterctlMoveLabel, "")
	return meta
}

// ofCluster is the metadata of an object that belongs to the cluster.
func (m *maker) ofCluster(name string) metav1.ObjectMeta {
	meta := m.meta(name)
	meta.Labels = map[string]string{clusterv1.ClusterNameLabel: m.Name}
	return meta
}

// scoped is the name of one of the cluster's objects.
func (m *maker) scoped(name string) string { return m.Name + "-" + name }

// authorities are the Secrets that Cluster API knows a cluster's certificate authorities by: see the contract of control
// plane providers, "Cluster certificates".
func (m *maker) authorities() []client.Object {
	return AuthoritySecrets(m.Namespace, m.Name, m.Authorities)
}

// AuthoritySecrets are the Secrets with a cluster's key pairs, and with its encryption key if it has one. Of that clusterctl does not know
// by its name whose it is.
func AuthoritySecrets(namespace, cluster string, pairs pki.Authorities) []client.Object {
	m := &maker{Cluster: &config.Cluster{Name: cluster}, Inputs: Inputs{Namespace: namespace}}
	var all []client.Object
	for _, name := range pki.Names() {
		pair, _ := pairs.Get(name)
		all = append(all, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: m.ofCluster(m.scoped(name)),
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key.Reveal()},
		})
	}
	if key := pairs.Encryption.Key; !key.IsZero() {
		all = append(all, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: moving(m.ofCluster(m.scoped(pki.EncryptionName))),
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{pki.EncryptionKeyName: key.Reveal()},
		})
	}
	return all
}

// secrets are those that the cluster refers to.
func (m *maker) secrets() []client.Object {
	var all []client.Object
	for _, name := range slices.Sorted(maps.Keys(m.Secrets)) {
		data, meta := map[string][]byte{}, moving(m.ofCluster(name))
		meta.Labels[bootstrapv1.ForHostsLabel] = bootstrapv1.ForHostsContent
		for key, value := range m.Secrets[name] {
			data[key] = value.Reveal()
		}
		all = append(all, &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: data,
		})
	}
	return all
}

func credentialsOf(h *config.Host) string { return h.Name + "-ssh" }

// jumpCredentialsOf is no host's credentialsOf, whatever hosts are called.
func jumpCredentialsOf(h *config.Host) string { return h.Name + "-ssh-jump" }

// credentials are how a user is known to a host or a jump host.
func (m *maker) credentials(name, user string, key, password secret.Value, sudo bool) client.Object {
	meta := moving(m.meta(name))
	meta.Labels[bootstrapv1.ForHostsLabel] = bootstrapv1.ForHostsCredentials
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta,
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{},
	}
	if !key.IsZero() {
		s.Data[infra.KeyPrivateKey] = key.Reveal()
	}
	if !password.IsZero() {
		s.Data[infra.KeyPassword] = password.Reveal()
		if sudo {
			s.Data[infra.KeySudoPassword] = password.Reveal()
		}
	}
	if len(s.Data) == 0 {
		s.Data[infra.KeyAgent] = fmt.Appendf(nil, "%s is logged in as by the kubexm command, with the SSH agent or the keys of the user who runs it. "+
			"Elsewhere, set %s or %s here.", user, infra.KeyPrivateKey, infra.KeyPassword)
	}
	return s
}

func (m *maker) host(h *config.Host) client.Object {
	meta := m.meta(h.Name)
	meta.Labels = map[string]string{ClusterLabel: m.Name, PoolLabel: poolOf(h)}
	return &infrav1.KubexmHost{
		TypeMeta: infraType("KubexmHost"), ObjectMeta: meta,
		Spec: infrav1.KubexmHostSpec{
			Address: h.Address, InternalAddresses: h.InternalAddresses, Arch: h.Arch,
			Access: spec.Access{
				User: h.User, Port: h.Port, HostKeys: spec.HostKeys{Pinned: []string{m.HostKey(h.Name)}},
				Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: credentialsOf(h)}},
				ProxyJump:   h.ProxyJump.Spec(jumpCredentialsOf(h), m.JumpHostKey(h.Name)),
			},
		},
	}
}

func (m *maker) infraCluster() client.Object {
	return &infrav1.KubexmCluster{
		TypeMeta: infraType("KubexmCluster"), ObjectMeta: m.meta(m.Name),
	}
}

func (m *maker) cluster() client.Object {
	return &clusterv1.Cluster{
		TypeMeta: coreType("Cluster"), ObjectMeta: m.meta(m.Name),
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: m.Spec.Network.PodCIDRs},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: m.Spec.Network.ServiceCIDRs},
				ServiceDomain: m.Spec.DNS.ClusterDomain,
			},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: m.Name,
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: m.Name,
			},
		},
	}
}

func (m *maker) machineTemplate(pool string) client.Object {
	return &infrav1.KubexmMachineTemplate{
		TypeMeta: infraType("KubexmMachineTemplate"), ObjectMeta: m.meta(m.scoped(pool)),
		Spec: infrav1.KubexmMachineTemplateSpec{Template: infrav1.KubexmMachineTemplateResource{Spec: infrav1.KubexmMachineSpec{
			HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{ClusterLabel: m.Name, PoolLabel: pool}},
		}}},
	}
}

func (m *maker) templateRef(pool string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: m.scoped(pool),
	}
}

func (m *maker) controlPlane() client.Object {
	shared := *m.Spec.DeepCopy()
	// The command keeps to the windows, and who calls it has agreed. How many are disrupted at once is for the reconcilers to keep to.
	shared.Disruption = spec.Disruption{MaxUnavailable: shared.Disruption.MaxUnavailable}
	// The endpoint is the address, or the name where DNS servers know it. The name that is in the hosts' own /etc/hosts is beside an
	// address.
	endpoint := &shared.ControlPlaneEndpoint
	endpoint.Port = 0
	if endpoint.Address == m.Endpoint {
		endpoint.Address = ""
	}
	if endpoint.Domain == m.Endpoint {
		endpoint.Domain = ""
	}
	replicas := int32(0)
	var labels map[string]string
	for i := range m.Hosts {
		if poolOf(&m.Hosts[i]) == controlPlanePool {
			replicas++
			labels = m.Hosts[i].Labels
		}
	}
	return &controlplanev1.KubexmControlPlane{
		TypeMeta:   metav1.TypeMeta{APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubexmControlPlane"},
		ObjectMeta: m.meta(m.Name),
		Spec: controlplanev1.KubexmControlPlaneSpec{
			Replicas: ptr.To(replicas), Version: m.KubernetesVersion, Cluster: shared,
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: m.Endpoint, Port: m.Spec.ControlPlaneEndpoint.Port},
			Node:                 bootstrapv1.KubexmConfigSpec{Node: spec.Node{NodeLabels: labels}},
			Rollout:              controlplanev1.Rollout{Strategy: m.strategy(replicas)},
			MachineTemplate: controlplanev1.MachineTemplate{
				Spec: controlplanev1.MachineTemplateSpec{InfrastructureRef: m.templateRef(controlPlanePool)},
			},
		},
	}
}

// strategy keeps to the hosts that there are.
func (m *maker) strategy(replicas int32) controlplanev1.RolloutStrategy {
	if !m.Replace {
		return controlplanev1.RolloutStrategy{Type: controlplanev1.InPlaceStrategy}
	}
	s := controlplanev1.RolloutStrategy{Type: controlplanev1.RollingUpdateStrategy}
	if replicas >= fewestToDeleteFirst {
		s.RollingUpdate.MaxSurge = ptr.To[int32](0)
	}
	return s
}

// fewestToDeleteFirst are the control plane hosts of which one may go before it comes back: two of three are a quorum still.
const fewestToDeleteFirst = 3

func (m *maker) configTemplate(p pool) client.Object {
	return &bootstrapv1.KubexmConfigTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubexmConfigTemplate"},
		ObjectMeta: m.meta(m.scoped(p.name)),
		Spec: bootstrapv1.KubexmConfigTemplateSpec{Template: bootstrapv1.KubexmConfigTemplateResource{
			Spec: bootstrapv1.KubexmConfigSpec{Node: spec.Node{NodeLabels: p.labels}},
		}},
	}
}

func (m *maker) machineDeployment(p pool) client.Object {
	name := m.scoped(p.name)
	return &clusterv1.MachineDeployment{
		TypeMeta: coreType("MachineDeployment"), ObjectMeta: m.meta(name),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: m.Name, Replicas: ptr.To(p.replicas),
			// There is no spare host to surge to.
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				},
			}},
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: m.Name, Version: m.KubernetesVersion,
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: name,
				}},
				InfrastructureRef: m.templateRef(p.name),
			}},
		},
	}
}

func infraType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: infrav1.GroupVersion.String(), Kind: kind}
}

func coreType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: kind}
}

// pool are workers with the same labels.
type pool struct {
	name     string
	labels   map[string]string
	replicas int32
}

// pools are the config's, in the order of their first hosts.
func pools(c *config.Cluster) []pool {
	var all []pool
	for i := range c.Hosts {
		if c.Hosts[i].Spec().Role != spec.RoleWorker {
			continue
		}
		name := poolOf(&c.Hosts[i])
		at := slices.IndexFunc(all, func(p pool) bool { return p.name == name })
		if at < 0 {
			at = len(all)
			all = append(all, pool{name: name, labels: c.Hosts[i].Labels})
		}
		all[at].replicas++
	}
	return all
}

// poolOf is the pool that a host is in. Templates cannot be changed, so workers whose labels change go to another pool.
func poolOf(h *config.Host) string {
	switch role := h.Spec().Role; role {
	case spec.RoleControlPlane:
		return controlPlanePool
	case spec.RoleEtcd:
		return etcdPool
	case spec.RoleLoadBalancer:
		return balancerPool
	case spec.RoleWorker:
	}
	if len(h.Labels) == 0 {
		return workerPool
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(h.Labels)) {
		fmt.Fprintf(&text, "%s=%s\n", key, h.Labels[key])
	}
	sum := sha256.Sum256([]byte(text.String()))
	return workerPool + "-" + hex.EncodeToString(sum[:4])
}

// PoolOf is the pool that a host is in: the value of its PoolLabel.
func PoolOf(h *config.Host) string { return poolOf(h) }

// Pool is workers with the same labels, which are upgraded together.
type Pool struct {
	// Name is the value of the hosts' PoolLabel, and Deployment the name of the MachineDeployment.
	Name, Deployment string
	// Hosts are in the order of the file.
	Hosts []string
}

// Pools are a config's, in the order of their first hosts.
func Pools(c *config.Cluster) []Pool {
	m := &maker{Cluster: c}
	var all []Pool
	for _, p := range pools(c) {
		pool := Pool{Name: p.name, Deployment: m.scoped(p.name)}
		for i := range c.Hosts {
			if poolOf(&c.Hosts[i]) == p.name {
				pool.Hosts = append(pool.Hosts, c.Hosts[i].Name)
			}
		}
		all = append(all, pool)
	}
	return all
}

// IsControlPlane reports whether a pool is the control plane's.
func IsControlPlane(pool string) bool { return pool == controlPlanePool }
