// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
)

// TestDecide tells rollouts from beginning to end. Commands:
//
//	make version=V hosts=N [max-unavailable=M]   a MachineDeployment whose hosts are well
//	control-plane [spec=V has=(V,…)]             the versions that the control plane is to have, and has; none without arguments
//	annotate [version=V] [canary=NAME]           what is not given is taken off
//	host NAME done|well|unwell|failed|half-way|rolled-back|closed|updating|updated|deleting|gone|older [why=WORDS_OF_A_CONDITION]
//	cluster-api paused|unpaused|saw-machine-set|replaces
//	next                                         decides, does it, and tells
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			command, found := map[string]func(*testing.T, *datadriven.TestData) string{
				"make": w.build, "control-plane": w.setControlPlane, "annotate": w.annotate, "host": w.change, "cluster-api": w.clusterAPI, "next": w.next,
			}[d.Cmd]
			if !found {
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			return command(t, d)
		})
	})
}

// world is what a rollout meets.
type world struct {
	inplace.Rollout
}

func argument(t *testing.T, d *datadriven.TestData, name string) string {
	var value string
	if d.HasArg(name) {
		d.ScanArgs(t, name, &value)
	}
	return value
}

func set(o conditions.Setter, kind string, status metav1.ConditionStatus, message string) {
	conditions.Set(o, metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: message})
}

func (w *world) build(t *testing.T, d *datadriven.TestData) string {
	var hosts, unavailable int
	d.ScanArgs(t, "hosts", &hosts)
	if d.HasArg("max-unavailable") {
		d.ScanArgs(t, "max-unavailable", &unavailable)
	}
	version := argument(t, d, "version")
	template := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{Version: version, Bootstrap: clusterv1.Bootstrap{
		ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: "workers"},
	}}}
	*w = world{Rollout: inplace.Rollout{
		Deployment: &clusterv1.MachineDeployment{
			Spec: clusterv1.MachineDeploymentSpec{
				Replicas: ptr.To(int32(hosts)), Template: template,
				Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
					Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
					RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
						MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(int32(unavailable))),
					},
				}},
			},
		},
		ControlPlane: &controlplanev1.KubexmControlPlane{},
		MachineSets: []clusterv1.MachineSet{{
			ObjectMeta: metav1.ObjectMeta{Name: "workers-1"},
			Spec:       clusterv1.MachineSetSpec{Replicas: ptr.To(int32(hosts)), Template: template},
		}},
	}}
	for i := range hosts {
		name := fmt.Sprintf("node%d", i+1)
		w.Machines = append(w.Machines, clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "machine-" + name}, Spec: clusterv1.MachineSpec{
			Version: version, Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Name: "config-" + name}},
		}, Status: clusterv1.MachineStatus{
			NodeRef: clusterv1.MachineNodeReference{Name: name}, NodeInfo: &corev1.NodeSystemInfo{KubeletVersion: version},
		}})
		w.Configs = append(w.Configs, bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "config-" + name}})
		w.Configs[i].Status.KubernetesVersion = version
		w.well(i)
	}
	return ""
}

func (w *world) well(i int) {
	set(&w.Machines[i], clusterv1.MachineAvailableCondition, metav1.ConditionTrue, "")
	set(&w.Configs[i], bootstrapv1.HostReadyCondition, metav1.ConditionTrue, "")
	set(&w.Configs[i], bootstrapv1.HostConvergedCondition, metav1.ConditionTrue, "")
	w.Configs[i].Status.OperationFor(bootstrapv1.ConvergeOperation).Failures = ptr.To(int32(0))
}

func (w *world) setControlPlane(t *testing.T, d *datadriven.TestData) string {
	if !d.HasArg("has") {
		w.ControlPlane = nil
		return ""
	}
	w.ControlPlane = &controlplanev1.KubexmControlPlane{}
	for _, arg := range d.CmdArgs {
		for _, value := range arg.Vals {
			if arg.Key == "spec" {
				w.ControlPlane.Spec.Version = value
			} else if value != "" {
				w.ControlPlane.Status.Versions = append(w.ControlPlane.Status.Versions,
					clusterv1.StatusVersion{Version: value, Replicas: 1})
			}
		}
	}
	return ""
}

func (w *world) annotate(t *testing.T, d *datadriven.TestData) string {
	paused, isPaused := w.Deployment.Annotations[clusterv1.PausedAnnotation]
	w.Deployment.Annotations = map[string]string{}
	if isPaused {
		w.Deployment.Annotations[clusterv1.PausedAnnotation] = paused
	}
	for name, key := range map[string]string{"version": inplace.VersionAnnotation, "canary": inplace.CanaryAnnotation} {
		if d.HasArg(name) {
			w.Deployment.Annotations[key] = argument(t, d, name)
		}
	}
	return ""
}

// change changes a host: the first argument is its Node, the second what becomes of it.
func (w *world) change(t *testing.T, d *datadriven.TestData) string {
	i := -1
	for at := range w.Machines {
		if w.Machines[at].Status.NodeRef.Name == d.CmdArgs[0].Key {
			i = at
		}
	}
	if i < 0 {
		t.Fatalf("%s: there is no %s", d.Pos, d.CmdArgs[0].Key)
	}
	m, c := &w.Machines[i], &w.Configs[i]
	why := strings.ReplaceAll(argument(t, d, "why"), "_", " ")
	switch d.CmdArgs[1].Key {
	case "done":
		w.well(i)
		c.Status.KubernetesVersion, m.Status.NodeInfo.KubeletVersion = m.Spec.Version, m.Spec.Version
	case "well":
		w.well(i)
	case "older":
		m.Spec.Version = "v1.35.4"
	case "unwell":
		set(m, clusterv1.MachineAvailableCondition, metav1.ConditionFalse, why)
	case "half-way": // its kubelet runs with the version, and the rest does not yet
		m.Status.NodeInfo.KubeletVersion = m.Spec.Version
	case "rolled-back":
		m.Status.NodeInfo.KubeletVersion = c.Status.KubernetesVersion
	case "failed":
		set(c, bootstrapv1.HostReadyCondition, metav1.ConditionFalse, why)
		set(c, bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, why)
		c.Status.OperationFor(bootstrapv1.ConvergeOperation).Failures = ptr.To(int32(1))
	case "closed":
		conditions.Set(c, metav1.Condition{
			Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.AccessClosedReason,
		})
	case "updating":
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	case "updated":
		m.Annotations = nil
	case "deleting":
		m.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(0, 0)))
	case "gone":
		w.Machines = append(w.Machines[:i:i], w.Machines[i+1:]...)
		w.Configs = append(w.Configs[:i:i], w.Configs[i+1:]...)
	default:
		t.Fatalf("%s: a host cannot become %s", d.Pos, d.CmdArgs[1].Key)
	}
	return ""
}

func (w *world) clusterAPI(t *testing.T, d *datadriven.TestData) string {
	md, set0 := w.Deployment, &w.MachineSets[0]
	switch d.CmdArgs[0].Key {
	case "paused":
		set(md, clusterv1.PausedCondition, metav1.ConditionTrue, "")
	case "unpaused":
		set(md, clusterv1.PausedCondition, metav1.ConditionFalse, "")
		md.Status.ObservedGeneration = md.Generation
	case "saw-machine-set":
		set0.Status.ObservedGeneration = set0.Generation
	case "replaces":
		newer := set0.DeepCopy()
		newer.Name, newer.Spec.Template.Spec.FailureDomain = "workers-2", "b"
		md.Spec.Template.Spec.FailureDomain = "b"
		w.MachineSets = append(w.MachineSets, *newer)
	default:
		t.Fatalf("%s: Cluster API does not do %s", d.Pos, d.CmdArgs[0].Key)
	}
	return ""
}

// next does what the reconciler would.
func (w *world) next(t *testing.T, d *datadriven.TestData) string {
	act := w.Decide()
	md := w.Deployment
	what := string(act.Kind)
	switch act.Kind {
	case inplace.Upgrade:
		for _, m := range act.Machines {
			what += " " + m.Status.NodeRef.Name
			m.Spec.Version = act.Version
		}
	case inplace.Pause:
		act.Pause(md)
	case inplace.Template:
		what += " " + act.MachineSet.Name
		act.MachineSet.Spec.Template.Spec.Version = act.Version
		act.MachineSet.Generation++
	case inplace.Finish:
		act.Finish(md)
		md.Generation++
	case inplace.Clear:
		act.Clear(md)
	case inplace.Release:
		act.Release(md)
	case inplace.Rest:
	}
	if act.Reason != "" {
		conditions.Set(md, act.Condition())
		what += fmt.Sprintf(": %s %s\n%s", act.Condition().Status, act.Reason, act.Message)
	}
	return what
}
