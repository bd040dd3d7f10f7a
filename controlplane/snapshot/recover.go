// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

const (
	// recoverWaits is how long a host is waited for that key pairs are to be read from.
	recoverWaits = 2 * time.Minute
	// recoverAgain is when one follows that has failed.
	recoverAgain = time.Minute
)

// Recovery is what is done about key pairs that are to be read back from a control plane host.
type Recovery struct {
	// Ask is the Machine whose host is asked now, nil if none is.
	Ask *clusterv1.Machine
	// Message says what goes on, or why nothing does.
	Message string
}

// Recover decides which host is asked for key pairs that are missing. The annotation that wants them read back is there.
func (c *ControlPlane) Recover() Recovery {
	from := c.Object.Annotations[controlplanev1.RecoverCertificatesAnnotation]
	able := c.recoverable()
	var named []clusterv1.Machine
	for _, m := range able {
		if from == controlplanev1.RecoverFromAny || from == m.Name {
			named = append(named, m)
		}
	}
	if len(named) == 0 {
		return Recovery{Message: fmt.Sprintf("the annotation %s has %q, and wants one of: %s",
			controlplanev1.RecoverCertificatesAnnotation, from, strings.Join(append(namesOf(able), controlplanev1.RecoverFromAny), ", "))}
	}
	asked := func(m *clusterv1.Machine) time.Time {
		return c.ConfigOf(m).Asked(bootstrapv1.RecoverCertificatesAnnotation)
	}
	mute := func(m *clusterv1.Machine) int {
		if hosthealth.Answers(c.ConfigOf(m)) {
			return 0
		}
		return 1
	}
	// One after the other, and of those that were not asked yet the ones first that answer.
	slices.SortStableFunc(named, func(a, b clusterv1.Machine) int {
		return cmp.Or(asked(&a).Compare(asked(&b)), cmp.Compare(mute(&a), mute(&b)))
	})
	next := &named[0]
	last := slices.MaxFunc(named, func(a, b clusterv1.Machine) int { return asked(&a).Compare(asked(&b)) })
	reading := "they are being read from the host of the Machine %s"
	if asked(&last).IsZero() {
		return Recovery{Ask: next, Message: fmt.Sprintf(reading, next.Name)}
	}
	result, waited := c.ConfigOf(&last).Status.Operation(bootstrapv1.RecoverCertificatesOperation), c.Now.Sub(asked(&last))
	done := result.RequestTime.Time.Equal(asked(&last))
	switch {
	case done && result.Outcome == bootstrapv1.RunSucceeded: // and they are gone once more
		return Recovery{Ask: next, Message: fmt.Sprintf(reading, next.Name)}
	case !done && waited < recoverWaits:
		return Recovery{Message: fmt.Sprintf(reading, last.Name)}
	case !done:
		return Recovery{Ask: next, Message: fmt.Sprintf("they were not read from the host of the Machine %s within %s; its KubexmConfig %s may "+
			"say why. Next is that of %s", last.Name, recoverWaits, c.ConfigOf(&last).Name, next.Name)}
	}
	r := Recovery{Message: fmt.Sprintf("they could not be read from the host of the Machine %s: %s. It is tried every minute",
		last.Name, result.Message)}
	if c.Now.Sub(result.EndTime.Time) >= recoverAgain {
		r.Ask = next
	}
	return r
}

// recoverable are the Machines whose hosts may have the key pairs.
func (c *ControlPlane) recoverable() []clusterv1.Machine {
	return slices.DeleteFunc(c.Own(), func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() || c.ConfigOf(&m) == nil })
}

func namesOf(machines []clusterv1.Machine) []string {
	var names []string
	for i := range machines {
		names = append(names, machines[i].Name)
	}
	return names
}
