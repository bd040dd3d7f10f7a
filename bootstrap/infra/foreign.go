// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// infrastructureGroup is that of all infrastructure machines, by Cluster API's contract.
const infrastructureGroup = "infrastructure.cluster.x-k8s.io"

// foreign is what the adapters for other providers have in common. It has no cache: their kinds come and go.
type foreign struct {
	live client.Reader
}

// HasDoor is true: nobody else lets us in.
func (f *foreign) HasDoor() bool { return true }

// Refuses is nothing: which format it is depends on the image.
func (f *foreign) Refuses(bootstrapv1.BootstrapFormat) string { return "" }

// ReportReachability does nothing: nobody asks.
func (f *foreign) ReportReachability(context.Context, Subject, Reachability) error { return nil }

// ReportReset does nothing: the infrastructure deletes the host, or does not care.
func (f *foreign) ReportReset(context.Context, Subject, ResetResult) error { return nil }

// Joined does nothing: the infrastructure does not wait for the Node, or looks for it often.
func (f *foreign) Joined(context.Context, Subject) error { return nil }

// machine is the infrastructure machine, in the version that follows the latest contract which Cluster API knows.
func (f *foreign) machine(ctx context.Context, s Subject) (*unstructured.Unstructured, error) {
	ref := s.Machine.Spec.InfrastructureRef
	object, err := external.GetObjectFromContractVersionedRef(ctx, f.live, ref, s.Machine.Namespace)
	switch {
	case err == nil:
		return object, nil
	case apierrors.IsNotFound(err):
		return nil, &HostGone{Message: fmt.Sprintf("the %s does not exist", describe(ref))}
	case f.isUnknown(ctx, ref):
		return nil, &HostPending{Message: fmt.Sprintf("the API server knows no %s of %s: install its infrastructure provider", ref.Kind, ref.APIGroup)}
	}
	return nil, fmt.Errorf("get the %s: %w", describe(ref), err)
}

// isUnknown reports whether the kind is not installed, which the error of Cluster API's function does not tell.
func (f *foreign) isUnknown(ctx context.Context, ref clusterv1.ContractVersionedObjectReference) bool {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	return apierrors.IsNotFound(f.live.Get(ctx, client.ObjectKey{Name: contract.CalculateCRDName(ref.APIGroup, ref.Kind)}, definition))
}

// get reads an object of a kind that we have no types of.
func (f *foreign) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, f.live.Get(ctx, key, object)
}

// list reads the objects of such a kind in a namespace.
func (f *foreign) list(
	ctx context.Context, kind schema.GroupVersionKind, namespace string, options ...client.ListOption,
) ([]unstructured.Unstructured, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := f.live.List(ctx, found, append(options, client.InNamespace(namespace))...)
	return found.Items, err
}

// decode reads what T has of an object.
func decode[T any](object *unstructured.Unstructured) (*T, error) {
	read := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read); err != nil {
		return nil, fmt.Errorf("read the %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return read, nil
}

// contractMachine is what the contract for infrastructure machines has of them, in each of its versions.
type contractMachine struct {
	Spec struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		Addresses  clusterv1.MachineAddresses `json:"addresses"`
		Conditions conditionList              `json:"conditions"`
	} `json:"status"`
}

// reference is one to an object in the namespace of the one that has it, unless it says another.
type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// is reports whether the object is meant. Some providers leave out the apiVersion.
func (r *reference) is(kind schema.GroupKind, key client.ObjectKey, from string) bool {
	return r.isOf(kind) && r.key(from) == key
}

func (r *reference) isOf(kind schema.GroupKind) bool {
	group := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group
	return r.Kind == kind.Kind && (r.APIVersion == "" || group == kind.Group)
}

func (r *reference) key(from string) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(r.Namespace, from), Name: r.Name}
}

// String is for messages.
func (r *reference) String() string {
	if *r == (reference{}) {
		return "nobody"
	}
	return said(fmt.Sprintf("the %s %s", r.Kind, r.Name))
}

// paused says that an object has the annotation by which its provider leaves it as it is, as a part of a sentence; "" if it has not.
func paused(object *unstructured.Unstructured, annotation string) string {
	if _, is := object.GetAnnotations()[annotation]; !is {
		return ""
	}
	return ", and it is paused by its annotation " + annotation
}

// conditionList is of conditions as any version of Cluster API has them.
type conditionList []struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// complaint is what the first of the types says that is there and not True, as the end of a sentence; "" if none is.
func (l conditionList) complaint(types ...string) string {
	for _, t := range types {
		for _, c := range l {
			if c.Type == t && c.Status != string(metav1.ConditionTrue) {
				return said(": " + strings.Join(nonEmpty(fmt.Sprintf("its condition %s is %s", c.Type, c.Status), c.Reason, c.Message), ": "))
			}
		}
	}
	return ""
}

func (l conditionList) isTrue(conditionType string) bool {
	for _, c := range l {
		if c.Type == conditionType {
			return c.Status == string(metav1.ConditionTrue)
		}
	}
	return false
}

func nonEmpty(parts ...string) []string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// maxSaid is how much of what another provider says is repeated, in bytes.
const maxSaid = 1024

// said is what another provider says, as a message can hold it.
func said(text string) string { return host.Word(text, maxSaid) }
