// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// enrolling is what the job is called, and enrollLimit how long it may take.
const (
	enrolling   = string(bootstrapv1.EnrollOperation)
	enrollLimit = 2 * time.Minute
	// secondTry is how long sshd may take to take its configuration in.
	secondTry = 2 * time.Second
)

// enrolled is what an enrollment came to.
type enrolled struct {
	// address is where the host was reached, and addresses are those of its interfaces.
	address   string
	addresses []string
	// hostKey is the key that was made on the host, "" if none was; retired is whether the one that the bootstrap data brought is gone.
	hostKey string
	retired bool
}

// enroll finds the host among the addresses that its infrastructure knows: it is the one that shows the key which the bootstrap data
// brought. That key was readable on its way, so the first connection has another made on the host, and the next, when that is pinned,
// takes the first away.
func (r *KubexmConfigReconciler) enroll() operation {
	return operation{
		name: bootstrapv1.EnrollOperation, checks: []phase{{"wait for the bootstrap data", r.waitToEnroll}},
		due: r.enrollIsDue, settle: r.settleEnroll,
	}
}

// waitToEnroll waits between attempts: nobody says when a host has run its bootstrap data.
func (r *KubexmConfigReconciler) waitToEnroll(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	last := s.config.Status.Operation(bootstrapv1.EnrollOperation)
	if s.job != nil || !s.mustEnroll() || last.Outcome != bootstrapv1.RunFailed {
		return true, ctrl.Result{}, nil
	}
	if left := time.Until(last.EndTime.Add(askAgain)); left > 0 {
		return false, ctrl.Result{RequeueAfter: left}, nil
	}
	return true, ctrl.Result{}, nil
}

// isDeclared reports whether everything is said of how the host is reached, by us and by the cluster's other hosts: by which key it is
// known, and at which one address.
func (s *scope) isDeclared() bool {
	return s.door == nil ||
		s.door.keys.areDeclared && len(s.candidates) < 2 && len(s.config.Status.Host.ObservedAddresses) == 0 && s.isInHostNetwork()
}

// isInHostNetwork reports whether an address is known of the host at which the cluster's other hosts are to reach it.
func (s *scope) isInHostNetwork() bool {
	if s.clusterConfig == nil {
		return true // which of its addresses that is follows from the cluster's network
	}
	own := s.shared().Host(s.host.Host, s.role())
	return s.shared().Cluster.Network.HasHost(own.NodeAddress())
}

// wasEnrolled reports whether the host was entered before.
func (s *scope) wasEnrolled() bool {
	return s.door.keys.pinned != "" || s.door.keys.areDeclared && len(s.config.Status.Host.ObservedAddresses) > 0
}

// mustEnroll reports whether it is not known where the host is, or whether it has no key of its own.
func (s *scope) mustEnroll() bool {
	if s.host == nil || s.isDeclared() {
		return false
	}
	keys, status := &s.door.keys, &s.config.Status.Host
	switch {
	case !keys.areDeclared && (keys.pinned == "" || !keys.birth.IsZero()):
		return true
	case !slices.Contains(s.candidates, status.Address) || len(status.ObservedAddresses) == 0:
		return true
	}
	return len(s.candidates) > 1 && conditions.GetReason(s.config, bootstrapv1.HostReachableCondition) == bootstrapv1.UnreachableReason
}

func (r *KubexmConfigReconciler) enrollIsDue(_ context.Context, s *scope) (*run, error) {
	if !s.mustEnroll() {
		return nil, nil
	}
	keys := &s.door.keys
	j := &enrollment{
		withoutPlan: r.withoutPlan(s, enrolling, time.Time{}), address: s.host.Address, nonce: nonceOf(s),
		rekeys: !keys.areDeclared && keys.pinned == "", retires: keys.pinned != "" && !keys.birth.IsZero(),
	}
	all := *s.host
	all.Candidates = s.candidates // also where it was: it may be at another by now
	j.dial = r.dialer(s.config.Namespace, all)
	return &run{Urgent: true, Do: j.do, Lost: lostOf(time.Time{})}, nil
}

// enrollment is all that an enrollment needs.
type enrollment struct {
	withoutPlan
	address, nonce  string
	rekeys, retires bool
}

func (j *enrollment) do(ctx context.Context, tell event.Reader) outcome {
	out := outcome{}
	out.err = j.tell(ctx, tell, func(ctx context.Context) (err error) {
		within, cancel := context.WithTimeout(ctx, enrollLimit)
		defer cancel()
		h, err := j.enter(within)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.Close()) }()
		return j.meet(within, h, &out)
	})
	return out
}

// enter dials the host, and once more where it does not let us in: infrastructure says that bootstrap data was run when that has had sshd
// take its configuration in, which refuses for a moment.
func (j *enrollment) enter(ctx context.Context) (host.Host, error) {
	h, err := j.dial(ctx, j.host)
	if err == nil || !awaitsBootstrapData(err) {
		return h, err
	}
	select {
	case <-ctx.Done():
		return nil, err
	case <-time.After(secondTry):
		return j.dial(ctx, j.host)
	}
}

// meet does what is to be done on the host.
func (j *enrollment) meet(ctx context.Context, h host.Host, out *outcome) error {
	seen, err := h.Observe(ctx, host.Query{})
	if err != nil {
		return err
	}
	out.system, out.reached = &seen.System, true
	out.enrolled = enrolled{address: j.address, addresses: addressesOf(&seen.System)}
	if found, ok := h.(interface{ Address() string }); ok {
		out.enrolled.address = found.Address()
	}
	switch {
	case j.rekeys:
		has, err := door.Nonce(ctx, h)
		if err != nil {
			return err
		}
		if has != j.nonce {
			return &host.Error{
				Kind: host.KindHostKey, Host: j.host, Message: "the bootstrap data has brought its key to the host, and has not ended there",
				Remedy: "see what the infrastructure provider, or the host's log, says of the bootstrap data",
			}
		}
		out.enrolled.hostKey, err = door.Rekey(ctx, h)
		return err
	case j.retires:
		out.enrolled.retired = true
		return door.Retire(ctx, h)
	}
	return nil
}

// mostAddresses is how many addresses of a host are kept.
const mostAddresses = 64

// addressesOf are the host's own addresses.
func addressesOf(s *host.System) []string {
	var own []string
	for _, cidr := range s.Addresses {
		if prefix, err := netip.ParsePrefix(cidr); err == nil && len(own) < mostAddresses {
			own = append(own, prefix.Addr().Unmap().WithZone("").String())
		}
	}
	return own
}

// settleEnroll pins what was found.
func (r *KubexmConfigReconciler) settleEnroll(ctx context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	if out.err != nil {
		record(s, "")
		reason, message := reasonOf(host.KindOf(out.err)), textOf(out.err)
		if s.door != nil && !s.wasEnrolled() && awaitsBootstrapData(out.err) {
			reason, message = bootstrapv1.WaitingForBootstrapDataReason, "no host that has run the bootstrap data answers yet: "+message
		}
		setFalse(s.config, bootstrapv1.HostReachableCondition, cmp.Or(reason, bootstrapv1.EnrollmentFailedReason), message)
		return ctrl.Result{RequeueAfter: askAgain}, nil
	}
	e := &out.enrolled
	if err := r.keepHostKey(ctx, s, e); err != nil {
		return ctrl.Result{}, err // it is not lost: the job's result is kept
	}
	status := &s.config.Status.Host
	status.Address, status.ObservedAddresses = e.address, e.addresses
	if e.hostKey != "" {
		status.HostKey = e.hostKey
		r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeNormal, "HostEnrolled", enrolling,
			"the host answers at %s, and is known by a key that was made on it", e.address)
	}
	setTrue(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.HostReachableReason, "")
	record(s, "reached at "+e.address)
	return decideAnew(), nil
}

// awaitsBootstrapData reports whether an error is that of a host which has not run its bootstrap data yet.
func awaitsBootstrapData(err error) bool {
	return slices.Contains([]host.Kind{host.KindUnreachable, host.KindHostKey, host.KindAuth}, host.KindOf(err))
}

// place says where the host is and which addresses are its Node's, by what it was enrolled with.
func (r *KubexmConfigReconciler) place(ctx context.Context, s *scope) error {
	if s.door == nil {
		if err := r.findDoor(ctx, s); err != nil || s.door == nil {
			return err
		}
	}
	status := &s.config.Status.Host
	if s.isClosing() && len(status.ObservedAddresses) == 0 { // the status was lost, and nobody enrolls the host again
		status.Address, status.ObservedAddresses = cmp.Or(status.Address, s.door.closed.at), s.door.closed.addresses
	}
	s.candidates, s.host.Access = s.host.Candidates, s.door.access
	if s.door.access.Connection == spec.ConnectionCallHome {
		// At none of its addresses is it dialled, so that the first stands for all in messages.
		s.host.CallsHome, s.candidates = nonceOf(s), []string{s.host.Address}
	}
	// Where it is not known, whoever dials the host tries all of them: it is known by its key.
	if known := slices.Contains(s.candidates, status.Address); known || len(s.candidates) < 2 {
		s.host.Candidates = nil
		if known {
			s.host.Address = status.Address
		}
	}
	observed := status.ObservedAddresses
	if s.clusterConfig != nil {
		s.host.InternalAddresses, observed = s.withoutOthers(s.host.InternalAddresses), s.withoutOthers(observed)
	}
	s.host.InternalAddresses = nodeAddresses(s.host.InternalAddresses, observed, s.host.Address)
	if s.clusterConfig == nil {
		return nil
	}
	// Where the hosts' networks are declared, they decide, not what the infrastructure knows of. Else a host of which that knows no address
	// of the cluster's first family, nor was reached at one, has the first of its interfaces'.
	network := &s.shared().Cluster.Network
	own := network.Usable(observed)
	if len(network.HostCIDRs) == 0 {
		if slices.ContainsFunc(s.host.InternalAddresses, func(a string) bool { return spec.FamilyOf(a) == network.PrimaryFamily() }) {
			return nil
		}
		own = own[:min(len(own), 1)]
	}
	for _, a := range own {
		if !slices.Contains(s.host.InternalAddresses, a) {
			s.host.InternalAddresses = append(slices.Clip(s.host.InternalAddresses), a)
		}
	}
	return nil
}

// withoutOthers leaves out addresses that are others' in the cluster: the API's and the members'. Which addresses a host has it says
// itself, and so may what the infrastructure knows of it; a worker that was taken over would get the API's for its Node, and with that a
// certificate for it. A control plane host may have the endpoint's address, and has the authority's key anyway.
func (s *scope) withoutOthers(addresses []string) []string {
	shared, config, worker := &s.shared().Cluster, &s.clusterConfig.Spec, s.role() == spec.RoleWorker
	others := shared.Network.APIAddresses()
	if worker {
		others = append(others,
			s.cluster.Spec.ControlPlaneEndpoint.Host, config.Cluster.ControlPlaneEndpoint.Address, shared.ControlPlaneEndpoint.Address)
	}
	own := s.member()
	for i := range config.Members {
		// What is Removed serves nobody any more, and its address may be the next host's already.
		if m := &config.Members[i]; (worker || m != own) && m.Phase != bootstrapv1.MemberRemoved {
			others = append(others, m.Address)
		}
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return hasAddress(others, a) })
}

// hasAddress reports whether an address is among others, however they are written.
func hasAddress(others []string, address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(others, func(other string) bool {
		o, err := netip.ParseAddr(other)
		return err == nil && o.Unmap() == ip.Unmap()
	})
}

// nodeAddresses are those that the Node may have: of what the infrastructure says, what the host's own interfaces have. Inspections before
// an installation, and translated addresses, say others.
func nodeAddresses(said, observed []string, reached string) []string {
	if len(observed) == 0 {
		return said
	}
	var both []string
	for _, a := range said {
		if slices.Contains(observed, a) {
			both = append(both, a)
		}
	}
	switch {
	case len(both) > 0:
		return both
	case slices.Contains(observed, reached):
		return []string{reached}
	}
	return observed
}
