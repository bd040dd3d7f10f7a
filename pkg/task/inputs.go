// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
)

// Inputs is all that tasks plan from: the target, what is known of the host, and the artifacts that it will need. It is
// made once per host, so that every look-up that can fail has failed before a task is written down.
type Inputs struct {
	Target spec.Target
	System host.System
	// After are outputs that must be there before the host joins the control plane: of hosts in the same plan that join
	// before it. Hosts that are planned for one by one need none.
	After []string
	// AfterEtcd are outputs that must be there before the host joins etcd, or uses an etcd that runs elsewhere; see After.
	AfterEtcd []string

	containerd, cni, kubernetes, etcd []step.Artifact
	images                            []step.Image
	chart                             step.Artifact
	refs                              artifact.Images
	files                             []step.Step
	// packageFiles are the bundle's packages for the host's operating system.
	packageFiles step.PackageFiles
}

// NewInputs looks up what a host of this role needs in the bundle. Its errors name what is missing.
func NewInputs(t spec.Target, sys host.System, b *artifact.Bundle) (Inputs, error) {
	t.Default()
	in := Inputs{Target: t, System: sys}
	switch {
	case sys.Arch == "":
		return in, errors.New("its architecture is not known: observe it before it is planned for")
	case t.Cluster.ControlPlaneEndpoint.Host() == "":
		return in, errors.New("cluster.controlPlaneEndpoint: neither address nor domain is set: give the address at which the API server will be reached")
	}
	if v := b.Version("kubernetes"); v != t.KubernetesVersion {
		return in, fmt.Errorf("the bundle %s is for Kubernetes %s, not %s", b.Dir(), v, t.KubernetesVersion)
	}
	if in.isNode() && t.Cluster.Network.IsDualStack() && in.secondAddress() == "" {
		return in, fmt.Errorf("its Node needs an address of each family, and only %s is known: declare the other in internalAddresses",
			t.Host.NodeAddress())
	}
	if in.isNode() && in.isBinary() {
		if err := kubernetes.Check(in.binaryCluster(), in.binaryNode()); err != nil {
			return in, err
		}
	}
	if err := in.lookUpPrograms(b); err != nil {
		return in, err
	}
	var err error
	if in.packageFiles, err = step.PackageFilesOf(b, Relevant(sys).System, sys.Arch); err != nil {
		return in, err
	}
	if t.Host.Role.IsNode() {
		if err := in.lookUpImages(b); err != nil {
			return in, err
		}
	}
	if t.Host.Role == spec.RoleControlPlane {
		chart, err := b.Chart("flannel")
		if err != nil {
			return in, err
		}
		if in.chart, err = step.ArtifactOf(b, chart); err != nil {
			return in, err
		}
	}
	return in, in.readFiles()
}

// lookUpPrograms finds what runs on the host outside of containers.
func (in *Inputs) lookUpPrograms(b *artifact.Bundle) error {
	for _, want := range []struct {
		into      *[]step.Artifact
		component string
		programs  []string // none means all
		wanted    bool
	}{
		{&in.containerd, "containerd", nil, in.isNode()},
		{&in.containerd, "runc", nil, in.isNode()},
		{&in.cni, "cni-plugins", nil, in.isNode()},
		{&in.kubernetes, "kubernetes", in.kubernetesPrograms(), in.isNode()},
		{&in.etcd, "etcd", in.etcdPrograms(), len(in.etcdPrograms()) > 0},
	} {
		if !want.wanted {
			continue
		}
		files, err := b.Binaries(want.component, "", in.System.Arch)
		if err != nil {
			return err
		}
		for _, f := range files {
			if want.programs != nil && !slices.Contains(want.programs, f.Name) {
				continue
			}
			a, err := step.ArtifactOf(b, f)
			if err != nil {
				return err
			}
			*want.into = append(*want.into, a)
		}
	}
	return nil
}

// secondAddress is the Node's of the other family in a dual stack cluster, "" elsewhere.
func (in Inputs) secondAddress() string {
	if addresses := in.Target.NodeAddresses(in.System.DefaultIPv6); len(addresses) > 1 {
		return addresses[1]
	}
	return ""
}

func (in Inputs) isNode() bool         { return in.Target.Host.Role.IsNode() }
func (in Inputs) isControlPlane() bool { return in.Target.Host.Role == spec.RoleControlPlane }
func (in Inputs) isBinary() bool       { return in.Target.Cluster.Kubernetes.Type == spec.KubernetesKubexm }

// runsEtcd reports whether the host has a member of etcd.
func (in Inputs) runsEtcd() bool {
	e := in.Target.Cluster.Etcd
	return in.Target.Host.Role == spec.RoleEtcd || in.isControlPlane() && e.IsStacked()
}

func (in Inputs) kubernetesPrograms() []string {
	if in.isBinary() {
		return kubernetes.ProgramNames(in.isControlPlane())
	}
	if in.isControlPlane() {
		return []string{"kubelet", "kubeadm", "kubectl"}
	}
	return []string{"kubelet", "kubeadm"}
}

// etcdPrograms are etcd where it runs as a unit, and what its members are managed with.
func (in Inputs) etcdPrograms() []string {
	switch {
	case !in.runsEtcd() && !in.isControlPlane():
		return nil
	case !in.runsEtcd():
		return []string{"etcdctl"} // to save a snapshot of an etcd that runs elsewhere
	case in.Target.Cluster.Etcd.Type == spec.EtcdKubexm:
		return []string{"etcd", "etcdctl", "etcdutl"}
	}
	return []string{"etcdctl"}
}

// imageNames are the images that the host needs before anything can be pulled.
func (in Inputs) imageNames() []string {
	names := []string{"pause", "coredns", "flannel", "flannel-cni-plugin"}
	if !in.isBinary() {
		names = append(names, "kube-proxy")
	}
	if in.isControlPlane() && !in.isBinary() {
		names = append(names, "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	}
	if in.runsEtcd() && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm {
		names = append(names, "etcd")
	}
	if e := in.Target.Cluster.ControlPlaneEndpoint; e.IsLocal() && !in.isControlPlane() {
		names = append(names, string(e.Internal))
	}
	return names
}

func (in *Inputs) lookUpImages(b *artifact.Bundle) error {
	in.refs = b.Images(in.System.Arch)
	refs, err := in.refs.Refs(in.imageNames()...)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		a, err := b.ImageArchive(in.System.Arch, ref)
		if err != nil {
			return err
		}
		image := step.Image{Ref: ref, Digest: a.Images[0].Digest, Size: a.Size}
		if ref == in.refs["kube-proxy"] {
			image.As = kubeproxy.Image
		}
		in.images = append(in.images, image)
	}
	return nil
}

// Facts are those of a host that a plan for it depends on.
type Facts struct {
	Arch, Container string
	// System is the operating system: ID/VERSION_ID.
	System string
	// Interface is that of the default route.
	Interface     string
	CgroupVersion int32
	// IPv6 is the address of the default interface.
	IPv6          string
	Forwards      string
	MayTuneLimits bool
	// TrackedConnections is how many connections the kernel is to track, or 0 in a container, where that is not ours to say.
	TrackedConnections int32
}

// Relevant picks them.
func Relevant(s host.System) Facts {
	return Facts{
		Arch: s.Arch, Container: s.Container, System: s.OSID + "/" + s.OSVersion, CgroupVersion: s.CgroupVersion, Interface: s.DefaultInterface,
		IPv6:          s.DefaultIPv6,
		Forwards:      strings.Join(forwards(s), " ") + "/" + strings.Join(s.Nameservers, " "),
		MayTuneLimits: !slices.Contains(s.MissingCapabilities, "sys_resource"), TrackedConnections: trackedConnections(s),
	}
}

// trackedConnections is kube-proxy's default: 32768 for each processor, at least 131072 and at most 1048576.
func trackedConnections(s host.System) int32 {
	if s.Container != "" {
		return 0
	}
	return min(max(32<<10*s.CPUs, 128<<10), 1<<20)
}

// forwards are the name servers of a host that pods on it can reach too.
func forwards(s host.System) []string {
	var reachable []string
	for _, n := range append(slices.Clone(s.Nameservers), s.UpstreamNameservers...) {
		if a, err := netip.ParseAddr(n); err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !slices.Contains(reachable, n) {
			reachable = append(reachable, n)
		}
	}
	return reachable
}

// ownResolv reports whether pods need another resolv.conf than the host's: it names a server on a loopback address, which
// from within a pod is the pod itself.
func (in Inputs) ownResolv() bool {
	return slices.ContainsFunc(in.System.Nameservers, func(n string) bool {
		a, err := netip.ParseAddr(n)
		return err == nil && a.IsLoopback()
	})
}

// cgroupDriver is systemd's on a machine of its own; in a container systemd's may not reach the whole hierarchy.
func (in Inputs) cgroupDriver() string {
	if in.System.Container != "" {
		return "cgroupfs"
	}
	return "systemd"
}

func (in Inputs) mayTuneLimits() bool { return Relevant(in.System).MayTuneLimits }

// The outputs by which nodes of a plan come after each other.
var (
	// initialized: the control plane has started on its first host.
	initialized = graph.Output[string]{Name: "control-plane-initialized"}
	// apiAnswers: the API server is ready.
	apiAnswers = graph.Output[string]{Name: "api-answers"}
	// bootstrapToken is a token that a kubelet may join with.
	bootstrapToken = graph.Output[string]{Name: "bootstrap-token"}
	// configUploaded: the cluster knows what joins its control plane.
	configUploaded = graph.Output[string]{Name: "kubeadm-config-uploaded"}
	// networkDeployed: the network add-on is in the cluster.
	networkDeployed = graph.Output[string]{Name: "network-deployed"}
)

// joined: the host's kubelet is in the cluster.
func joined(name string) graph.Output[string] { return graph.Output[string]{Name: "joined/" + name} }

// serving: the host's own API server is ready.
func serving(name string) graph.Output[string] { return graph.Output[string]{Name: "serving/" + name} }

// Joined is the name of the output that a host makes when it has joined.
func Joined(name string) string { return joined(name).Name }

// first reports whether the host is the one on which the control plane begins.
func (in Inputs) first() bool { return in.isControlPlane() && in.Target.Order == spec.OrderFirst }
