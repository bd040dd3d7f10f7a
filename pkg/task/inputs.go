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
)

// Inputs is all that tasks plan from: the target, what is known of the host, and the artifacts that it will need. It is
// made once per host, so that every look-up that can fail has failed before a task is written down.
type Inputs struct {
	Target spec.Target
	System host.System

	containerd, cni, kubernetes []step.Artifact
	images                      []step.Image
	chart                       step.Artifact
	refs                        artifact.Images
	files                       []step.Step
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
	arch := sys.Arch
	for _, want := range []struct {
		into      *[]step.Artifact
		component string
		programs  []string
	}{
		{&in.containerd, "containerd", nil},
		{&in.containerd, "runc", nil},
		{&in.cni, "cni-plugins", nil},
		{&in.kubernetes, "kubernetes", []string{"kubelet", "kubeadm", "kubectl"}},
	} {
		files, err := b.Binaries(want.component, "", arch)
		if err != nil {
			return in, err
		}
		for _, f := range files {
			if want.programs != nil && !slices.Contains(want.programs, f.Name) {
				continue
			}
			a, err := step.ArtifactOf(b, f)
			if err != nil {
				return in, err
			}
			*want.into = append(*want.into, a)
		}
	}
	if err := in.lookUpImages(b, arch); err != nil {
		return in, err
	}
	chart, err := b.Chart("flannel")
	if err != nil {
		return in, err
	}
	if in.chart, err = step.ArtifactOf(b, chart); err != nil {
		return in, err
	}
	return in, in.readFiles()
}

// imagesOf names the images that a role needs before anything can be pulled.
func imagesOf(r spec.Role) []string {
	names := []string{"pause", "kube-proxy", "coredns", "flannel", "flannel-cni-plugin"}
	if r == spec.RoleControlPlane {
		names = append(names, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	}
	return names
}

func (in *Inputs) lookUpImages(b *artifact.Bundle, arch string) error {
	in.refs = b.Images(arch)
	refs, err := in.refs.Refs(imagesOf(in.Target.Host.Role)...)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		a, err := b.ImageArchive(arch, ref)
		if err != nil {
			return err
		}
		in.images = append(in.images, step.Image{Ref: ref, Digest: a.Images[0].Digest, Size: a.Size})
	}
	return nil
}

// Facts are those of a host that a plan for it depends on.
type Facts struct {
	Arch, Container string
	CgroupVersion   int32
	Forwards        string
	MayTuneLimits   bool
}

// Relevant picks them.
func Relevant(s host.System) Facts {
	return Facts{
		Arch: s.Arch, Container: s.Container, CgroupVersion: s.CgroupVersion,
		Forwards:      strings.Join(forwards(s), " ") + "/" + strings.Join(s.Nameservers, " "),
		MayTuneLimits: !slices.Contains(s.MissingCapabilities, "sys_resource"),
	}
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
	// initialized: kubeadm has started the control plane on its first host.
	initialized = graph.Output[string]{Name: "control-plane-initialized"}
	// apiAnswers: the API server is ready.
	apiAnswers = graph.Output[string]{Name: "api-answers"}
	// bootstrapToken is a token that a kubelet may join with.
	bootstrapToken = graph.Output[string]{Name: "bootstrap-token"}
	// networkDeployed: the network add-on is in the cluster.
	networkDeployed = graph.Output[string]{Name: "network-deployed"}
)

// joined: the host's kubelet is in the cluster.
func joined(name string) graph.Output[string] { return graph.Output[string]{Name: "joined/" + name} }

// first reports whether the host is the one on which the control plane begins.
func (in Inputs) first() bool { return in.Target.Host.Role == spec.RoleControlPlane }
