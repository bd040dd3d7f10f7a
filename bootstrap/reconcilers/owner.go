// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// adopts is from whom the host is taken over, "" if from nobody.
func (s *scope) adopts() string { return s.config.Annotations[bootstrapv1.AdoptHostAnnotation] }

// ownership says for whom the scope's host is changed. What it is asked first for reads the cluster's authority; without one, no
// host is touched.
func (r *KubexmConfigReconciler) ownership(s *scope) func(context.Context, string) (host.Ownership, error) {
	cluster := s.clusterKey()
	o := host.Ownership{Adopt: s.adopts(), Owner: host.Owner{Cluster: cluster.String(), Role: string(s.role()), Host: s.host.Name}}
	recorded := s.config.Annotations[bootstrapv1.AuthorityAnnotation]
	return func(ctx context.Context, _ string) (host.Ownership, error) {
		claim := o
		if claim.Owner.Authority = recorded; recorded != "" {
			return claim, nil
		}
		var err error
		claim.Owner.Authority, err = r.authority(ctx, cluster)
		return claim, err
	}
}

// recordAuthority records on the KubexmConfig which cluster its host is made for, before the host is touched. A deletion may take the
// Cluster's Secrets first, and the host must be reset all the same. It returns why the host must not be touched: it was made with
// another authority than the cluster has now. Nil means that it may be.
func recordAuthority(s *scope, ca *corev1.Secret) *decision.Blocker {
	now, err := pki.Fingerprint(ca.Data[capisecret.TLSCrtDataName])
	if err != nil {
		return decision.Block(bootstrapv1.WaitingForClusterReason,
			"the Secret %s with the cluster's certificate authority cannot be read: %v", ca.Name, err)
	}
	if was := s.config.Annotations[bootstrapv1.AuthorityAnnotation]; was != "" && was != now {
		return decision.Block(bootstrapv1.WaitingForClusterReason,
			"the Secret %s holds another certificate authority (%s) than the host was made with (%s): restore it", ca.Name, now, was)
	}
	metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.AuthorityAnnotation, now)
	return nil
}

// authority is the fingerprint of the cluster's certificate authority.
func (r *KubexmConfigReconciler) authority(ctx context.Context, cluster client.ObjectKey) (string, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: capisecret.Name(cluster.Name, capisecret.ClusterCA)}
	s := &corev1.Secret{}
	if err := r.Reader.Get(ctx, key, s); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the Secret %s with the cluster's certificate authority does not exist: the host's ownership "+
			"cannot be verified, so it is not changed. Remedy: restore the Secret", key.Name)
	} else if err != nil {
		return "", fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	fingerprint, err := pki.Fingerprint(s.Data[capisecret.TLSCrtDataName])
	if err != nil {
		return "", fmt.Errorf("the Secret %s with the cluster's certificate authority: %w", key.Name, err)
	}
	return fingerprint, nil
}

// foreign reports whether a job has ended because the host is somebody else's.
func foreign(err error) bool { return host.KindOf(err) == host.KindForeign }

// howToAdopt says how a person takes the host over.
func howToAdopt(c *bootstrapv1.KubexmConfig) string {
	return fmt.Sprintf("To adopt it: kubectl annotate kubexmconfig -n %s %s %s=<the cluster that it belongs to> --overwrite",
		c.Namespace, c.Name, bootstrapv1.AdoptHostAnnotation)
}

// tellAdopted says that a host was taken over from another owner. What asked for it is done then.
func (r *KubexmConfigReconciler) tellAdopted(s *scope, report *engine.Report, doing string) {
	if len(report.Hosts) == 0 || report.Hosts[0].Adopted == nil {
		return
	}
	from := report.Hosts[0].Adopted
	whose := "an owner that is not known"
	if *from != (host.Owner{Cluster: host.AdoptUnknown}) {
		whose = from.String()
	}
	r.Events.Eventf(s.config, nil, corev1.EventTypeWarning, "HostAdopted", doing, "the host was taken over, as the annotation %s says; it was %s",
		bootstrapv1.AdoptHostAnnotation, short(whose))
	delete(s.config.Annotations, bootstrapv1.AdoptHostAnnotation)
}
