// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"slices"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
)

// Cluster API finds kinds by the names of their definitions, and versions by the contract label.
func TestContract(t *testing.T) {
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 12 {
		t.Errorf("there are %d definitions, not 12", len(crds))
	}
	// Nobody owns a host, or a template that only MachineHealthChecks name: they move with their namespace, because of their kind.
	// Users write KubexmClusterConfigs, too, and nobody makes the Cluster own these. Whatever else there is has owners.
	moves := []string{"KubexmClusterConfig", "KubexmHost", "KubexmRemediationTemplate"}
	for _, def := range crds {
		t.Run(def.Name, func(t *testing.T) {
			if want := contract.CalculateCRDName(def.Spec.Group, def.Spec.Names.Kind); def.Name != want {
				t.Errorf("Cluster API looks for the name %s", want)
			}
			if got := def.Labels[clusterv1.GroupVersion.String()]; got != "v1beta1" {
				t.Errorf("label %s is %q, not v1beta1", clusterv1.GroupVersion, got)
			}
			if _, labelled := def.Labels[clusterctlv1.ClusterctlMoveLabel]; labelled != slices.Contains(moves, def.Spec.Names.Kind) {
				t.Errorf("clusterctl moves what nobody owns: %t", labelled)
			}
			for _, version := range def.Spec.Versions {
				if version.Name != "v1beta1" || !version.Served || !version.Storage {
					t.Errorf("version %s (served %v, stored %v) is not v1beta1, served and stored", version.Name, version.Served, version.Storage)
				}
			}
		})
	}
}
