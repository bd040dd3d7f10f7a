// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
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

// AskRestart asks the host, as of now, to restart components: RestartAnnotation.
func (c *KubexmConfig) AskRestart(components []spec.ComponentName, now time.Time) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, RestartAnnotation, now.UTC().Format(time.RFC3339)+" "+spec.JoinComponents(components))
}

// AskedRestart are the components that the host was last asked to restart. Its error says that there is no such component.
func (c *KubexmConfig) AskedRestart() ([]spec.ComponentName, error) {
	words := strings.Fields(c.Annotations[RestartAnnotation])
	if len(words) < 2 {
		return nil, fmt.Errorf("the annotation %s names no component: want a time and components, such as %s %s", RestartAnnotation,
			time.Now().UTC().Format(time.RFC3339), spec.JoinComponents(spec.Components[:2]))
	}
	components, err := spec.ParseComponents(words[1])
	if err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", RestartAnnotation, err)
	}
	return components, nil
}

// AskedCertificates are the certificates that the host was last asked to renew, none for all that it has. Its error says that there is no
// such certificate.
func (c *KubexmConfig) AskedCertificates() ([]spec.CertificateName, error) {
	words := strings.Fields(c.Annotations[RenewCertificatesAnnotation])
	if len(words) < 2 {
		return nil, nil
	}
	names, err := spec.ParseCertificates(words[1])
	if err != nil {
		return nil, fmt.Errorf("the annotation %s: %w", RenewCertificatesAnnotation, err)
	}
	return names, nil
}

// AskedRecovery are the fingerprints of the key pairs that the host was last asked for.
func (c *KubexmConfig) AskedRecovery() string {
	_, fingerprints, _ := strings.Cut(c.Annotations[RecoverCertificatesAnnotation], " ")
	return fingerprints
}

// Asked is when the host was last asked for it, the zero time if never, or in another way. It counts seconds, as the status does that
// answers it: with fractions, no answer would be the one to what was asked.
func (c *KubexmConfig) Asked(annotation string) time.Time {
	at, _, _ := strings.Cut(c.Annotations[annotation], " ")
	asked, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}
	}
	return asked.Truncate(time.Second)
}
