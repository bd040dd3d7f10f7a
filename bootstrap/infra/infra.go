// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package infra asks the infrastructure which host a Machine has: where it is, since when it may be dialled, what its
// Node is called. There is a file for each kind of infrastructure.
//
// Adapters read the infrastructure's own objects. Cluster API copies addresses to the Machine only when the
// infrastructure is provisioned, and some are not before the Node has registered.
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
	// Name is the host's name, and its Node's.
	Name string
	// ProviderID is what the kubelet registers the Node with.
	ProviderID string
	// Address is where the host is dialled, Port 0 is 22. Internal are the addresses at which other hosts reach it, the Node's
	// first; none means Address.
	Address  string
	Port     int32
	Internal []string
	// Arch is empty where the host itself is to say it.
	Arch spec.Arch
	// User logs in with what is in the Secret called Credentials, if the host shows one of HostKeys.
	User        string
	Credentials string
	HostKeys    []string
}

// Contact is what came of dialling a host.
type Contact struct {
	// Err is why the host could not be reached or entered, nil if it was.
	Err error
	// Reason is that of the condition HostReachable of the KubexmConfig.
	Reason string
	// System is what the host said of itself, if it said anything.
	System *host.System
}

// Cleanness is in what state a Machine leaves its host.
type Cleanness struct {
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
	// Host is the Machine's host. The error is a *NotYet while nobody may touch one, and a *Lost when it is out of reach for
	// good.
	Host(ctx context.Context, s Subject) (*Host, error)
	// Door says what must be done on the host, by the bootstrap data, before it can be dialled; nil if nothing must.
	Door(s Subject) *Door
	// Met records what came of dialling the host, where the infrastructure wants to know.
	Met(ctx context.Context, s Subject, c Contact) error
	// Left records in what state the host is left, where the infrastructure wants to know. It is called before the
	// infrastructure takes the host back.
	Left(ctx context.Context, s Subject, c Cleanness) error
}

// Door is who must be able to log in.
type Door struct {
	User        string
	Credentials string
}

// NotYet says that the Machine has no host that may be touched yet.
type NotYet struct{ Message string }

// Error is the message.
func (n *NotYet) Error() string { return n.Message }

// Lost says that the Machine's host is out of reach for good.
type Lost struct{ Message string }

// Error is the message.
func (l *Lost) Error() string { return l.Message }

func isLost(err error) bool {
	var lost *Lost
	return errors.As(err, &lost)
}

// Of is the adapter for a Machine's infrastructure.
func Of(machine *clusterv1.Machine, c client.Client, live client.Reader) Adapter {
	if machine.Spec.InfrastructureRef.GroupKind() == machineKind.GroupKind() {
		return &kubexm{client: c, live: live}
	}
	return &generic{live: live}
}

func describe(ref clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("%s %s", ref.Kind, ref.Name)
}

// first is the first address of a kind, or "".
func first(addresses clusterv1.MachineAddresses, kind clusterv1.MachineAddressType) string {
	for _, a := range addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

// Keys of a Secret with credentials.
const (
	KeyPrivateKey   = corev1.SSHAuthPrivateKey
	KeyPassphrase   = "passphrase"
	KeyPassword     = "password"
	KeySudoPassword = "sudo-password"
)
