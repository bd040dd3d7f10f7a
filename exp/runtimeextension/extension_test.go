// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/runtimeextension"
)

const namespace = "fleet"

func extension(t *testing.T, objects ...client.Object) *runtimeextension.Extension {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &runtimeextension.Extension{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// state is what a transcript says of one side of a change.
type state struct {
	Version, FailureDomain string
	// Bootstrap and Infrastructure are kinds, ours if empty; Config and Host their specs.
	Bootstrap, Infrastructure string
	Config, Host              map[string]any
}

// raw is an object as Cluster API sends it, with its spec at spec or spec.template.spec.
func raw(t *testing.T, apiVersion, kind string, spec map[string]any, template bool) runtime.RawExtension {
	t.Helper()
	if spec == nil {
		spec = map[string]any{}
	}
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "workers", "namespace": namespace}, "spec": spec,
	}
	if template {
		object["kind"], object["spec"] = kind+"Template", map[string]any{"template": map[string]any{"spec": spec}}
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

func (s state) bootstrap(t *testing.T, template bool) runtime.RawExtension {
	return raw(t, "bootstrap.cluster.x-k8s.io/v1beta1", cmp.Or(s.Bootstrap, "KubexmConfig"), s.Config, template)
}

func (s state) infrastructure(t *testing.T, template bool) runtime.RawExtension {
	return raw(t, infrav1.GroupVersion.String(), cmp.Or(s.Infrastructure, "KubexmMachine"), s.Host, template)
}

func (s state) machine() clusterv1.MachineSpec {
	return clusterv1.MachineSpec{ClusterName: "prod", Version: s.Version, FailureDomain: s.FailureDomain}
}

// covers applies a patch as Cluster API does, and reports whether the current object has become the desired one.
func covers(t *testing.T, current, desired any, patch runtimehooksv1.Patch) bool {
	t.Helper()
	plain := func(object any) (is any) {
		data, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(data, &is)
		}
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	is := plain(current)
	if patch.IsDefined() {
		if patch.PatchType != runtimehooksv1.JSONMergePatchType {
			t.Fatalf("the patch is of type %q", patch.PatchType)
		}
		is = merge(is, plain(json.RawMessage(patch.Patch)))
	}
	return reflect.DeepEqual(is, plain(desired))
}

// merge is RFC 7386.
func merge(target, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	object, isObject := target.(map[string]any)
	if !isObject {
		object = map[string]any{}
	}
	merged := maps.Clone(object)
	for name, value := range changes {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(object[name], value)
		}
	}
	return merged
}

// The patches for each change, and what Cluster API makes of them.
func TestCanUpdate(t *testing.T) {
	datadriven.Walk(t, "testdata/canupdate", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var change struct {
				Current, Desired state
				// Machines are the versions of those that a MachineSet has.
				Machines []string
			}
			if err := yaml.UnmarshalStrict([]byte(d.Input), &change); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			current, desired := change.Current, change.Desired
			var out strings.Builder
			inPlace := true
			say := func(what string, patch runtimehooksv1.Patch, current, desired any) {
				if patch.IsDefined() {
					fmt.Fprintf(&out, "%s: %s\n", what, patch.Patch)
				}
				inPlace = covers(t, current, desired, patch) && inPlace
			}
			var status runtimehooksv1.CommonResponse
			switch d.Cmd {
			case "machine":
				of := func(s state) runtimehooksv1.CanUpdateMachineRequestObjects {
					return runtimehooksv1.CanUpdateMachineRequestObjects{
						Machine:         clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "worker"}, Spec: s.machine()},
						BootstrapConfig: s.bootstrap(t, false), InfrastructureMachine: s.infrastructure(t, false),
					}
				}
				request, response := &runtimehooksv1.CanUpdateMachineRequest{Current: of(current), Desired: of(desired)},
					&runtimehooksv1.CanUpdateMachineResponse{}
				extension(t).CanUpdateMachine(t.Context(), request, response)
				status = response.CommonResponse
				say("machine", response.MachinePatch, request.Current.Machine, request.Desired.Machine)
				say("bootstrap", response.BootstrapConfigPatch, request.Current.BootstrapConfig, request.Desired.BootstrapConfig)
				say("infrastructure", response.InfrastructureMachinePatch, request.Current.InfrastructureMachine, request.Desired.InfrastructureMachine)
			case "machine-set":
				of := func(s state) runtimehooksv1.CanUpdateMachineSetRequestObjects {
					set := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers-1"}}
					set.Spec.Template.Spec = s.machine()
					return runtimehooksv1.CanUpdateMachineSetRequestObjects{
						MachineSet: set, BootstrapConfigTemplate: s.bootstrap(t, true),
						InfrastructureMachineTemplate: s.infrastructure(t, true),
					}
				}
				var made []client.Object
				for i, version := range change.Machines {
					made = append(made, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
						Namespace: namespace, Name: fmt.Sprintf("workers-%d", i), Labels: map[string]string{clusterv1.MachineSetNameLabel: "workers-1"},
					}, Spec: clusterv1.MachineSpec{Version: version}})
				}
				request, response := &runtimehooksv1.CanUpdateMachineSetRequest{Current: of(current), Desired: of(desired)},
					&runtimehooksv1.CanUpdateMachineSetResponse{}
				extension(t, made...).CanUpdateMachineSet(t.Context(), request, response)
				status = response.CommonResponse
				say("machine set", response.MachineSetPatch, request.Current.MachineSet, request.Desired.MachineSet)
				say("bootstrap", response.BootstrapConfigTemplatePatch,
					request.Current.BootstrapConfigTemplate, request.Desired.BootstrapConfigTemplate)
				say("infrastructure", response.InfrastructureMachineTemplatePatch,
					request.Current.InfrastructureMachineTemplate, request.Desired.InfrastructureMachineTemplate)
			default:
				t.Fatalf("%s: there is no %s", d.Pos, d.Cmd)
			}
			switch {
			case status.Status != runtimehooksv1.ResponseStatusSuccess:
				fmt.Fprintf(&out, "%s: nothing is done\n", status.Status)
			case inPlace:
				out.WriteString("in place\n")
			default:
				out.WriteString("replaced\n")
			}
			return out.String() + status.Message
		})
	})
}

// A request that says nothing that can be read is refused, and kills nobody.
func TestCanUpdateRefusesGarbage(t *testing.T) {
	for name, garbage := range map[string]string{
		"no JSON":         `{`,
		"no object":       `[]`,
		"no kind":         `{"spec":{}}`,
		"no spec":         `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubexmConfig","spec":"x"}`,
		"a field's type":  `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubexmConfig","spec":{"files":"x"}}`,
		"a member's type": `{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta1","kind":"KubexmConfig","spec":{"kubelet":{"maxPods":"many"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			objects := runtimehooksv1.CanUpdateMachineRequestObjects{
				BootstrapConfig: runtime.RawExtension{Raw: []byte(garbage)}, InfrastructureMachine: state{}.infrastructure(t, false),
			}
			response := &runtimehooksv1.CanUpdateMachineResponse{}
			extension(t).CanUpdateMachine(t.Context(),
				&runtimehooksv1.CanUpdateMachineRequest{Current: objects, Desired: objects}, response)
			if response.Status != runtimehooksv1.ResponseStatusFailure || response.Message == "" {
				t.Errorf("%s %q", response.Status, response.Message)
			}
		})
	}
}

// What Cluster API learns while a host follows.
func TestUpdateMachine(t *testing.T) {
	const old, updated = "v1.35.4", "v1.36.3"
	began, ended := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	set := func(c *bootstrapv1.KubexmConfig, kind string, status metav1.ConditionStatus, message string) {
		conditions.Set(c, metav1.Condition{Type: kind, Status: status, Reason: "Test", Message: message})
	}
	for name, test := range map[string]struct {
		change  func(*clusterv1.Machine, *bootstrapv1.KubexmConfig)
		status  runtimehooksv1.ResponseStatus
		again   bool
		message string
	}{
		"it has followed": {
			change: func(*clusterv1.Machine, *bootstrapv1.KubexmConfig) {},
			status: runtimehooksv1.ResponseStatusSuccess, message: "host w1 is up to date with v1.36.3",
		},
		"nobody has looked yet": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = old },
			status: runtimehooksv1.ResponseStatusSuccess, again: true, message: "host w1: it has v1.35.4, and is to have v1.36.3",
		},
		"a run goes on": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) {
				c.Status.KubernetesVersion = old
				c.Status.SetOperation(bootstrapv1.OperationStatus{
					Type: bootstrapv1.ConvergeOperation, StartTime: began, Failures: ptr.To(int32(2)),
				})
				c.Status.Progress = bootstrapv1.ProgressStatus{CompletedSteps: ptr.To(int32(12)), TotalSteps: ptr.To(int32(40))}
			},
			status: runtimehooksv1.ResponseStatusSuccess, again: true, message: "host w1: it has v1.35.4, and is to have v1.36.3; 12 of 40 steps are done",
		},
		"its KubexmConfig was changed alone": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) { c.Generation++ },
			status: runtimehooksv1.ResponseStatusSuccess, again: true, message: "host w1: it does not have the last change of its KubexmConfig yet",
		},
		"the Node is not ready": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) {
				set(c, bootstrapv1.HostReadyCondition, metav1.ConditionFalse, "NodeJoined: the kubelet stopped posting")
			},
			status: runtimehooksv1.ResponseStatusSuccess, again: true, message: "host w1: NodeJoined: the kubelet stopped posting",
		},
		"it must be approved": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) {
				c.Status.KubernetesVersion = old
				set(c, bootstrapv1.DisruptionAllowedCondition, metav1.ConditionFalse, "nobody has approved of it")
			},
			status: runtimehooksv1.ResponseStatusSuccess, again: true,
			message: "host w1: it has v1.35.4, and is to have v1.36.3; Test, says its DisruptionAllowed",
		},
		"a step failed": {
			change: func(_ *clusterv1.Machine, c *bootstrapv1.KubexmConfig) {
				c.Status.KubernetesVersion, c.Status.OperationFor(bootstrapv1.ConvergeOperation).Outcome = old, bootstrapv1.RunFailed
				set(c, bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, "step kubelet/unit: the kubelet exited\nHost w1 was rolled back.")
			},
			status: runtimehooksv1.ResponseStatusFailure,
			message: "host w1: it is not as planned yet: step kubelet/unit: the kubelet exited\nHost w1 was rolled back.\n" +
				"Repair the host, or delete the Machine workers-a to have it replaced.",
		},
		"the KubexmConfig is gone": {
			change:  func(m *clusterv1.Machine, _ *bootstrapv1.KubexmConfig) { m.Spec.Bootstrap.ConfigRef.Name = "other" },
			status:  runtimehooksv1.ResponseStatusFailure,
			message: "the KubexmConfig fleet/other of the Machine workers-a does not exist: delete the Machine to have it replaced",
		},
		"another provider's": {
			change: func(m *clusterv1.Machine, _ *bootstrapv1.KubexmConfig) {
				m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig"
			},
			status:  runtimehooksv1.ResponseStatusFailure,
			message: "the Machine fleet/workers-a has a KubeadmConfig: only hosts with KubexmConfigs can be updated in place",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers-a", Generation: 1}}
			config.Status = bootstrapv1.KubexmConfigStatus{
				Host: bootstrapv1.HostStatus{Name: "w1"}, KubernetesVersion: updated, ConvergedGeneration: 1,
				Operations: []bootstrapv1.OperationStatus{{
					Type: bootstrapv1.ConvergeOperation, StartTime: began, EndTime: ended, Outcome: bootstrapv1.RunSucceeded,
				}},
			}
			set(config, bootstrapv1.HostConvergedCondition, metav1.ConditionTrue, "")
			set(config, bootstrapv1.HostReadyCondition, metav1.ConditionTrue, "")
			request := &runtimehooksv1.UpdateMachineRequest{}
			machine := &request.Desired.Machine
			machine.Namespace, machine.Name, machine.Spec.Version = namespace, "workers-a", updated
			machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: "workers-a",
			}
			test.change(machine, config)
			response := &runtimehooksv1.UpdateMachineResponse{}
			extension(t, config).UpdateMachine(t.Context(), request, response)
			if response.Status != test.status || response.Message != test.message || (response.RetryAfterSeconds > 0) != test.again {
				t.Errorf("%s, again after %ds: %s", response.Status, response.RetryAfterSeconds, response.Message)
			}
		})
	}
}
