// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// TestRecover: of a, b and c, the one that is named is asked, or one after the other, until one has answered.
func TestRecover(t *testing.T) {
	const anybody = controlplanev1.RecoverFromAny
	ask := func(c *snapshot.ControlPlane, i int, ago time.Duration) *bootstrapv1.KubexmConfig {
		config := &c.Configs[i]
		config.AskRecovery("ca=x", c.Now.Add(-ago))
		return config
	}
	ended := func(config *bootstrapv1.KubexmConfig, at time.Time, outcome bootstrapv1.RunOutcome) {
		config.Status.SetOperation(bootstrapv1.OperationStatus{
			Type:        bootstrapv1.RecoverCertificatesOperation,
			RequestTime: metav1.NewTime(config.Asked(bootstrapv1.RecoverCertificatesAnnotation)),
			EndTime:     metav1.NewTime(at), Outcome: outcome,
		})
		if outcome == bootstrapv1.RunFailed {
			config.Status.OperationFor(bootstrapv1.RecoverCertificatesOperation).Message = "no such file"
		}
	}
	for name, tc := range map[string]struct {
		from   string
		change func(*snapshot.ControlPlane)
		asks   string
		says   string
	}{
		"anybody":                   {anybody, func(*snapshot.ControlPlane) {}, "a", "are being read from the host of the Machine a"},
		"one":                       {"b", func(*snapshot.ControlPlane) {}, "b", "are being read from the host of the Machine b"},
		"one that is none":          {"worker-1", func(*snapshot.ControlPlane) {}, "", `has "worker-1", and wants one of: a, b, c, any`},
		"one that is being deleted": {"b", func(c *snapshot.ControlPlane) { deleting(&c.Machines[1]) }, "", `has "b", and wants one of: a, c, any`},
		"no Machine is left":        {anybody, func(c *snapshot.ControlPlane) { c.Machines = nil }, "", "wants one of: any"},
		"nothing said":              {"", func(*snapshot.ControlPlane) {}, "", `has "", and wants one of`},
		"one that answers first": {anybody, func(c *snapshot.ControlPlane) {
			conditions.Set(&c.Configs[0], metav1.Condition{
				Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: "x",
			})
		}, "b", "the Machine b"},
		"it is asked":                        {anybody, func(c *snapshot.ControlPlane) { ask(c, 0, time.Minute) }, "", "being read from the host of the Machine a"},
		"it says nothing":                    {anybody, func(c *snapshot.ControlPlane) { ask(c, 0, 3*time.Minute) }, "b", "the Machine a within 2m0s"},
		"the one that is named says nothing": {"a", func(c *snapshot.ControlPlane) { ask(c, 0, 3*time.Minute) }, "a", "Next is that of a"},
		"it has failed just now": {anybody, func(c *snapshot.ControlPlane) {
			ended(ask(c, 0, time.Minute), c.Now.Add(-time.Second), bootstrapv1.RunFailed)
		}, "", "could not be read from the host of the Machine a: no such file"},
		"it has failed a minute ago": {anybody, func(c *snapshot.ControlPlane) {
			ended(ask(c, 0, 2*time.Minute), c.Now.Add(-time.Minute), bootstrapv1.RunFailed)
		}, "b", "the Machine a: no such file"},
		"all have failed": {anybody, func(c *snapshot.ControlPlane) {
			for i := range c.Configs {
				ended(ask(c, i, time.Duration(6-i)*time.Minute), c.Now.Add(-time.Minute), bootstrapv1.RunFailed)
			}
		}, "a", "the Machine c: no such file"},
		"it was read, and is gone again": {anybody, func(c *snapshot.ControlPlane) {
			ended(ask(c, 0, time.Minute), c.Now, bootstrapv1.RunSucceeded)
		}, "b", "are being read from the host of the Machine b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := stacked()
			c.Object.Annotations = map[string]string{controlplanev1.RecoverCertificatesAnnotation: tc.from}
			tc.change(c)
			d := c.Recover()
			asks := ""
			if d.Ask != nil {
				asks = d.Ask.Name
			}
			if asks != tc.asks || !strings.Contains(d.Message, tc.says) {
				t.Errorf("asks %q and says %q, want %q and %q", asks, d.Message, tc.asks, tc.says)
			}
		})
	}
}
