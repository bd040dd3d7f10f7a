// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
)

const (
	// soon is when a reconcile follows that goes on from what was just written.
	soon = time.Millisecond
	// firstPause and lastPause are how long after a failure the same is tried again: it doubles.
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// attempt is how often a job has failed in a row, and when it last did. Losing it costs a pause.
type attempt struct {
	failed int
	ended  time.Time
}

// restorePhases are what becomes of a restore of etcd, in order. Each writes what it has come to before the next begins, so that whoever
// takes it up goes on there:
//
//	the backup was examined             OperationRestoreAnnotation: the ID, by which hosts know this restore from others
//	the hosts stand still               HeldByAnnotation of the KubexmClusterConfig, and status.heldBy of each KubexmConfig
//	all have the snapshot               OperationRestoringAnnotation: from now on it is tried until it is done
//	etcd is restored                    OperationCompletedAnnotation, and the hosts are released
//
// Until the third, whatever is in the way in the end fails the operation, and nothing has ended anywhere.
func (r *KubexmOperationReconciler) restorePhases() []phase {
	return []phase{
		{"let the hosts go", r.letGo},
		{"keep what has ended for a while", r.expire},
		{"find the target", r.begin},
		{"collect the result", r.collect},
		{"find the hosts", r.findParties},
		{"examine the backup", r.examine},
		{"hold the hosts", r.hold},
		{"send the snapshot", r.send},
		{"restore etcd", r.restore},
	}
}

// letGo releases the hosts of an operation that has ended, that is deleted before anything has ended on a host or when somebody else
// restores etcd, or whose Cluster goes.
func (r *KubexmOperationReconciler) letGo(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	completed, leaves := o.Annotations[bootstrapv1.OperationCompletedAnnotation] != "", !o.DeletionTimestamp.IsZero()
	_, abandoned := o.Annotations[bootstrapv1.AbandonRestoreAnnotation]
	began, why := o.Annotations[bootstrapv1.OperationStartedAnnotation] != "", ""
	switch {
	case completed:
	case s.cluster == nil && began, s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero():
		why = "the Cluster is being deleted"
	case leaves && !s.restores():
		why = "it was deleted before it began to restore"
	case leaves && abandoned:
		why = "it was given up while it restored etcd, as the annotation " + bootstrapv1.AbandonRestoreAnnotation +
			" says: until somebody restores etcd, the API may be away"
	default:
		return true, ctrl.Result{}, nil
	}
	if r.Jobs.Cancel(client.ObjectKeyFromObject(o), errLetGo) {
		return false, ctrl.Result{}, nil // we are notified when it has ended
	}
	if err := r.release(ctx, o); apierrors.IsConflict(err) {
		return false, ctrl.Result{RequeueAfter: soon}, nil
	} else if err != nil {
		return false, ctrl.Result{}, err
	}
	s.ended = true
	r.forget(o)
	controllerutil.RemoveFinalizer(o, bootstrapv1.OperationFinalizer)
	if completed {
		return !leaves, ctrl.Result{}, nil
	}
	return r.conclude(s, errors.New(why))
}

// restores reports whether something may have ended on a host.
func (s *scope) restores() bool {
	return s.operation.Annotations[bootstrapv1.OperationRestoringAnnotation] != ""
}

// wait says what is waited for. Where that takes too long before anything has ended on a host, the operation has failed.
func (r *KubexmOperationReconciler) wait(s *scope, why string) (bool, ctrl.Result, error) {
	o := s.operation
	if s.restores() {
		setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.OperationRunningReason, "it restores etcd, and waits: "+host.Text(why, longest))
		return false, ctrl.Result{RequeueAfter: again}, nil
	}
	limit := time.Duration(ptr.Deref(o.Spec.TimeoutSeconds, int32(s.verb.timeout/time.Second))) * time.Second
	if s.now.Sub(o.Status.StartTime.Time) >= limit {
		return r.conclude(s, fmt.Errorf("it could not begin within %s: %s", limit, why))
	}
	setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.OperationWaitingReason, "it waits, and nothing has ended yet: "+host.Text(why, longest))
	return false, ctrl.Result{RequeueAfter: again}, nil
}

// collect shows how far a job is, or takes in what came of it.
func (r *KubexmOperationReconciler) collect(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	job, found := r.Jobs.Observe(client.ObjectKeyFromObject(o))
	if !found {
		return true, ctrl.Result{}, nil
	}
	if job.Running() {
		r.showJob(s, job.What)
		return false, ctrl.Result{}, nil // we are notified when it has ended
	}
	s.ended = true
	out := &job.Result
	if out.interrupted {
		return false, ctrl.Result{RequeueAfter: soon}, nil
	}
	if out.err != nil {
		return r.collectFailure(s, job.What, out.err)
	}
	r.forget(o)
	switch job.What {
	case examining:
		asked := s.now.UTC().Truncate(time.Millisecond)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationRestoreAnnotation, strings.Join([]string{
			idOf(o, asked), asked.Format(time.RFC3339Nano), out.manifest.SHA256, strconv.FormatInt(out.manifest.Size, 10),
		}, " "))
		is := &out.manifest
		r.Events.Eventf(o, nil, corev1.EventTypeNormal, "BackupExamined", string(o.Spec.Type),
			"the snapshot is of %s at %s by host %s, revision %d, %d bytes, SHA-256 %s",
			is.Cluster, is.Time.UTC().Format(time.RFC3339), is.Host, is.Revision, is.Size, is.SHA256)
	case sending:
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationRestoringAnnotation, s.now.UTC().Format(time.RFC3339))
		r.Events.Eventf(o, nil, corev1.EventTypeWarning, "EtcdRestoreStarted", string(o.Spec.Type),
			"all hosts have the snapshot: the API is away until etcd of %s is restored, and what was written since is lost", s.cluster.Name)
	case restoring:
		return r.conclude(s, nil)
	}
	return false, ctrl.Result{RequeueAfter: soon}, nil
}

// collectFailure decides whether a job that has failed is tried again. What only looks is, unless it would fail in the same way; what has
// begun to end something is, until it is done.
func (r *KubexmOperationReconciler) collectFailure(s *scope, what string, err error) (bool, ctrl.Result, error) {
	o := s.operation
	if what == sending || what == examining && (errors.As(err, new(*unfit)) || backup.IsLasting(err)) {
		return r.conclude(s, err)
	}
	r.mu.Lock()
	if r.attempts == nil {
		r.attempts = map[types.UID]attempt{}
	}
	tried := attempt{r.attempts[o.UID].failed + 1, s.now}
	r.attempts[o.UID] = tried
	r.mu.Unlock()
	if what == examining {
		return r.wait(s, textOf(err))
	}
	for i := range o.Status.Hosts {
		h := &o.Status.Hosts[i]
		h.Message = "it waits for the others"
		if failed := failureOf(err, h.Name); failed != nil {
			h.Message = host.Text(failed.Error(), longest)
		}
	}
	setSucceeded(o, metav1.ConditionUnknown, bootstrapv1.OperationRunningReason, host.Text(fmt.Sprintf(
		"it restores etcd; attempt %d has failed, and another follows in %s: %s", tried.failed, tried.pause(), textOf(err)), longest))
	r.Events.Eventf(o, nil, corev1.EventTypeWarning, "EtcdRestoreFailed", string(o.Spec.Type), "attempt %d: %s",
		tried.failed, host.Text(textOf(err), longest))
	return false, ctrl.Result{RequeueAfter: tried.pause()}, nil
}

func (a attempt) pause() time.Duration {
	pause := firstPause
	for i := 1; i < a.failed && pause < lastPause; i++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

// textOf is an error for people: the engine's without what its run was called.
func textOf(err error) string {
	var failed *engine.Error
	if !errors.As(err, &failed) || len(failed.Failures) == 0 {
		return err.Error()
	}
	var all []string
	for _, f := range failed.Failures {
		all = append(all, f.Error())
	}
	return strings.Join(all, "\n")
}

// failureOf is why something failed on a host, nil if it did not there.
func failureOf(err error, name string) error {
	var failed *engine.Error
	if !errors.As(err, &failed) {
		return nil
	}
	for _, f := range failed.Failures {
		if f.Host == name {
			return f
		}
	}
	return nil
}

// showJob says what each host does.
func (r *KubexmOperationReconciler) showJob(s *scope, what string) {
	o := s.operation
	r.mu.Lock()
	shown := r.progress[o.UID]
	r.mu.Unlock()
	for i := range o.Status.Hosts {
		h := &o.Status.Hosts[i]
		if what != examining {
			h.Phase = bootstrapv1.OperationRunning
			h.RequestTime = o.Status.StartTime
		}
		if shown == nil {
			continue
		}
		if now := shown.of(h.Name); now != "" {
			h.Message = host.Text(now, longest)
		}
	}
	o.Status.Summary, _, _ = sum(o.Status.Hosts)
	reason, message := bootstrapv1.OperationWaitingReason, "the backup is examined, and nothing has ended yet"
	switch what {
	case sending:
		reason, message = bootstrapv1.OperationRunningReason, "the snapshot is sent to all hosts, and nothing has ended yet"
	case restoring:
		reason, message = bootstrapv1.OperationRunningReason, "it restores etcd: the API is away until it is done"
	}
	setSucceeded(o, metav1.ConditionUnknown, reason, message)
}

// forget drops what is remembered of jobs.
func (r *KubexmOperationReconciler) forget(o *bootstrapv1.KubexmOperation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.progress, o.UID)
	delete(r.attempts, o.UID)
}

// conclude ends the operation. failed is why etcd was not restored, nil if it was.
func (r *KubexmOperationReconciler) conclude(s *scope, failed error) (bool, ctrl.Result, error) {
	o := s.operation
	for i := range o.Status.Hosts {
		h := &o.Status.Hosts[i]
		h.EndTime = metav1.NewTime(s.now)
		switch here := failureOf(failed, h.Name); {
		case failed == nil:
			h.Phase, h.Message = bootstrapv1.OperationSucceeded, "etcd is restored, and the API answers"
		case here != nil:
			h.Phase, h.Message = bootstrapv1.OperationFailed, host.Text(here.Error(), longest)
		case s.restores():
			h.Phase, h.Message = bootstrapv1.OperationFailed, "the restore is under way on this host, and nobody goes on with it"
		default:
			h.Phase, h.Message = bootstrapv1.OperationSkipped, "nothing has ended on this host"
		}
	}
	o.Status.Summary, _, _ = sum(o.Status.Hosts)
	status, reason, kind := metav1.ConditionTrue, bootstrapv1.OperationSucceededReason, corev1.EventTypeNormal
	var names []string
	for _, h := range o.Status.Hosts {
		names = append(names, h.Name)
	}
	message := "etcd was restored on " + strings.Join(names, ", ")
	if failed != nil {
		status, reason, kind = metav1.ConditionFalse, bootstrapv1.OperationFailedReason, corev1.EventTypeWarning
		message = host.Text(textOf(failed), longest)
	}
	setSucceeded(o, status, reason, message)
	o.Status.CompletionTime = metav1.NewTime(s.now)
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationCompletedAnnotation, s.now.UTC().Format(time.RFC3339)+" "+reason)
	r.Events.Eventf(o, nil, kind, "Operation"+reason, string(o.Spec.Type), "%s", message)
	return false, ctrl.Result{RequeueAfter: soon}, nil // the hosts are released when this is written
}

// findParties finds out who has a part in the restore, and how they are reached.
func (r *KubexmOperationReconciler) findParties(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o := s.operation
	var err error
	if s.members, err = r.membershipOf(ctx, s); apierrors.IsNotFound(err) {
		return r.wait(s, err.Error())
	} else if err != nil {
		return false, ctrl.Result{}, err
	}
	if s.members.config.Spec.Cluster.Etcd.IsExternal() {
		return r.conclude(s, fmt.Errorf("etcd of %s is external: those who run it restore it", s.cluster.Name))
	}
	if !s.restores() {
		if why := s.members.unsettled(); why != "" {
			return r.unhold(ctx, s, why)
		}
		r.listHosts(s)
	}
	if held := s.members.config.Annotations[bootstrapv1.HeldByAnnotation]; !s.restores() && (held == "" || held != holder.Of(o)) {
		others := &bootstrapv1.KubexmOperationList{} // who comes later waits for us
		if err := r.Reader.List(ctx, others, client.InNamespace(o.Namespace)); err != nil {
			return false, ctrl.Result{}, fmt.Errorf("list the KubexmOperations: %w", err)
		}
		if why := busy(others.Items, o, o.Status.Hosts); why != "" {
			return r.wait(s, why)
		}
	}
	t := &together{cluster: s.cluster.Name}
	for _, h := range o.Status.Hosts {
		at := slices.IndexFunc(s.members.configs, func(c bootstrapv1.KubexmConfig) bool { return c.Name == h.ConfigName })
		if at < 0 {
			return r.wait(s, fmt.Sprintf("the KubexmConfig %s does not exist", h.ConfigName))
		}
		p, err := r.Hosts.Party(ctx, &s.members.configs[at])
		if err != nil {
			return r.wait(s, err.Error())
		}
		t.parties = append(t.parties, p)
	}
	for _, p := range t.parties {
		for _, m := range p.Target.EtcdMembers() {
			if !slices.ContainsFunc(t.parties, func(p *reconcilers.Party) bool { return p.Target.Host.Name == m.Name }) {
				return r.wait(s, fmt.Sprintf("the host %s is to have a member of etcd, and is none of those that are restored", m.Name))
			}
		}
	}
	if from := o.Spec.RestoreEtcd.Snapshot.Host.Name; from != "" {
		if !slices.ContainsFunc(t.parties, func(p *reconcilers.Party) bool { return p.Target.Host.Name == from }) {
			return r.wait(s, fmt.Sprintf("spec.restoreEtcd.snapshot.host.name: %s is no host of etcd or of the control plane of %s",
				from, s.cluster.Name))
		}
	}
	t.options = r.Hosts.Together(client.ObjectKeyFromObject(s.cluster), t.parties)
	if t.source, err = r.sourceOf(ctx, o, &t.options); err != nil {
		return r.wait(s, err.Error())
	}
	s.together = t
	return true, ctrl.Result{}, nil
}

// unhold waits with hosts that may go on: what is waited for is theirs to bring about.
func (r *KubexmOperationReconciler) unhold(ctx context.Context, s *scope, why string) (bool, ctrl.Result, error) {
	if err := r.release(ctx, s.operation); apierrors.IsConflict(err) {
		return false, ctrl.Result{RequeueAfter: soon}, nil
	} else if err != nil {
		return false, ctrl.Result{}, err
	}
	return r.wait(s, why)
}

// listHosts brings the hosts that are shown up to date, as long as nothing has ended.
func (r *KubexmOperationReconciler) listHosts(s *scope) {
	have := s.operation.Status.Hosts
	same := func(a bootstrapv1.HostOperationStatus, b bootstrapv1.KubexmConfig) bool {
		return a.ConfigName == b.Name
	}
	if slices.EqualFunc(have, s.configs, same) {
		return
	}
	s.operation.Status.Hosts = nil
	s.list()
}

// pause is how long the next attempt has to wait.
func (r *KubexmOperationReconciler) pause(s *scope) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.attempts[s.operation.UID]
	if !found {
		return 0
	}
	return last.pause() - s.now.Sub(last.ended)
}

// examine finds out whether the backup is one to be restored, before any host stands still for it.
func (r *KubexmOperationReconciler) examine(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	o, t := s.operation, s.together
	if o.Annotations[bootstrapv1.OperationRestoreAnnotation] != "" {
		var err error
		t.restore, err = restoreOf(o)
		return err == nil, ctrl.Result{}, err
	}
	if left := r.pause(s); left > 0 {
		return false, ctrl.Result{RequeueAfter: left}, nil
	}
	from := &o.Spec.RestoreEtcd
	wanted := backup.Wanted{
		OfCluster: from.OfCluster, Override: "spec.restoreEtcd.ofCluster",
		NotBefore: o.Status.StartTime.Add(-time.Duration(ptr.Deref(from.AcceptedLossSeconds, 0)) * time.Second),
	}
	r.start(ctx, s, examining, func(ctx context.Context, tell event.Reader) result { return t.examine(ctx, tell, wanted) })
	r.showJob(s, examining)
	return false, ctrl.Result{}, nil
}

// idOf is by what a restore is known on hosts.
func idOf(o *bootstrapv1.KubexmOperation, asked time.Time) string {
	sum := sha256.Sum256([]byte(string(o.UID) + " " + asked.Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:8])
}

// restoreOf is the restore that was written down.
func restoreOf(o *bootstrapv1.KubexmOperation) (pipeline.Restore, error) {
	words := strings.Fields(o.Annotations[bootstrapv1.OperationRestoreAnnotation])
	fail := func(err error) (pipeline.Restore, error) {
		return pipeline.Restore{}, fmt.Errorf("the annotation %s has %q, which is no ID, time, SHA-256 and size: %w",
			bootstrapv1.OperationRestoreAnnotation, host.Text(strings.Join(words, " "), 200), err)
	}
	if len(words) != 4 {
		return fail(fmt.Errorf("it has %d words", len(words)))
	}
	asked, err := time.Parse(time.RFC3339Nano, words[1])
	if err != nil {
		return fail(err)
	}
	size, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil {
		return fail(err)
	}
	return pipeline.Restore{ID: words[0], Asked: asked, Digest: "sha256:" + words[2], Size: size}, nil
}

// send sends the snapshot to the hosts, once.
func (r *KubexmOperationReconciler) send(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.restores() {
		return true, ctrl.Result{}, nil
	}
	r.start(ctx, s, sending, s.together.send)
	r.showJob(s, sending)
	return false, ctrl.Result{}, nil
}

// restore makes the whole plan so.
func (r *KubexmOperationReconciler) restore(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if left := r.pause(s); left > 0 {
		return false, ctrl.Result{RequeueAfter: left}, nil
	}
	t := s.together
	r.start(ctx, s, restoring, func(ctx context.Context, tell event.Reader) result { return t.run(ctx, tell, whole) })
	r.showJob(s, restoring)
	return false, ctrl.Result{}, nil
}
