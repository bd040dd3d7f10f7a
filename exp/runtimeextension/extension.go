// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/util/labels/format"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
)

// Extension answers the hooks.
type Extension struct {
	// Reader reads KubexmConfigs and Machines from the API server.
	Reader client.Reader
}

// CanUpdateMachine says which parts of a change of a Machine, its KubexmConfig and its KubexmMachine the Machine's host follows.
func (e *Extension) CanUpdateMachine(
	ctx context.Context, request *runtimehooksv1.CanUpdateMachineRequest, response *runtimehooksv1.CanUpdateMachineResponse,
) {
	current, desired := &request.Current, &request.Desired
	bootstrap, err := changeOf(current.BootstrapConfig, desired.BootstrapConfig, configs, "spec")
	infra, problem := changeOf(current.InfrastructureMachine, desired.InfrastructureMachine, machines, "spec")
	if err == nil {
		err = problem
	}
	if err != nil {
		fail(response, err.Error())
		return
	}
	var refused []string
	if bootstrap.ours && !bootstrap.closed {
		patched := current.Machine.DeepCopy()
		errs := followMachine(&patched.Spec, &desired.Machine.Spec, field.NewPath("spec"))
		refused = said("Machine "+current.Machine.Name, errs)
		response.MachinePatch, err = patchOf(&current.Machine, patched)
		if err != nil {
			fail(response, err.Error())
			return
		}
	}
	response.BootstrapConfigPatch, response.InfrastructureMachinePatch = bootstrap.patch, infra.patch
	succeed(ctx, response, klog.KObj(&current.Machine).String(), refused, bootstrap, infra)
}

// CanUpdateMachineSet says which parts of a change of the templates of a MachineSet's Machines their hosts follow.
func (e *Extension) CanUpdateMachineSet(
	ctx context.Context, request *runtimehooksv1.CanUpdateMachineSetRequest, response *runtimehooksv1.CanUpdateMachineSetResponse,
) {
	current, desired := &request.Current, &request.Desired
	template := []string{"spec", "template", "spec"}
	bootstrap, err := changeOf(current.BootstrapConfigTemplate, desired.BootstrapConfigTemplate, configTemplates, template...)
	infra, problem := changeOf(current.InfrastructureMachineTemplate, desired.InfrastructureMachineTemplate, machineTemplates, template...)
	if err == nil {
		err = problem
	}
	if err != nil {
		fail(response, err.Error())
		return
	}
	set := &current.MachineSet
	var refused []string
	if bootstrap.ours && !bootstrap.closed {
		patched, wanted, path := set.DeepCopy(), &desired.MachineSet.Spec.Template.Spec, field.NewPath(template[0], template[1:]...)
		refused = said("MachineSet "+set.Name, followMachine(&patched.Spec.Template.Spec, wanted, path))
		if patched.Spec.Template.Spec.Version == wanted.Version {
			if err := e.allFollow(ctx, set, wanted.Version, path.Child("version")); err != nil {
				fail(response, err.Error())
				return
			}
		}
		if response.MachineSetPatch, err = patchOf(set, patched); err != nil {
			fail(response, err.Error())
			return
		}
	}
	response.BootstrapConfigTemplatePatch, response.InfrastructureMachineTemplatePatch = bootstrap.patch, infra.patch
	succeed(ctx, response, klog.KObj(set).String(), refused, bootstrap, infra)
}

// allFollow is an error if Machines of a MachineSet have other versions than its template, and their hosts cannot follow to this one. An
// upgrade by annotation that has begun, or was called off, leaves such. To leave the version out of the patch would not do: Cluster API
// compares the templates, which may have the same.
func (e *Extension) allFollow(ctx context.Context, set *clusterv1.MachineSet, version string, path *field.Path) error {
	if version == "" {
		return nil // they follow the control plane's
	}
	made := &clusterv1.MachineList{}
	of := []client.ListOption{
		client.InNamespace(set.Namespace), client.MatchingLabels{clusterv1.MachineSetNameLabel: format.MustFormatValue(set.Name)},
	}
	if err := e.Reader.List(ctx, made, of...); err != nil {
		return fmt.Errorf("list the Machines of the MachineSet %s: %w", klog.KObj(set), err)
	}
	if errs := inplace.ValidateVersion("", made.Items, version, path); len(errs) > 0 {
		return fmt.Errorf("not all Machines of the MachineSet %s have the version of its template: %w", klog.KObj(set), errs.ToAggregate())
	}
	return nil
}

// UpdateMachine says how far a Machine's host has followed what Cluster API has written to its Machine and KubexmConfig.
func (e *Extension) UpdateMachine(
	ctx context.Context, request *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse,
) {
	machine := &request.Desired.Machine
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.GroupKind() != configs.kind {
		fail(response, fmt.Sprintf("the Machine %s has a %s: only hosts with KubexmConfigs can be updated in place", klog.KObj(machine), ref.Kind))
		return
	}
	config := &bootstrapv1.KubexmConfig{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}
	if err := e.Reader.Get(ctx, key, config); apierrors.IsNotFound(err) {
		fail(response, fmt.Sprintf("the KubexmConfig %s of the Machine %s does not exist: delete the Machine to have it replaced", key, machine.Name))
		return
	} else if err != nil {
		fail(response, fmt.Sprintf("get the KubexmConfig %s: %v", key, err))
		return
	}
	progress(machine, config, response)
}

// succeed tells what is not followed. Cluster API says why it replaces Machines by what differs; here is why it differs.
func succeed(ctx context.Context, response runtimehooksv1.ResponseObject, of string, refused []string, changes ...change) {
	for _, c := range changes {
		refused = append(refused, c.refused...)
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	response.SetMessage(strings.Join(refused, "\n"))
	if len(refused) > 0 {
		ctrl.LoggerFrom(ctx).Info("Change cannot be applied in place", "of", of, "not", refused)
	}
}

func fail(response runtimehooksv1.ResponseObject, message string) {
	response.SetStatus(runtimehooksv1.ResponseStatusFailure)
	response.SetMessage(message)
}
