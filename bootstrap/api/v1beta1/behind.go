// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Behind is why the host is not known to be as its KubexmConfig says with this version of Kubernetes, "" if it is. Without a version,
// any will do.
func (c *KubexmConfig) Behind(version string) string {
	converged := meta.FindStatusCondition(c.Status.Conditions, HostConvergedCondition)
	waits := ""
	if allowed := meta.FindStatusCondition(c.Status.Conditions, DisruptionAllowedCondition); allowed != nil && allowed.Status == metav1.ConditionFalse {
		waits = "; " + allowed.Reason + ", says its " + DisruptionAllowedCondition
	}
	last := c.Status.LastRun
	switch has := c.Status.KubernetesVersion; {
	case converged == nil:
		return "it is not as planned yet"
	case converged.Status != metav1.ConditionTrue:
		return strings.TrimSuffix("it is not as planned yet: "+converged.Message, ": ")
	case has == "" && version != "":
		return fmt.Sprintf("it is not known to have %s yet", version)
	case has != version && version != "":
		return fmt.Sprintf("it has %s, and is to have %s", has, version) + waits
	case !last.StartTime.IsZero() && last.EndTime.IsZero():
		return "it follows a change at present"
	case c.Status.ConvergedGeneration != c.Generation:
		return "it has not taken in the last change of its KubexmConfig yet" + waits
	}
	return ""
}
