// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// untrustedAgain is when Secrets that somebody has to restore are read again: they are not watched.
const untrustedAgain = 15 * time.Second

// untrusted says that a cluster cannot be worked on because its key pairs are not those that it was made with. It is for a person to
// restore them.
type untrusted struct{ *decision.Blocker }

// distrust is such an error. The message has the remedy.
func distrust(reason, format string, args ...any) error {
	return &untrusted{decision.Block(reason, format, args...)}
}

// Error is the message.
func (u *untrusted) Error() string { return u.Message }

// mayComplete refuses to make pairs for a cluster that has begun, and has them read back if somebody wants that.
func (r *KubexmControlPlaneReconciler) mayComplete(ctx context.Context, s *scope, known *pki.Authorities, recorded pki.Fingerprints) error {
	var names, missing []string
	for _, p := range purposesOf(s) {
		if pair, _ := known.Get(string(p)); pair.IsZero() && !s.signsNothing(p) {
			names, missing = append(names, string(p)), append(missing, capisecret.Name(s.Cluster.Name, p))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	begun, err := r.begun(ctx, s, recorded)
	if err != nil || begun == "" {
		return err
	}
	said, err := r.recovers(ctx, s, names, recorded)
	if err != nil {
		return err
	}
	return distrust(controlplanev1.AuthorityMissingReason,
		"missing: Secret %s. %sNo other key pair is made for a cluster that exists (%s): its hosts would no longer trust each other. %s",
		strings.Join(missing, ", "), said, begun, restore(s, ""))
}

// signsNothing reports whether nothing in the cluster is signed by the pair: another may be made in its place.
func (s *scope) signsNothing(p capisecret.Purpose) bool {
	return p == capisecret.EtcdCA && s.Object.Spec.Cluster.Etcd.IsExternal()
}

// restore is the remedy. first is what comes before the pairs are read back, "" if nothing does.
func restore(s *scope, first string) string {
	return fmt.Sprintf("No host is changed meanwhile. Restore it from a backup, or %shave the key pairs read back from a control plane host: "+
		"kubectl annotate kubexmcontrolplane -n %s %s %s=%s --overwrite (or the name of one of its Machines), or by the command: "+
		"kubexm certs recover %s -f config.yaml, and then kubexm certs secrets %s --namespace %s | kubectl apply -f -",
		first, s.Object.Namespace, s.Object.Name, controlplanev1.RecoverCertificatesAnnotation, controlplanev1.RecoverFromAny,
		s.Cluster.Name, s.Cluster.Name, s.Cluster.Namespace)
}

// deleteFirst comes before a pair is read back whose Secret holds something else.
const deleteFirst = "delete the Secret and "

// otherEncryption is an error if the cluster's hosts were made with another answer to whether they encrypt. Admission refuses such a
// change; where it was not asked, API servers could not read what others have written.
func otherEncryption(s *scope, recorded pki.Fingerprints) error {
	was := recorded[pki.EncryptionName] != ""
	if len(recorded) == 0 || was == s.encrypts() {
		return nil
	}
	message := "the cluster was made without an encryption key, and is declared to encrypt: set it to None"
	if was {
		message = "the cluster was made with an encryption key, and is declared to encrypt nothing: set it back to what it was"
	}
	return distrust(controlplanev1.AuthorityDiffersReason,
		"spec.cluster.kubernetes.encryptionAtRest.provider: %s. No host is changed meanwhile (the record is the annotation %s)",
		message, controlplanev1.AuthoritiesAnnotation)
}

// begun is what shows that hosts may have been made with the cluster's key pairs, "" if nothing does. Not all of it is in a status, which
// a move or a restore may lose. It is asked of the API server: caches may not show yet what is being restored.
func (r *KubexmControlPlaneReconciler) begun(ctx context.Context, s *scope, recorded pki.Fingerprints) (string, error) {
	switch {
	case len(recorded) > 0:
		return "the annotation " + controlplanev1.AuthoritiesAnnotation + " has their fingerprints", nil
	case s.Initialized() || ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false):
		return "its control plane was initialized", nil
	case s.wantsRecovery():
		return "the annotation " + controlplanev1.RecoverCertificatesAnnotation + " says so", nil
	}
	machines, err := machinesOf(ctx, r.Reader, s.Cluster)
	if err != nil {
		return "", err
	}
	for i := range machines {
		if m := &machines[i]; snapshot.IsControlPlane(m) || m.Status.NodeRef.IsDefined() {
			return "the Machine " + m.Name + " exists", nil
		}
	}
	configs := &bootstrapv1.KubexmConfigList{}
	if err := r.Reader.List(ctx, configs, client.InNamespace(s.Cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.Cluster.Name}); err != nil {
		return "", fmt.Errorf("list the KubexmConfigs of the Cluster %s: %w", s.Cluster.Name, err)
	}
	for i := range configs.Items {
		if c := &configs.Items[i]; changedHost(c) {
			return "the KubexmConfig " + c.Name + " exists", nil
		}
	}
	kubeconfig, found := capisecret.Name(s.Cluster.Name, capisecret.Kubeconfig), &corev1.Secret{}
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: kubeconfig}, found)
	// One that a user has brought says nothing of hosts.
	if owner := metav1.GetControllerOf(found); err == nil && owner != nil && owner.Kind == "KubexmControlPlane" {
		return "the Secret " + kubeconfig + " was made for it", nil
	}
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("get the Secret %s: %w", kubeconfig, err)
	}
	return "", nil
}

// changedHost reports whether a KubexmConfig's host may have been changed. Those that the control plane makes come after the key pairs;
// those of workers may come before, and wait.
func changedHost(c *bootstrapv1.KubexmConfig) bool {
	return c.Spec.HostRef.Name != "" || c.Spec.BootstrapMode != "" ||
		c.Status.PlanDigest != "" || c.Status.KubernetesVersion != "" || !c.Status.Operation(bootstrapv1.ConvergeOperation).StartTime.IsZero()
}

// differing is an error if a pair is not the one that was recorded.
func differing(s *scope, recorded, now pki.Fingerprints) error {
	for _, name := range pki.AllNames() {
		if was := recorded[name]; was != "" && was != now[name] && !s.signsNothing(capisecret.Purpose(name)) {
			return distrust(controlplanev1.AuthorityDiffersReason, "the Secret %s holds another key pair, or another key (%s) than "+
				"the cluster was made with (%s). %s. Where no host was ever made with the other, remove the annotation %s",
				capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)), now[name], was,
				restore(s, deleteFirst), controlplanev1.AuthoritiesAnnotation)
		}
	}
	return nil
}

// record writes down the pairs' fingerprints, where a move and a backup of the objects keep them.
func (r *KubexmControlPlaneReconciler) record(ctx context.Context, s *scope, now pki.Fingerprints) error {
	if s.Object.Annotations[controlplanev1.AuthoritiesAnnotation] == now.String() {
		return nil
	}
	noted := s.Object.DeepCopy()
	metav1.SetMetaDataAnnotation(&noted.ObjectMeta, controlplanev1.AuthoritiesAnnotation, now.String())
	if err := r.Client.Patch(ctx, noted, client.MergeFrom(s.Object)); err != nil {
		return fmt.Errorf("record the fingerprints of the certificate authorities: %w", err)
	}
	s.Object.Annotations, s.Object.ResourceVersion = noted.Annotations, noted.ResourceVersion
	return nil
}
