// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// recovering is what the job is called that reads key pairs of the cluster back from its host.
const recovering = string(bootstrapv1.RecoverCertificatesOperation)

// recoverLimit is how long it may take.
const recoverLimit = time.Minute

// recoverCertificates reads key pairs of the cluster back from the host if its control plane has asked for them: their Secrets are missing,
// so that nothing else can be done with hosts. It changes nothing on the host.
func (r *KubexmConfigReconciler) recoverCertificates() operation {
	return operation{name: bootstrapv1.RecoverCertificatesOperation, due: r.recoveryIsDue, settle: r.settleRecovery}
}

func (r *KubexmConfigReconciler) recoveryIsDue(_ context.Context, s *scope) (*run, error) {
	asked := s.asks(bootstrapv1.RecoverCertificatesOperation)
	if asked.IsZero() {
		return nil, nil
	}
	j := &recoveryJob{withoutPlan: r.withoutPlan(s, recovering, asked)}
	j.wanted, j.refused = wantedPairs(s)
	return &run{Urgent: true, Do: j.do, Lost: lostOf(asked)}, nil
}

// wantedPairs are the fingerprints of what is asked for. The error says why this host, or this request, is none to answer it.
func wantedPairs(s *scope) (pki.Fingerprints, error) {
	if controllerOf(s) == nil {
		return nil, errors.New("the host is none of a control plane's: it has no key of an authority")
	}
	wanted, err := pki.ParseFingerprints(s.config.AskedRecovery())
	if err == nil && len(wanted) == 0 {
		err = errors.New("no fingerprint follows the time")
	}
	if err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", bootstrapv1.RecoverCertificatesAnnotation, err)
	}
	if s.clusterConfig == nil {
		return wanted, nil
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if was := s.clusterConfig.Spec.FingerprintOf(name); was != "" && was != wanted[name] {
			return nil, fmt.Errorf("the KubexmClusterConfig %s says that the cluster was made with another key pair %s (%s) than is asked for (%s)",
				s.clusterConfig.Name, name, was, wanted[name])
		}
	}
	return wanted, nil
}

// controllerOf is the control plane that owns the Machine, nil if none does.
func controllerOf(s *scope) *metav1.OwnerReference {
	if !s.isControlPlane() {
		return nil
	}
	return metav1.GetControllerOf(s.machine)
}

// recoveryJob is all that a recovery needs.
type recoveryJob struct {
	withoutPlan
	wanted pki.Fingerprints
	// refused is why the host is not dialled for it, nil if it is.
	refused error
}

func (j *recoveryJob) do(ctx context.Context, tell event.Reader) outcome {
	out := outcome{asked: j.asked}
	out.err = j.tell(ctx, tell, func(ctx context.Context) (err error) {
		if j.refused != nil {
			return j.refused
		}
		within, cancel := context.WithTimeout(ctx, recoverLimit)
		defer cancel()
		out.recovered, err = j.read(within)
		return err
	})
	return out
}

// read reads the pairs. The host counts only if its own record says that it is this host of the cluster, and each pair only if it is the
// one that the cluster was made with.
func (j *recoveryJob) read(ctx context.Context) (found pki.Authorities, err error) {
	claim, err := j.ownership(ctx, j.host)
	if ca := j.wanted[pki.ClusterName]; ca != "" {
		claim.Owner.Authority, err = ca, nil // else the Secret says that, which is missing
	}
	if err != nil {
		return found, err
	}
	h, err := j.dial(ctx, j.host)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	seen, err := h.Observe(ctx, host.Query{})
	if err != nil {
		return found, err
	}
	if claim.Adopt = ""; !claim.Owns(seen) {
		if err := claim.Check(j.host, seen); err != nil {
			return found, err
		}
		return found, fmt.Errorf("host %s: it has no record of the cluster: it was never made a host of it, or was reset", j.host)
	}
	names := slices.Sorted(maps.Keys(j.wanted))
	all, err := recovery.Read(ctx, h, names)
	if err != nil {
		return found, err
	}
	has, err := all.Fingerprints()
	if err != nil {
		return found, err
	}
	for _, name := range names {
		if has[name] != j.wanted[name] {
			return found, fmt.Errorf("host %s: the key pair %s there is another one (%s) than the cluster was made with (%s)",
				j.host, name, cmp.Or(has[name], "none"), j.wanted[name])
		}
	}
	return all, nil
}

// settleRecovery writes the Secrets of what was read. One that was interrupted is tried again.
func (r *KubexmConfigReconciler) settleRecovery(ctx context.Context, s *scope) (ctrl.Result, error) {
	out := &s.job.Result
	if interrupted(out.err) {
		return decideAnew(), nil
	}
	if out.err != nil {
		last := record(s, "")
		r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "CertificatesNotRecovered", recovering, "%s", last.Message)
		return decideAnew(), nil
	}
	written, err := r.writePairs(ctx, s, &out.recovered)
	if err != nil {
		return ctrl.Result{}, err // they are not lost: the job's result is kept
	}
	last := record(s, "read back from the host, and written: Secret "+cmp.Or(strings.Join(written, ", "), "none, all are there"))
	r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, "CertificatesRecovered", recovering, "%s", last.Message)
	return decideAnew(), nil
}

// writePairs writes the Secrets that are missing, as Cluster API knows them, and returns their names. They are whose the Machine is: the
// control plane's.
func (r *KubexmConfigReconciler) writePairs(ctx context.Context, s *scope, pairs *pki.Authorities) (written []string, err error) {
	owner := controllerOf(s)
	if owner == nil {
		return nil, errors.New("the Machine has no owner any more, whose the Secrets would be")
	}
	owner.BlockOwnerDeletion = nil // it is not ours to say
	for _, name := range pki.AllNames() {
		pair, _ := pairs.Get(name)
		if pair.IsZero() {
			continue
		}
		data := map[string][]byte{capisecret.TLSCrtDataName: pair.Cert, capisecret.TLSKeyDataName: pair.Key.Reveal()}
		if name == pki.EncryptionName {
			data = map[string][]byte{pki.EncryptionKeyName: pair.Key.Reveal()}
		}
		object := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.cluster.Namespace, Name: capisecret.Name(s.cluster.Name, capisecret.Purpose(name)),
				Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
				OwnerReferences: []metav1.OwnerReference{*owner},
			},
			Type: clusterv1.ClusterSecretType,
			Data: data,
		}
		switch err := r.Client.Create(ctx, object); {
		case err == nil:
			written = append(written, object.Name)
		case !apierrors.IsAlreadyExists(err): // somebody else has restored that one, which is never overwritten
			return written, fmt.Errorf("create the Secret %s: %w", object.Name, err)
		}
	}
	return written, nil
}
