// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// propagated are the keys of labels and annotations that an object has from the control plane's machineTemplate.
type propagated struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// PropagateMetadata gives an object that a Machine consists of the labels and annotations of the control plane's machineTemplate, and takes
// from it those that it had from there and that are there no more. What it has from there is recorded on it, because others write
// labels and annotations on it, too.
func PropagateMetadata(c *snapshot.ControlPlane, object metav1.Object) {
	labels, annotations := Labels(c), Annotations(c)
	was := recorded(object)
	object.SetLabels(without(object.GetLabels(), was.Labels, labels))
	object.SetAnnotations(without(object.GetAnnotations(), was.Annotations, annotations))

	template := c.Object.Spec.MachineTemplate.ObjectMeta
	is := propagated{Labels: slices.Sorted(maps.Keys(template.Labels)), Annotations: slices.Sorted(maps.Keys(template.Annotations))}
	record := merged(object.GetAnnotations(), map[string]string{})
	delete(record, controlplanev1.PropagatedMetadataAnnotation)
	if len(is.Labels)+len(is.Annotations) > 0 {
		if text, err := json.Marshal(is); err == nil { // lists of texts always marshal
			record[controlplanev1.PropagatedMetadataAnnotation] = string(text)
		}
	}
	if len(record) == 0 {
		record = nil // an empty map would look like a change
	}
	object.SetAnnotations(record)
}

// recorded is what an object had from the machineTemplate when that was last propagated. A record that cannot be read is none.
func recorded(object metav1.Object) propagated {
	var was propagated
	if err := json.Unmarshal([]byte(object.GetAnnotations()[controlplanev1.PropagatedMetadataAnnotation]), &was); err != nil {
		return propagated{}
	}
	return was
}

// without is what there is with what is wanted, and without the keys that were wanted before and are not now.
func without(there map[string]string, before []string, wanted map[string]string) map[string]string {
	all := merged(there, wanted)
	for _, key := range before {
		if _, still := wanted[key]; !still {
			delete(all, key)
		}
	}
	return all
}
