// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// restrict declares what disruptions wait for.
func (p *play) restrict(d *datadriven.TestData) error {
	policy, canary := &p.Object.Spec.Cluster.Disruption, &p.Object.Spec.Rollout.Strategy.InPlace.Canary
	for _, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "approval":
			policy.Approval = spec.ApprovalRequired
		case "window":
			start, minutes, _ := strings.Cut(value, "/")
			n, err := strconv.ParseInt(minutes, 10, 32)
			if err != nil {
				return err
			}
			policy.MaintenanceWindows = append(policy.MaintenanceWindows, spec.MaintenanceWindow{Start: start, DurationMinutes: int32(n)})
		case "now":
			now, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return err
			}
			p.Now = now
		case "canary":
			if value == "approval" {
				canary.Approval = spec.ApprovalRequired
				continue
			}
			canary.SettleSeconds = number(d, arg.Key)
		default:
			return errors.New("unknown " + arg.Key)
		}
	}
	return nil
}

func number(d *datadriven.TestData, key string) int32 {
	var n int
	for _, arg := range d.CmdArgs {
		if arg.Key == key && len(arg.Vals) == 1 {
			_, _ = fmt.Sscan(arg.Vals[0], &n) // what is no number is 0
		}
	}
	return int32(n)
}

// held has a host wait before it is changed, for a reason, or wait no more.
func held(config *bootstrapv1.KubexmConfig, reason string) {
	if reason == "" {
		conditions.Delete(config, bootstrapv1.DisruptionAllowedCondition)
		return
	}
	conditions.Set(config, metav1.Condition{Type: bootstrapv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: reason})
}

var approval = regexp.MustCompile(controlplanev1.ApprovedDisruptionAnnotation + "=([0-9a-f.]{16,}) ")

// tell says of each Machine whether it and its host are up to date, as the control plane does, and since when.
func (p *play) tell() {
	for i := range p.Machines {
		m := &p.Machines[i]
		said := metav1.Condition{
			Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(p.Now),
		}
		if len(p.Changes(m))+len(p.Following(m)) > 0 {
			said.Status = metav1.ConditionFalse
		}
		conditions.Set(m, said)
	}
}

// waits is what is shown to who is to agree. The digest is of no interest to a reader.
func (p *play) waits() string {
	w := p.Decide().Wait
	if w == nil {
		return "nothing waits\n"
	}
	until := ""
	if !w.Until.IsZero() {
		until = " until " + w.Until.Format(time.RFC3339)
	}
	return w.Reason + until + "\n" + approval.ReplaceAllString(w.Message, controlplanev1.ApprovedDisruptionAnnotation+"=… ") + "\n"
}

// approve agrees to what is shown.
func (p *play) approve() error {
	w := p.Decide().Wait
	if w == nil {
		return errors.New("nothing waits")
	}
	found := approval.FindStringSubmatch(w.Message)
	if found == nil {
		return errors.New("there is nothing to agree to: " + w.Message)
	}
	metav1.SetMetaDataAnnotation(&p.Object.ObjectMeta, controlplanev1.ApprovedDisruptionAnnotation, found[1])
	return nil
}
