// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// closingAccess is what the job is called, closeLimit how long it may take, and closeAgain after how long it is tried again.
	closingAccess = string(bootstrapv1.CloseAccessOperation)
	closeLimit    = 2 * time.Minute
	closeAgain    = time.Minute
)

// Keys of the Secret by which a host is known, <config>-host-key: there are none while the host's access is open. A Secret is moved with
// its KubexmConfig, and kept where a status is lost.
const (
	// accessKey is how far the access is closed: an accessState.
	accessKey = "access"
	// closedForKey is the digest of what the host was when that began, sha256:…, as mustBe has it.
	closedForKey = "closed-for"
	// closedAtKey is the address at which the host was entered for that, and closedAddressesKey has those of its interfaces, with spaces.
	closedAtKey        = "closed-at"
	closedAddressesKey = "closed-addresses"
)

// accessState is how far the access to a host is closed.
type accessState string

const (
	accessOpen accessState = ""
	// accessClosing is written once the host was entered for it, and before anything is closed: from then on, a host that refuses us is one
	// that is closed.
	accessClosing accessState = "Closing"
	accessClosed  accessState = "Closed"
)

// accessRecord is what is known of the access to a host when nobody can ask the host any more.
type accessRecord struct {
	state accessState
	// closedFor and at are "" where that is not known.
	closedFor, at string
	// addresses are those of the host's interfaces, nil where they are not known.
	addresses []string
}

// accessIn reads the record from the data of the Secret. What nobody of ours has written is none.
func accessIn(data map[string][]byte) accessRecord {
	switch state := accessState(data[accessKey]); state {
	case accessClosing, accessClosed:
		return accessRecord{
			state: state, closedFor: string(data[closedForKey]), at: string(data[closedAtKey]),
			addresses: strings.Fields(string(data[closedAddressesKey])),
		}
	}
	return accessRecord{}
}

// accessShown is what a KubexmConfig says whose Secret was lost.
func accessShown(c *bootstrapv1.KubexmConfig) accessRecord {
	if c.IsClosed() {
		return accessRecord{state: accessClosed, at: c.Status.Host.Address, addresses: c.Status.Host.ObservedAddresses}
	}
	return accessRecord{}
}

// keepIn writes into the data of the Secret what is known.
func (a accessRecord) keepIn(data map[string][]byte) {
	for key, value := range map[string]string{
		accessKey: string(a.state), closedForKey: a.closedFor, closedAtKey: a.at, closedAddressesKey: strings.Join(a.addresses, " "),
	} {
		if value != "" {
			data[key] = []byte(value)
		}
	}
}

// isClosing reports whether the access to the host is closed, or was begun to be closed: then it is never open again.
func (s *scope) isClosing() bool { return s.door != nil && s.door.closed.state != accessOpen }

// closeAccess closes what the bootstrap data has opened, for good, where accessPolicy says so: when the host is what it must be, its Node
// has joined, and nothing else is to be done there.
//
// Whoever closes a door from inside does not get in again to see whether it is. So Closing is written down in between: after the host was
// entered, and before anything is undone there. door.Close bars the login first of all. Therefore, where it is Closing, a host that
// refuses our key, or shows another than the pinned one, counts as closed (what is no entry may be left there then, and the operation
// says so); one that lets us in is closed again; and of one that does not answer, nothing is known, and it is asked again. A refusal
// before that is a failure like any other, and so is one of a jump host, or that of credentials which cannot be read. Another machine that
// has taken the host's address meanwhile is taken for a host that is closed: it cannot be told from that.
func (r *KubexmConfigReconciler) closeAccess() operation {
	return operation{name: bootstrapv1.CloseAccessOperation, checks: r.planned(), due: r.closeIsDue, settle: r.settleClose}
}

// refusesToClose is why accessPolicy asks for what cannot be, nil if it does not. What is closed already stays so.
func (s *scope) refusesToClose() error {
	policy := s.resetPolicy()
	var why string
	switch {
	case s.config.Spec.AccessPolicy != spec.AccessClosed || s.isClosing():
		return nil
	case s.role() != spec.RoleWorker:
		why = "hosts of the control plane stay open, because they are entered when members leave, certificates are renewed and etcd is saved: remove it"
	case s.door == nil:
		why = "no bootstrap data has opened the host, so that closing it is up to those who have: remove it, and take the login away from KubexmHosts " +
			"themselves, or have hosts of another infrastructure"
	case s.door.keys.areDeclared:
		why = "with access.hostKeys.pinned, it is the image that lets us in, which is not undone: remove either"
	case s.config.Spec.Access.Connection == spec.ConnectionCallHome:
		why = "with access.connection: CallHome, it is the host that connects to the manager, and one that is closed is silent like one that is off: " +
			"remove either"
	case policy.Policy == spec.ResetAlways:
		why = "the host is to be reset when it leaves (reset.policy is Always, or is unset and the infrastructure takes the host back into its pool), and " +
			"one that nobody logs in on cannot be: set reset.policy to WhenReachable or Never, in the KubexmConfig or in its control plane's " +
			"spec.cluster, or leave the access open"
	default:
		return nil
	}
	return errors.New("spec.accessPolicy: Closed: " + why)
}

// mayClose reports whether the host's access is to be closed now, by what is remembered of the host. Before Cluster API has seen the Node,
// its infrastructure may run the bootstrap data again.
func (s *scope) mayClose(m *hostCache) bool {
	switch {
	case s.door == nil || s.door.closed.state == accessClosed:
		return false
	case s.door.closed.state == accessClosing:
		return true
	case s.config.Spec.AccessPolicy != spec.AccessClosed, s.planned == nil || s.needed.act != rest || !m.is(s.planned.input):
		return false
	case m.turn || s.clusterConfig.Status.TurnOf(s.config.Name) != nil: // others wait for what becomes of it
		return false
	}
	return s.machine != nil && s.machine.Status.NodeRef.IsDefined() &&
		conditions.IsTrue(s.config, bootstrapv1.HostConvergedCondition) && conditions.IsTrue(s.config, bootstrapv1.NodeJoinedCondition)
}

func (r *KubexmConfigReconciler) closeIsDue(ctx context.Context, s *scope) (*run, error) {
	m := r.cached(s.config.UID)
	if !s.mayClose(&m) {
		return nil, nil
	}
	last := s.config.Status.Operation(bootstrapv1.CloseAccessOperation)
	if left := time.Until(last.EndTime.Add(closeAgain)); left > 0 && last.Outcome == bootstrapv1.RunFailed && s.job == nil {
		s.needed.after = min(left, cmp.Or(s.needed.after, left))
		return nil, nil
	}
	j, err := r.closingOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return &run{Do: j.do, Lost: lostOf(time.Time{})}, nil
}

// closingOf is what closes the access to the scope's host.
func (r *KubexmConfigReconciler) closingOf(ctx context.Context, s *scope) (*closing, error) {
	j := &closing{withoutPlan: r.withoutPlan(s, closingAccess, time.Time{}), connect: r.Dial, record: s.door.closed}
	if j.record.state == accessOpen {
		must, err := r.mustBe(ctx, s, &s.planned.target)
		if err != nil {
			return nil, err
		}
		j.record = accessRecord{closedFor: must, addresses: s.config.Status.Host.ObservedAddresses}
	}
	namespace, there, config := s.config.Namespace, *s.host, s.config.DeepCopy()
	if at := j.record.at; at != "" {
		there.Address, there.Candidates = at, nil // where others answer, their keys say nothing of this host
	}
	j.access = func(ctx context.Context) (ssh.Config, error) { return r.access(ctx, namespace, there.Name, there) }
	j.keep = func(ctx context.Context, record accessRecord) error { return r.keepAccess(ctx, config, record) }
	return j, nil
}

// closing is all that closing a host's access needs.
type closing struct {
	withoutPlan
	access  func(context.Context) (ssh.Config, error)
	connect Dial
	// keep writes the record down.
	keep   func(context.Context, accessRecord) error
	record accessRecord
}

func (j *closing) do(ctx context.Context, tell event.Reader) outcome {
	out := outcome{}
	out.err = j.tell(ctx, tell, func(ctx context.Context) (err error) {
		within, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		out.note, err = j.close(within)
		return err
	})
	return out
}

// close closes the host, and returns in words what is known of it then.
func (j *closing) close(ctx context.Context) (string, error) {
	access, err := j.access(ctx)
	if err != nil {
		return "", err
	}
	h, err := j.connect(ctx, access)
	if err != nil && j.record.state == accessClosing && j.isRefusal(ctx, access, err) {
		return "the host refuses us since it was begun to close it, so it is closed; what is no way in may be left of what the bootstrap data made: " +
			err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if err := j.closeOn(ctx, h); err != nil {
		return "", errors.Join(err, h.Close())
	}
	_ = h.Close() // it is closed, whatever becomes of the connection
	return "what the bootstrap data had opened is closed", nil
}

func (j *closing) closeOn(ctx context.Context, h host.Host) error {
	if err := j.admits(ctx, h); err != nil {
		return err
	}
	j.record.state = accessClosing
	if found, ok := h.(interface{ Address() string }); ok {
		j.record.at = found.Address()
	}
	if err := j.keep(ctx, j.record); err != nil {
		return err
	}
	return door.Close(ctx, h)
}

// isRefusal reports whether it is the host that did not let us in: with credentials that can be read, and behind a jump host that did.
func (j *closing) isRefusal(ctx context.Context, access ssh.Config, err error) bool {
	if kind := host.KindOf(err); kind != host.KindAuth && kind != host.KindHostKey {
		return false
	}
	for _, key := range access.Auth.PrivateKeys {
		if _, err := ssh.AuthorizedKey(key, access.Auth.Passphrase); err != nil {
			return false
		}
	}
	if access.Jump == nil {
		return true
	}
	through, err := j.connect(ctx, *access.Jump)
	if err != nil {
		return false
	}
	_ = through.Close()
	return true
}

// keepAccess writes into the Secret of the host's keys how far its access is closed. Only what is written there counts.
func (r *KubexmConfigReconciler) keepAccess(ctx context.Context, config *bootstrapv1.KubexmConfig, record accessRecord) error {
	found, key := &corev1.Secret{}, hostKeyOf(config)
	if err := r.Reader.Get(ctx, key, found); err != nil {
		return fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	if !metav1.IsControlledBy(found, config) {
		return notOurs(key.Name, "the keys by which the host is known")
	}
	before := found.DeepCopy()
	if found.Data == nil {
		found.Data = map[string][]byte{}
	}
	record.keepIn(found.Data)
	if err := r.Client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update the Secret %s: %w", key.Name, err)
	}
	return nil
}

// settleClose takes in that the host is closed. Its Secret has it before its status does.
func (r *KubexmConfigReconciler) settleClose(ctx context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	if out.err != nil {
		again := s.config.Status.Operation(bootstrapv1.CloseAccessOperation).Outcome == bootstrapv1.RunFailed
		setReachability(s.config, out)
		if last := record(s, ""); !again { // more of that is in the status
			r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeWarning, "AccessNotClosed", closingAccess, "%s", last.Message)
		}
		return decideAnew(), nil
	}
	if err := r.keepAccess(ctx, s.config, accessRecord{state: accessClosed}); err != nil {
		return ctrl.Result{}, err // it is not lost: the job's result is kept
	}
	last := record(s, out.note)
	showClosed(s)
	r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeNormal, bootstrapv1.AccessClosedReason, closingAccess, "%s", last.Message)
	return decideAnew(), nil
}

// restClosed is all that becomes of a host whose access is closed: nothing is run there, and it is said where somebody asks for it. One
// whose access was begun to be closed comes to nothing else before.
func (r *KubexmConfigReconciler) restClosed(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if !s.isClosing() {
		return true, ctrl.Result{}, nil
	}
	if s.door.closed.state == accessClosing {
		resumed := r.closeAccess()
		resumed.checks = nil // a plan is not needed to go on, and may not be possible
		goOn, result, err := r.operate([]operation{resumed})(ctx, s)
		if goOn {
			result.RequeueAfter = s.needed.after
		}
		return false, result, err
	}
	showClosed(s)
	r.refuseAsked(s, time.Now())
	if goOn, result, err := r.waitForPrerequisites(ctx, s); err != nil || !goOn {
		return false, result, err
	}
	target, err := targetOf(s)
	if err != nil {
		setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.InvalidReason, err.Error())
		return false, ctrl.Result{}, nil
	}
	must, err := r.mustBe(ctx, s, &target)
	if err != nil {
		return false, ctrl.Result{}, err
	}
	showKept(s, must, &target)
	return false, ctrl.Result{RequeueAfter: r.driftCheckInterval(s.config.UID)}, nil
}

// mustBe is the digest of what a host must be, however it is reached and no matter what its infrastructure says of its addresses, and of
// what Secrets have for it. It is the same after objects were moved.
func (r *KubexmConfigReconciler) mustBe(ctx context.Context, s *scope, target *spec.Target) (string, error) {
	must := *target
	must.Host.Address, must.Host.InternalAddresses = "", nil
	var contents []string
	for _, n := range secretsOf(s.config) {
		found := &corev1.Secret{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: n.name}, found)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("get the Secret %s: %w", n.name, err)
		}
		if apierrors.IsNotFound(err) {
			found.Data = nil
		}
		raw, err := json.Marshal(found.Data)
		if err != nil {
			return "", fmt.Errorf("digest of the Secret %s: %w", n.name, err)
		}
		contents = append(contents, n.name+"@"+digest(raw))
	}
	raw, err := json.Marshal(struct {
		Target   spec.Target
		Contents []string
	}{must, contents})
	if err != nil {
		return "", fmt.Errorf("digest of what the host must be: %w", err)
	}
	return digest(raw), nil
}

// howToReplace is what can be done with a host that is closed.
const howToReplace = "delete its Machine, or roll its MachineDeployment out, to have it replaced"

// showClosed says that nobody gets in any more, and, in the place of the host, what Cluster API sees of its Node.
func showClosed(s *scope) {
	message := "the access to the host is closed for good (spec.accessPolicy): nobody logs in there, and nothing is observed, changed or reset. " +
		"For anything else: " + howToReplace
	if s.config.Spec.AccessPolicy != spec.AccessClosed {
		message = "the access to the host was closed for good, and is not opened again by spec.accessPolicy: " + howToReplace
	}
	setFalse(s.config, bootstrapv1.HostReachableCondition, bootstrapv1.AccessClosedReason, message)
	if !conditions.IsTrue(s.config, bootstrapv1.PreflightPassedCondition) { // it was a Node when it was closed, and its status was lost
		setTrue(s.config, bootstrapv1.PreflightPassedCondition, bootstrapv1.PreflightPassedReason, "")
	}
	if s.machine == nil {
		return
	}
	switch ready := conditions.Get(s.machine, clusterv1.MachineNodeReadyCondition); {
	case ready == nil:
	case ready.Status == metav1.ConditionTrue:
		setTrue(s.config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeJoinedReason, "")
	case ready.Status == metav1.ConditionFalse:
		setFalse(s.config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, cmp.Or(ready.Message, ready.Reason))
	}
	showNetwork(s.config, s.declared())
}

// showKept says whether a host that is closed is what it must be still.
func showKept(s *scope, must string, target *spec.Target) {
	status := &s.config.Status
	switch s.door.closed.closedFor {
	case "":
		set(s.config, bootstrapv1.HostConvergedCondition, metav1.ConditionUnknown, bootstrapv1.AccessClosedReason,
			"it is not known what the host was when its access was closed, as the Secret "+hostKeyOf(s.config).Name+" was lost: "+howToReplace)
	case must:
		setTrue(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
		status.KubernetesVersion, status.ConvergedGeneration = target.KubernetesVersion, s.config.Generation
		status.MembersDigest = bootstrapv1.MembersDigest(s.clusterConfig.Spec.Members)
	default:
		setFalse(s.config, bootstrapv1.HostConvergedCondition, bootstrapv1.AccessClosedReason,
			"the host is to become something else than it was when its access was closed, and nobody can change it: "+howToReplace)
	}
}

// refuseAsked answers who asks for something on a host that is closed.
func (r *KubexmConfigReconciler) refuseAsked(s *scope, now time.Time) {
	for _, one := range r.operations() {
		kind, at := one.name, s.asks(one.name)
		if at.IsZero() {
			continue
		}
		o := s.config.Status.Operation(kind) // what Converge has come to before stays known
		o.RequestTime, o.StartTime, o.EndTime = metav1.NewTime(at), metav1.NewTime(now), metav1.NewTime(now)
		o.Outcome, o.Message = bootstrapv1.RunFailed, "the access to the host is closed: "+howToReplace
		s.config.Status.SetOperation(*o)
		r.Events.Eventf(s.config, s.relatedMachine(), corev1.EventTypeWarning, bootstrapv1.AccessClosedReason, string(kind), "%s",
			o.Message)
	}
}
