// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConvergeTimeout is how long converging a host may take to help its unhealthy Machine, where nothing is said of it.
const ConvergeTimeout = 5 * time.Minute

// Ask asks the host, as of now, for what an annotation is for: ConvergeAnnotation, RebootAnnotation, AskEtcdAnnotation or
// SaveEtcdAnnotation. The annotation, which is to be written, is the record of it as well; it counts seconds.
func (c *KubexmConfig) Ask(annotation string, now time.Time) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, annotation, now.UTC().Format(time.RFC3339))
}

// AskRecovery asks the host, as of now, for the key pairs with these fingerprints (pki.Fingerprints): RecoverCertificatesAnnotation.
func (c *KubexmConfig) AskRecovery(fingerprints string, now time.Time) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, RecoverCertificatesAnnotation, now.UTC().Format(time.RFC3339)+" "+fingerprints)
}

// AskedRecovery are the fingerprints of the key pairs that the host was last asked for.
func (c *KubexmConfig) AskedRecovery() string {
	_, fingerprints, _ := strings.Cut(c.Annotations[RecoverCertificatesAnnotation], " ")
	return fingerprints
}

// Asked is when the host was last asked for it, the zero time if never, or in another way.
func (c *KubexmConfig) Asked(annotation string) time.Time {
	at, _, _ := strings.Cut(c.Annotations[annotation], " ")
	asked, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}
	}
	return asked
}
