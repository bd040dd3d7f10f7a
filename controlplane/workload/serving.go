// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// ApproveServing approves the requests of kubelets for serving certificates that may be (see snapshot.ControlPlane.MayServe). Others stay
// as they are: somebody else may know better.
func (v *View) ApproveServing(ctx context.Context, c *snapshot.ControlPlane) *snapshot.Serving {
	defer v.close()
	s := &snapshot.Serving{}
	requests := v.client.CertificatesV1().CertificateSigningRequests()
	all, err := requests.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName).String(),
	})
	if err != nil {
		s.Err = fmt.Errorf("list the kubelets' requests for certificates: %w", err)
		return s
	}
	pending := slices.DeleteFunc(all.Items, func(r certificatesv1.CertificateSigningRequest) bool {
		return len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0
	})
	if len(pending) == 0 {
		return s
	}
	slices.SortFunc(pending, func(a, b certificatesv1.CertificateSigningRequest) int { return cmp.Compare(a.Name, b.Name) })
	nodes, err := v.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		s.Err = fmt.Errorf("list the Nodes: %w", err)
		return s
	}
	for i := range pending {
		r := &pending[i]
		if why := c.MayServe(r, nodes.Items); why != nil {
			s.Refused = append(s.Refused, fmt.Sprintf("%s of %s: %v", r.Name, r.Spec.Username, why))
			continue
		}
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "NodeOfMachine",
			Message: "it is for the own names and addresses of a Machine's Node, by the KubexmControlPlane " + c.Object.Name,
		})
		_, err := requests.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // somebody else has decided
		case err != nil:
			s.Err = errors.Join(s.Err, fmt.Errorf("approve the request %s: %w", r.Name, err))
		default:
			s.Approved = append(s.Approved, strings.TrimPrefix(r.Spec.Username, "system:node:"))
		}
	}
	return s
}
