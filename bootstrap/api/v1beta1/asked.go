// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConvergeTimeout is how long converging a host may take to help its unhealthy Machine, where nothing is said of it.
const ConvergeTimeout = 5 * time.Minute

// Ask asks the host, as of now, for what an annotation is for: ConvergeAnnotation, RebootAnnotation, AskEtcdAnnotation or
// SaveEtcdAnnotation. The annotation, which is to be written, is the record of it as well; it counts seconds.
func (c *KubexmConfig) Ask(annotation string, now time.Time) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, annotation, now.UTC().Format(time.RFC3339))
}

// Asked is when the host was last asked for it, the zero time if never, or in another way.
func (c *KubexmConfig) Asked(annotation string) time.Time {
	asked, err := time.Parse(time.RFC3339, c.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return asked
}

// Answers reports whether the host was reached when it was last tried to, or was not tried yet.
func (c *KubexmConfig) Answers() bool {
	return !meta.IsStatusConditionFalse(c.Status.Conditions, HostReachableCondition)
}
