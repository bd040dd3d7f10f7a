// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// wantsRecovery reports whether somebody has requested that key pairs are read back which are missing.
func (s *scope) wantsRecovery() bool {
	_, wants := s.Object.Annotations[controlplanev1.RecoverCertificatesAnnotation]
	return wants
}

// recovers has the pairs with these names read back from a control plane host, if somebody wants that, and returns a sentence that says
// how far it is. They go from that host's reconciler to their Secrets, and never through here.
func (r *KubexmControlPlaneReconciler) recovers(ctx context.Context, s *scope, names []string, recorded pki.Fingerprints) (string, error) {
	if !s.wantsRecovery() {
		return "", nil
	}
	wanted, unknown := s.fingerprintsOf(names, recorded)
	if len(unknown) > 0 {
		return fmt.Sprintf("They are not read back from a host: nothing is recorded of %s, by which what a host has could be "+
			"verified. Add its fingerprint to the annotation %s. ",
			strings.Join(unknown, ", "), controlplanev1.AuthoritiesAnnotation), nil
	}
	d := s.Recover()
	if d.Ask == nil {
		return sentence(d.Message), nil
	}
	if err := r.askRecovery(ctx, s, d.Ask, wanted); err != nil {
		return "", err
	}
	ctrl.LoggerFrom(ctx).Info("Reading key pairs back from a control plane host", "Machine", d.Ask.Name, "pairs", names)
	r.Events.Eventf(s.Object, d.Ask, corev1.EventTypeNormal, "RecoveringCertificates", "Recover",
		"the key pairs %s are read back from the host of the Machine %s", strings.Join(names, ", "), d.Ask.Name)
	return sentence(d.Message), nil
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + ". " }

// fingerprintsOf are those that the pairs with these names must have, and the names of those of which none is recorded, neither here nor
// in the KubexmClusterConfig.
func (s *scope) fingerprintsOf(names []string, recorded pki.Fingerprints) (wanted pki.Fingerprints, unknown []string) {
	wanted = pki.Fingerprints{}
	for _, name := range names {
		is := recorded[name]
		if is == "" && s.clusterConfig != nil {
			is = s.clusterConfig.Spec.FingerprintOf(name)
		}
		if is == "" {
			unknown = append(unknown, name)
			continue
		}
		wanted[name] = is
	}
	return wanted, unknown
}

func (r *KubexmControlPlaneReconciler) askRecovery(ctx context.Context, s *scope, m *clusterv1.Machine, wanted pki.Fingerprints) error {
	config := s.ConfigOf(m)
	before := config.DeepCopy()
	config.AskRecovery(wanted.String(), s.Now)
	if err := r.Client.Patch(ctx, config, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotate the KubexmConfig %s: %w", config.Name, err)
	}
	return nil
}

// recovered removes the request that is fulfilled: nothing is missing, and all is as it was recorded.
func (r *KubexmControlPlaneReconciler) recovered(ctx context.Context, s *scope) error {
	if !s.wantsRecovery() {
		return nil
	}
	noted := s.Object.DeepCopy()
	delete(noted.Annotations, controlplanev1.RecoverCertificatesAnnotation)
	if err := r.Client.Patch(ctx, noted, client.MergeFrom(s.Object)); err != nil {
		return fmt.Errorf("remove the annotation %s: %w", controlplanev1.RecoverCertificatesAnnotation, err)
	}
	s.Object.Annotations, s.Object.ResourceVersion = noted.Annotations, noted.ResourceVersion
	r.Events.Eventf(s.Object, nil, corev1.EventTypeNormal, "CertificatesRecovered", "Recover",
		"the Secrets of all key pairs are there, and hold those that the cluster was made with")
	return nil
}
