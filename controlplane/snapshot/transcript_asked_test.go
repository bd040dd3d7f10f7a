// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// ask is which APIs are in use, as the cluster says.
func (p *play) ask(d *datadriven.TestData) {
	p.APIs = &snapshot.APIs{}
	for _, arg := range d.CmdArgs {
		if text := strings.Join(arg.Vals, ", "); arg.Key == "why" {
			p.APIs.Err = errors.New(text)
		} else {
			p.APIs.Removed = append(p.APIs.Removed, text)
		}
	}
}

// decide is what is done now, once those have answered who are asked before, and etcd is saved where it is to be.
func (p *play) decide() (said string, d snapshot.Decision) {
	if p.RolledOut() {
		delete(p.Object.Annotations, controlplanev1.EtcdSavedAnnotation)
	}
	d = p.Decide()
	if d.Save != nil {
		said = fmt.Sprintf("save etcd on %s\n", d.Save.Name)
		p.ConfigOf(d.Save).Ask(bootstrapv1.SaveEtcdAnnotation, p.Now)
		if !p.slow {
			p.saveOn(d.Save)
		}
		d = p.Decide()
	}
	if d.EtcdSaved {
		metav1.SetMetaDataAnnotation(&p.Object.ObjectMeta, controlplanev1.EtcdSavedAnnotation, p.Object.Spec.Version)
	}
	if p.answer(d.Ask) {
		d = p.Decide()
	}
	return said, d
}

// saveOn is what comes of a snapshot of etcd that was asked for on a Machine's host.
func (p *play) saveOn(m *clusterv1.Machine) {
	config := p.ConfigOf(m)
	if config == nil || config.Asked(bootstrapv1.SaveEtcdAnnotation).IsZero() {
		return
	}
	saved := config.Status.OperationFor(bootstrapv1.SaveEtcdOperation)
	saved.RequestTime, saved.EndTime = metav1.NewTime(config.Asked(bootstrapv1.SaveEtcdAnnotation)), metav1.NewTime(p.Now)
	saved.Outcome, saved.Message = bootstrapv1.RunSucceeded, ""
	if p.full != nil && (len(p.full) == 0 || slices.Contains(p.full, m.Name)) {
		saved.Outcome, saved.Message = bootstrapv1.RunFailed, "there is no space"
	}
}

// answer has the etcd on Machines' hosts say how it is, and reports whether anybody was asked.
func (p *play) answer(machines []clusterv1.Machine) bool {
	for i := range machines {
		config := p.ConfigOf(&machines[i])
		config.Ask(bootstrapv1.AskEtcdAnnotation, p.Now)
		if machines[i].Name == p.deaf {
			continue
		}
		config.Status.Etcd = bootstrapv1.EtcdStatus{ObservedTime: metav1.NewMicroTime(p.Now)}
		for _, h := range p.Configs {
			if h.Status.Host.Address != "" && h.Status.KubernetesVersion != "" {
				config.Status.Etcd.Members = append(config.Status.Etcd.Members, bootstrapv1.EtcdMemberStatus{
					ID: "1" + h.Name, Name: h.Status.Host.Name, PeerURL: "https://" + h.Status.Host.Address + ":2380", Type: bootstrapv1.EtcdVoter,
				})
			}
		}
		if p.stranger != "" {
			config.Status.Etcd.Members = append(config.Status.Etcd.Members, bootstrapv1.EtcdMemberStatus{
				ID: "9", Name: p.stranger, PeerURL: "https://10.0.0.9:2380", Type: bootstrapv1.EtcdVoter,
			})
		}
	}
	return len(machines) > 0
}

// lost says why a host does not answer.
func lost(config *bootstrapv1.KubexmConfig, why string) {
	conditions.Set(config, metav1.Condition{
		Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.UnreachableReason, Message: why,
	})
}

// maintained says why a host is in maintenance, or, where there is no reason, that it is in none any more and can be reached.
func maintained(config *bootstrapv1.KubexmConfig, why string, now time.Time) {
	said := metav1.Condition{
		Type: bootstrapv1.InMaintenanceCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostInMaintenanceReason, Message: why,
		LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case why != "":
		conditions.Set(config, said)
	case conditions.IsTrue(config, said.Type):
		said.Status, said.Reason = metav1.ConditionFalse, bootstrapv1.MaintenanceEndedReason
		conditions.Set(config, said)
	}
	conditions.Delete(config, bootstrapv1.HostReachableCondition)
}

// did has a host end what it was asked for.
func did(config *bootstrapv1.KubexmConfig, what string, now time.Time) {
	annotation, kind := bootstrapv1.ConvergeAnnotation, bootstrapv1.ConvergeOperation
	if what == "reboot" {
		annotation, kind = bootstrapv1.RebootAnnotation, bootstrapv1.RebootOperation
	}
	config.Status.SetOperation(bootstrapv1.OperationStatus{
		Type: kind, RequestTime: metav1.NewTime(config.Asked(annotation)), EndTime: metav1.NewTime(now),
	})
}
