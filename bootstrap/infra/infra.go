// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package infra asks the infrastructure which host a Machine has: where it is, since when it may be dialled, what its
// Node is called. There is a file for each kind of infrastructure.
//
// Adapters read the infrastructure's own objects. Cluster API copies addresses to the Machine only when the
// infrastructure is provisioned, and some are not before the Node has registered. What an adapter reads of another
// provider is checked here: that it is this Machine's, that addresses are addresses, and how much of it there is.
package infra

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Host is a Machine's host.
type Host struct {
	// Host has no role, which is not the infrastructure's to say. Its Name is the Node's, its ProviderID "" where the infrastructure gives
	// the Node one itself, its Address the first candidate. Its internal addresses are what the infrastructure believes, in its order.
	spec.Host
	// Access is how it is dialled at its Address, as far as that is declared: what is unset, the bootstrap data brings to the host.
	Access spec.Access
	// BMC is the machine's management controller, the zero value where nobody has declared one.
	BMC spec.BMC
	// Maintenance is why nothing is to be run on it now, "" if something may.
	Maintenance string
	// Candidates are the addresses at which the host may be, the likeliest first, IPv4 before IPv6 among equals: none is of a loopback or a
	// link, none is there twice, and there are at most 16. They are nil where Address is certain.
	Candidates []string
	// CallsHome is as whose the host connects to the manager, "" where it is dialled.
	CallsHome string
	// NodeLabels are those by which the infrastructure finds the Node.
	NodeLabels map[string]string
}

// Reachability is what came of dialling a host.
type Reachability struct {
	// Err is why the host could not be reached or entered, nil if it was.
	Err error
	// Reason is that of the condition HostReachable of the KubexmConfig.
	Reason string
	// System is what the host said of itself, if it said anything.
	System *host.System
}

// ResetResult is in what state a Machine leaves its host.
type ResetResult struct {
	// Err is why the host could not be reset, nil if it was.
	Err error
}

// Subject is whose host it is about. Machine is nil where the KubexmConfig names its host itself.
type Subject struct {
	Machine *clusterv1.Machine
	Config  *bootstrapv1.KubexmConfig
}

// Adapter answers for one kind of infrastructure.
type Adapter interface {
	// Host is the Machine's host. The error is a *HostPending while nobody may touch one, and a *HostGone when it is out of reach for
	// good.
	Host(ctx context.Context, s Subject) (*Host, error)
	// HasDoor reports whether it is the bootstrap data that lets us in.
	HasDoor() bool
	// Refuses is why hosts would not run bootstrap data in this format, "" if they may.
	Refuses(format bootstrapv1.BootstrapFormat) string
	// Reset is whether the host is reset when it leaves, where nobody says so.
	Reset() spec.ResetPolicy
	// ReportReachability records what came of dialling the host, where the infrastructure wants to know.
	ReportReachability(ctx context.Context, s Subject, c Reachability) error
	// ReportReset records in what state the host is left, where the infrastructure wants to know. It is called before the
	// infrastructure takes the host back.
	ReportReset(ctx context.Context, s Subject, c ResetResult) error
	// Joined notifies the infrastructure that the Node has registered, where it would only find that out after a while.
	Joined(ctx context.Context, s Subject) error
}

// HostPending says that the Machine has no host that may be touched yet. What ends that is a change of an object of a kind that is Watched.
type HostPending struct {
	Message string
	// Changed is whether that change has come already, while it was read.
	Changed bool
}

// Error is the message.
func (n *HostPending) Error() string { return n.Message }

// HostGone says that the Machine's host is out of reach for good.
type HostGone struct{ Message string }

// Error is the message.
func (l *HostGone) Error() string { return l.Message }

func isLost(err error) bool {
	var lost *HostGone
	return errors.As(err, &lost)
}

// Of is the adapter for a Machine's infrastructure.
func Of(machine *clusterv1.Machine, c client.Client, live client.Reader) Adapter {
	other := foreign{live: live}
	switch machine.Spec.InfrastructureRef.GroupKind() {
	case machineKind.GroupKind():
		return &kubexm{client: c, live: live}
	case byoMachineKind:
		return &byoh{foreign: other, client: c}
	case metal3MachineKind:
		return &metal3{foreign: other}
	case devMachineKind:
		return &dev{foreign: other}
	}
	return &generic{foreign: other}
}

func describe(ref clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("%s %s", ref.Kind, ref.Name)
}

// Keys of a Secret with credentials.
const (
	KeyPrivateKey   = corev1.SSHAuthPrivateKey
	KeyPassphrase   = "passphrase"
	KeyPassword     = "password"
	KeySudoPassword = "sudo-password"
	// KeyAgent is in a Secret without any of them: the kubexm command logs in with what OpenSSH has on the machine where it runs, and only
	// while it does. Its value is a sentence for a person. To a manager it is no credential.
	KeyAgent = "ssh-agent"
)
