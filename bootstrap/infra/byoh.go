// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var (
	byoMachineKind = schema.GroupKind{Group: infrastructureGroup, Kind: "ByoMachine"}
	byoHostKind    = schema.GroupKind{Group: infrastructureGroup, Kind: "ByoHost"}
)

const (
	// byoMachineLabel on a ByoHost names the ByoMachine that has it, <namespace>.<name>.
	byoMachineLabel = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name"
	// byoEndpointAnnotation on a ByoHost is the address of the control plane, which kube-vip may have put on one of its interfaces.
	byoEndpointAnnotation = "byoh.infrastructure.cluster.x-k8s.io/endpointip"
	// byoCleanupAnnotation on a ByoHost means that its ByoMachine is deleted, and that its agent cleans it up.
	byoCleanupAnnotation = "byoh.infrastructure.cluster.x-k8s.io/unregistering"
	// byoBootstrapped is the ByoHost's condition by which its agent says that it has run the bootstrap data.
	byoBootstrapped = "K8sNodeBootstrapSucceeded"
	// byoInstalled is the one of an agent that installs Kubernetes itself, which it does, or waits to do, before it runs the data.
	byoInstalled = "K8sComponentsInstallationSucceeded"
	// byoHostReady is the ByoMachine's condition that says why it has no host.
	byoHostReady = "BYOHostReady"

	// nodeJoinedAnnotation on a ByoMachine names its Node, which has registered: it is how the ByoMachine is touched.
	nodeJoinedAnnotation = "bootstrap.cluster.x-k8s.io/node-joined"
)

// byoh is Bring Your Own Host: machines that an agent registers as ByoHosts. It finds the Node by the ByoHost's name, and gives it its
// provider ID itself: it refuses a Node that has another.
type byoh struct {
	foreign
	client client.Client
}

type byoHost struct {
	Status struct {
		MachineRef reference     `json:"machineRef"`
		Conditions conditionList `json:"conditions"`
		Network    []struct {
			IPAddrs   []string `json:"ipAddrs"` // 10.0.0.5/24
			IsDefault bool     `json:"isDefault"`
		} `json:"network"`
	} `json:"status"`
}

// Host is the ByoHost that the ByoMachine has, when its agent has run the bootstrap data. That may be said still of the data of the host's
// last Machine, and not any more of a host that leaves and whose status was lost: that it was ours, the host itself shows.
func (b *byoh) Host(ctx context.Context, s Subject) (*Host, error) {
	machine, err := b.machine(ctx, s)
	if err != nil {
		return nil, err
	}
	object, err := b.attached(ctx, machine)
	if err != nil {
		return nil, err
	}
	h, err := decode[byoHost](object)
	if err != nil {
		return nil, err
	}
	if s.Machine.DeletionTimestamp.IsZero() && !h.Status.Conditions.isTrue(byoBootstrapped) {
		return nil, &HostPending{Message: fmt.Sprintf("the ByoHost %s has not run the bootstrap data yet", object.GetName()) +
			paused(object, clusterv1.PausedAnnotation) + h.Status.Conditions.complaint(byoBootstrapped) +
			h.Status.Conditions.complaint(byoInstalled)}
	}
	ofDefault, others := h.addresses(object.GetAnnotations()[byoEndpointAnnotation])
	found := candidates(ofDefault, others)
	if len(found) == 0 {
		return nil, &HostPending{Message: fmt.Sprintf("the ByoHost %s has no address in status.network at which it can be reached: its agent "+
			"writes them when it starts", object.GetName())}
	}
	return &Host{
		Host: spec.Host{
			Name: object.GetName(), Address: found[0], InternalAddresses: internal(slices.Concat(ofDefault, others)),
		},
		Access: s.Config.Spec.Access, Candidates: found,
	}, nil
}

// attached is the one ByoHost of a ByoMachine. Only those of the same namespace count: whoever may label a ByoHost says where we
// log in.
func (b *byoh) attached(ctx context.Context, machine *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	key := client.ObjectKeyFromObject(machine)
	kind := machine.GroupVersionKind().GroupVersion().WithKind(byoHostKind.Kind)
	labelled, err := b.list(ctx, kind, key.Namespace, client.MatchingLabels{byoMachineLabel: key.Namespace + "." + key.Name})
	if err != nil {
		return nil, fmt.Errorf("list the ByoHosts of the ByoMachine %s: %w", key.Name, err)
	}
	var own []*unstructured.Unstructured
	for i := range labelled {
		h, err := decode[byoHost](&labelled[i])
		if err != nil {
			return nil, err
		}
		_, leaves := labelled[i].GetAnnotations()[byoCleanupAnnotation]
		if ref := &h.Status.MachineRef; !leaves && (*ref == (reference{}) || ref.key(key.Namespace) == key) {
			own = append(own, &labelled[i])
		}
	}
	switch {
	case len(own) == 1:
		return own[0], nil
	case len(own) > 1:
		return nil, &HostPending{Message: fmt.Sprintf("the ByoHosts %s and %s are both attached to the ByoMachine %s: take the label %s off "+
			"all but one", own[0].GetName(), own[1].GetName(), key.Name, byoMachineLabel)}
	}
	m, err := decode[contractMachine](machine)
	if err != nil {
		return nil, err
	}
	if m.Spec.ProviderID != "" {
		return nil, &HostGone{Message: fmt.Sprintf("the ByoMachine %s had the ByoHost of %s, and none is attached to it any more",
			key.Name, said(m.Spec.ProviderID))}
	}
	return nil, &HostPending{Message: fmt.Sprintf("no ByoHost in the namespace %s is attached to the ByoMachine %s yet", key.Namespace, key.Name) +
		m.Status.Conditions.complaint(byoHostReady, clusterv1.ReadyCondition)}
}

// addresses are those of the interface with the default route, and those of all others. The control plane's is left out where it seems to
// move from host to host (it was added to an interface alone, without a network), unless the host has no other: then it is its own.
func (h *byoHost) addresses(endpoint string) (ofDefault, others []string) {
	collect := func(leaveOut func(string) bool) {
		ofDefault, others = nil, nil
		for _, n := range h.Status.Network {
			own := slices.DeleteFunc(slices.Clone(n.IPAddrs), leaveOut)
			if n.IsDefault {
				ofDefault = append(ofDefault, own...)
			} else {
				others = append(others, own...)
			}
		}
	}
	shared, notAddress := netip.ParseAddr(endpoint)
	collect(func(a string) bool {
		p, notPrefix := netip.ParsePrefix(a)
		return notAddress == nil && notPrefix == nil && p.IsSingleIP() && p.Addr() == shared
	})
	if len(usable(ofDefault)) == 0 && len(usable(others)) == 0 {
		collect(func(string) bool { return false })
	}
	return ofDefault, others
}

// Refuses is that the agent takes everything for cloud-config, and skips what it does not know without a word.
func (b *byoh) Refuses(format bootstrapv1.BootstrapFormat) string {
	if format.OrDefault() == bootstrapv1.CloudConfigFormat {
		return ""
	}
	return "the agents of ByoHosts run cloud-config alone: remove it"
}

// Reset is Always: the host goes back to the pool, and its agent cleans up only what it has installed itself.
func (b *byoh) Reset() spec.ResetPolicy { return spec.ResetAlways }

// Joined touches the ByoMachine, once for a Node. Its controller fails while the Node is missing, and tries again later and later.
func (b *byoh) Joined(ctx context.Context, s Subject) error {
	object, err := b.machine(ctx, s)
	if err != nil {
		if isLost(err) {
			return nil
		}
		return err
	}
	machine, err := decode[contractMachine](object)
	if err != nil {
		return err
	}
	node := s.Config.Status.Host.Name
	if told, touched := object.GetAnnotations()[nodeJoinedAnnotation]; touched && told == node || machine.Spec.ProviderID != "" {
		return nil
	}
	before := object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[nodeJoinedAnnotation] = node
	object.SetAnnotations(annotations)
	if err := b.client.Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the ByoMachine %s: %w", object.GetName(), err)
	}
	return nil
}
