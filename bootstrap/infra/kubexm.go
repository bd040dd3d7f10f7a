// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var (
	machineKind = infrav1.GroupVersion.WithKind("KubexmMachine")
	hostKind    = infrav1.GroupVersion.WithKind("KubexmHost").GroupKind()
)

// kubexm is our own infrastructure: KubexmMachines that have KubexmHosts.
type kubexm struct {
	client client.Client
	live   client.Reader
}

// Host is the KubexmHost that the KubexmMachine has. It is marked as in use before the KubexmMachine names it, so from then
// on it may be touched.
func (k *kubexm) Host(ctx context.Context, s Subject) (*Host, error) {
	h, err := k.host(ctx, s)
	if err != nil {
		return nil, err
	}
	return HostOf(h), nil
}

// HostOf is what a KubexmHost declares.
func HostOf(h *infrav1.KubexmHost) *Host {
	return &Host{
		Host: spec.Host{
			Name: h.Name, ProviderID: infrav1.ProviderID(h), Address: h.Spec.Address,
			InternalAddresses: h.Spec.InternalAddresses, Arch: h.Spec.Arch,
		},
		Access: h.Spec.Access, BMC: h.Spec.BMC, Maintenance: h.Spec.Maintenance.Message,
	}
}

func (k *kubexm) host(ctx context.Context, s Subject) (*infrav1.KubexmHost, error) {
	ref, namespace := s.Machine.Spec.InfrastructureRef, s.Machine.Namespace
	machine := &infrav1.KubexmMachine{}
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, machine); apierrors.IsNotFound(err) {
		return nil, &HostGone{Message: fmt.Sprintf("the %s does not exist", describe(ref))}
	} else if err != nil {
		return nil, fmt.Errorf("get the %s: %w", describe(ref), err)
	}
	name := hostNameOf(machine)
	if name == "" && !s.Machine.DeletionTimestamp.IsZero() {
		return nil, &HostGone{Message: fmt.Sprintf("the %s never had a host, and gets none any more", describe(ref))}
	}
	if name == "" {
		message := "the " + describe(ref) + " has no host yet"
		if why := conditions.GetMessage(machine, infrav1.HostClaimedCondition); why != "" {
			message += ": " + why
		}
		return nil, &HostPending{Message: message}
	}
	found := &infrav1.KubexmHost{}
	if err := k.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found); apierrors.IsNotFound(err) {
		return nil, &HostGone{Message: fmt.Sprintf("the KubexmHost %s does not exist any more", name)}
	} else if err != nil {
		return nil, fmt.Errorf("get the KubexmHost %s: %w", name, err)
	}
	// Another Machine's host must not be touched, whatever was written here once. A claim that the cache does not show
	// yet comes with an update of the KubexmHost.
	switch owner := found.Spec.ClaimRef; {
	case found.IsOf(machine):
		return found, nil
	case owner.Name == "":
		return nil, &HostPending{Message: fmt.Sprintf("the KubexmHost %s is not claimed by the %s", name, describe(ref))}
	default:
		return nil, &HostGone{Message: fmt.Sprintf("the KubexmHost %s is claimed by the %s %s now", name, owner.KindOrDefault(), owner.Name)}
	}
}

// hostNameOf is the KubexmHost that a KubexmMachine says it has, "" if it says none. Where its status was lost, its specification says it
// still: while its Machine is deleted, nobody writes that status again.
func hostNameOf(m *infrav1.KubexmMachine) string {
	if name := m.Status.HostRef.Name; name != "" {
		return name
	}
	name, found := strings.CutPrefix(m.Spec.ProviderID, infrav1.ProviderIDPrefix+m.Namespace+"/")
	if !found {
		return ""
	}
	return name
}

// HasDoor is false: who keeps the inventory has opened it.
func (k *kubexm) HasDoor() bool { return false }

// Refuses is that nobody reads it.
func (k *kubexm) Refuses(format bootstrapv1.BootstrapFormat) string {
	if format.OrDefault() == bootstrapv1.CloudConfigFormat {
		return ""
	}
	return "hosts of KubexmMachines run no bootstrap data: remove it"
}

// Reset is Always: the host goes back to the pool.
func (k *kubexm) Reset() spec.ResetPolicy { return spec.ResetAlways }

// Joined does nothing: a KubexmMachine does not wait for its Node.
func (k *kubexm) Joined(context.Context, Subject) error { return nil }

// ReportReachability writes the KubexmHost's facts and its condition Reachable.
func (k *kubexm) ReportReachability(ctx context.Context, s Subject, c Reachability) error {
	return k.update(ctx, s, meeting(c))
}

// meeting writes what came of dialling a host.
func meeting(c Reachability) func(*infrav1.KubexmHost) {
	return func(h *infrav1.KubexmHost) {
		reachable := metav1.Condition{
			Type: infrav1.ReachableCondition, Status: metav1.ConditionTrue, Reason: infrav1.ReachedReason, ObservedGeneration: h.Generation,
		}
		if c.Err != nil {
			reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, c.Reason, messageOf(c.Err)
		}
		conditions.Set(h, reachable)
		if c.System != nil {
			h.Status.Facts = factsOf(c.System)
		}
	}
}

// Heartbeat writes what came of dialling a KubexmHost that nobody has: its facts, and its condition Reachable. It writes nothing if
// somebody has it by now, or if what it declares has changed.
func Heartbeat(ctx context.Context, c client.Client, live client.Reader, dialled *infrav1.KubexmHost, came Reachability) error {
	k := &kubexm{client: c, live: live}
	return k.change(ctx, dialled, func(h *infrav1.KubexmHost) {
		if h.UID != dialled.UID || h.Generation != dialled.Generation || h.Spec.ClaimRef != (infrav1.MachineReference{}) {
			return
		}
		meeting(came)(h)
		h.Status.LastHeartbeatTime = metav1.Now()
	})
}

// ReportReset writes the KubexmHost's condition Clean. A host that is not clean is not handed out again.
func (k *kubexm) ReportReset(ctx context.Context, s Subject, c ResetResult) error {
	return k.update(ctx, s, leaving(c))
}

// leaving writes in what state a host is left.
func leaving(c ResetResult) func(*infrav1.KubexmHost) {
	return func(h *infrav1.KubexmHost) {
		clean := metav1.Condition{Type: infrav1.CleanCondition, Status: metav1.ConditionTrue, Reason: infrav1.ResetReason}
		if c.Err != nil {
			clean.Status, clean.Reason, clean.Message = metav1.ConditionFalse, infrav1.ResetFailedReason, messageOf(c.Err)
		}
		conditions.Set(h, clean)
	}
}

// update changes the status of the Machine's KubexmHost.
func (k *kubexm) update(ctx context.Context, s Subject, change func(*infrav1.KubexmHost)) error {
	known, err := k.host(ctx, s)
	if err != nil {
		return err
	}
	return k.change(ctx, known, change)
}

// change changes the status of a KubexmHost. Conditions are one field to a merge patch, and others write some
// of them, so it is read anew and written under the version that was read.
func (k *kubexm) change(ctx context.Context, known *infrav1.KubexmHost, change func(*infrav1.KubexmHost)) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		h := &infrav1.KubexmHost{}
		if err := k.live.Get(ctx, client.ObjectKeyFromObject(known), h); err != nil {
			return err
		}
		before := h.DeepCopy()
		change(h)
		return k.client.Status().Patch(ctx, h, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("write the status of the KubexmHost %s: %w", known.Name, err)
	}
	return nil
}

const (
	// maxMessage is how long the message of a condition may be, in bytes: the API takes 32768 characters.
	maxMessage = 16 << 10
	// maxFact is how long a string of the facts may be, as the API takes it.
	maxFact = 256
)

// messageOf is what an error says, as a condition can hold it: some of it is the host's words.
func messageOf(err error) string { return host.Text(err.Error(), maxMessage) }

func factsOf(s *host.System) infrav1.HostFacts {
	facts := infrav1.HostFacts{
		ObservedTime: metav1.Now(), OS: host.Word(s.OSName, maxFact), Kernel: host.Word(s.Kernel, maxFact),
		CPUs: max(0, s.CPUs), MemoryBytes: max(0, s.MemoryBytes),
		MachineID: s.MachineID,
	}
	// The API knows the architectures that there are artifacts for.
	if arch := spec.Arch(s.Arch); arch == spec.ArchAMD64 || arch == spec.ArchARM64 {
		facts.Arch = arch
	}
	return facts
}
