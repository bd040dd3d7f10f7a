// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	bootstrapwebhooks "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrawebhooks "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// rule says which changes of a kind's spec hosts do not follow; paths begin with spec.
type rule struct {
	kind   schema.GroupKind
	refuse func(current, desired map[string]any) (field.ErrorList, error)
}

var (
	configs          = rule{bootstrapv1.GroupVersion.WithKind("KubexmConfig").GroupKind(), refuseConfig}
	configTemplates  = rule{bootstrapv1.GroupVersion.WithKind("KubexmConfigTemplate").GroupKind(), refuseConfig}
	machines         = rule{infrav1.GroupVersion.WithKind("KubexmMachine").GroupKind(), refuseMachine}
	machineTemplates = rule{infrav1.GroupVersion.WithKind("KubexmMachineTemplate").GroupKind(), refuseMachine}
)

func refuseConfig(current, desired map[string]any) (field.ErrorList, error) {
	old, updated := &bootstrapv1.KubexmConfig{}, &bootstrapv1.KubexmConfig{}
	if err := decode(current, &old.Spec, desired, &updated.Spec); err != nil {
		return nil, err
	}
	return append(bootstrapwebhooks.ValidateConfigUpdate(old, updated),
		spec.ValidateNodeUpdate(&old.Spec.Node, &updated.Spec.Node, field.NewPath("spec"))...), nil
}

// refuseMachine takes a KubexmMachine, or what one was made from, for one that has its host.
func refuseMachine(current, desired map[string]any) (field.ErrorList, error) {
	old, updated := &infrav1.KubexmMachine{}, &infrav1.KubexmMachine{}
	if err := decode(current, &old.Spec, desired, &updated.Spec); err != nil {
		return nil, err
	}
	const some = infrav1.ProviderIDPrefix
	old.Spec.ProviderID = cmp.Or(old.Spec.ProviderID, some)
	updated.Spec.ProviderID = cmp.Or(updated.Spec.ProviderID, some)
	return infrawebhooks.ValidateMachineUpdate(old, updated), nil
}

func decode(current map[string]any, old any, desired map[string]any, updated any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current, old); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(desired, updated)
}

// change is what becomes of an object.
type change struct {
	// ours is whether the object is of the kind that the rule is for.
	ours bool
	// patch is what hosts follow, empty if that is nothing.
	patch runtimehooksv1.Patch
	// refused is what they do not follow, and why.
	refused []string
	// closed is whether nobody logs in on such hosts, or will not any more, so that they follow nothing.
	closed bool
}

// changeOf is the change from one object to another, of which the part at the path counts. An object of another kind is nobody's
// here, and has no patch.
func changeOf(current, desired runtime.RawExtension, rule rule, at ...string) (change, error) {
	old, oldSpec, err := read(current, at)
	if err != nil {
		return change{}, err
	}
	updated, updatedSpec, err := read(desired, at)
	if err != nil {
		return change{}, err
	}
	if old.GroupVersionKind().GroupKind() != rule.kind || updated.GroupVersionKind().GroupKind() != rule.kind {
		return change{}, nil
	}
	if oldSpec["accessPolicy"] == string(spec.AccessClosed) {
		return change{ours: true, closed: true, refused: []string{fmt.Sprintf(
			"%s %s: %s: the access to hosts is closed, so nobody can change them: they are replaced",
			old.GetKind(), old.GetName(), strings.Join(append(slices.Clone(at), "accessPolicy"), "."))}}, nil
	}
	errs, err := rule.refuse(oldSpec, updatedSpec)
	if err != nil {
		return change{}, fmt.Errorf("%s %s: %w", old.GetKind(), old.GetName(), err)
	}
	patchedSpec := runtime.DeepCopyJSON(updatedSpec)
	for _, refused := range errs {
		name := memberOf(refused.Field)
		if was, had := oldSpec[name]; had {
			patchedSpec[name] = runtime.DeepCopyJSONValue(was)
		} else {
			delete(patchedSpec, name)
		}
		refused.Field = strings.Join(append(slices.Clone(at[:len(at)-1]), refused.Field), ".")
	}
	c := change{ours: true, refused: said(old.GetKind()+" "+old.GetName(), errs)}
	if equality.Semantic.DeepEqual(oldSpec, patchedSpec) {
		return c, nil
	}
	patched := old.DeepCopy()
	if err := unstructured.SetNestedMap(patched.Object, patchedSpec, at...); err != nil {
		return change{}, fmt.Errorf("%s %s: %w", old.GetKind(), old.GetName(), err)
	}
	c.patch, err = patchOf(old, patched)
	return c, err
}

// read decodes an object, and what is at the path in it. Where a request has no object, there is one of no kind.
func read(raw runtime.RawExtension, at []string) (*unstructured.Unstructured, map[string]any, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if len(raw.Raw) == 0 {
		return object, nil, nil
	}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return nil, nil, fmt.Errorf("read the request's object: %w", err)
	}
	found, _, err := unstructured.NestedMap(object.Object, at...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if found == nil {
		found = map[string]any{}
	}
	return object, found, nil
}

// memberOf is the member of the spec that a field's path goes through, such as files of spec.files[0].
func memberOf(path string) string {
	path = strings.TrimPrefix(path, "spec.")
	if end := strings.IndexAny(path, ".["); end >= 0 {
		path = path[:end]
	}
	return path
}

// followMachine changes what hosts follow of a Machine's spec to what is desired, and says what they do not follow.
func followMachine(current, desired *clusterv1.MachineSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if current.FailureDomain != desired.FailureDomain {
		errs = append(errs, field.Forbidden(path.Child("failureDomain"), "a host stays where it is"))
	}
	if current.Version == desired.Version {
		return errs
	}
	refused := inplace.ValidateVersion(current.Version, nil, desired.Version, path.Child("version"))
	if len(refused) == 0 {
		current.Version = desired.Version
	}
	return append(errs, refused...)
}

func said(of string, errs field.ErrorList) []string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, of+": "+err.Error())
	}
	return texts
}

// patchOf is the merge patch from one state of an object to another, empty if they are the same.
func patchOf(from, to client.Object) (runtimehooksv1.Patch, error) {
	data, err := client.MergeFrom(from).Data(to)
	if err != nil || string(data) == "{}" {
		return runtimehooksv1.Patch{}, err
	}
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: data}, nil
}
