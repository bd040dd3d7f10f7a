// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Problem is what the first of these conditions says that is False, "" if none is. A host on its way to what it must be has none.
func (c *KubexmConfig) Problem(kinds ...string) string {
	for _, kind := range kinds {
		said := meta.FindStatusCondition(c.Status.Conditions, kind)
		if said != nil && said.Status == metav1.ConditionFalse && said.Reason != ConvergingReason {
			return strings.TrimSuffix(said.Reason+": "+said.Message, ": ")
		}
	}
	return ""
}
