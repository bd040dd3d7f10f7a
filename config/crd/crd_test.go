// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/contract"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Cluster API finds kinds by the names of their definitions, and versions by the contract label.
func TestContract(t *testing.T) {
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 13 {
		t.Errorf("there are %d definitions, not 13", len(crds))
	}
	// Nobody owns a host, or a template that only MachineHealthChecks name: they move with their namespace, because of their kind.
	// Users write KubexmClusterConfigs, too, and nobody makes the Cluster own these. Whatever else there is has owners.
	moves := []string{"KubexmClusterConfig", "KubexmHost", "KubexmRemediationTemplate"}
	for _, def := range crds {
		t.Run(def.Name, func(t *testing.T) {
			if want := contract.CalculateCRDName(def.Spec.Group, def.Spec.Names.Kind); def.Name != want {
				t.Errorf("Cluster API looks for the name %s", want)
			}
			want := "v1beta1"
			if def.Spec.Group == infrav1.GroupVersion.Group {
				want = "v1alpha1" // experimental
			}
			if got := def.Labels[clusterv1.GroupVersion.String()]; got != want {
				t.Errorf("label %s is %q, not %s", clusterv1.GroupVersion, got, want)
			}
			if _, labelled := def.Labels[clusterctlv1.ClusterctlMoveLabel]; labelled != slices.Contains(moves, def.Spec.Names.Kind) {
				t.Errorf("clusterctl moves what nobody owns: %t", labelled)
			}
			for _, version := range def.Spec.Versions {
				if version.Name != want || !version.Served || !version.Storage {
					t.Errorf("version %s (served %v, stored %v) is not %s, served and stored", version.Name, version.Served, version.Storage, want)
				}
			}
		})
	}
}

// theirs are enumerations whose words another project has, by the last part of the field's path. See the decision of 2026-11-24 on
// enumerations.
var theirs = map[string][]string{
	"caAlgorithm": {"ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"}, // kubeadm
	"arch":        {"amd64", "arm64"},                                               // Go
	"logLevel":    {"debug", "error", "fatal", "info", "panic", "warn"},             // etcd
	"mode":        {"None", "iptables", "ipvs", "nftables"},                         // kube-proxy, beside None
	"audit":       {"baseline", "privileged", "restricted"},                         // Pod Security Standards
	"enforce":     {"baseline", "privileged", "restricted"},                         // Pod Security Standards
	"warn":        {"baseline", "privileged", "restricted"},                         // Pod Security Standards
	"name":        {"ca", "encryption", "etcd", "proxy", "sa"},                      // Cluster API's names of Secrets
	// kubeadm, which names certificates by their files; those that it does not make are named so, too
	"certificates": strings.Split(spec.JoinCertificates(spec.CertificateNames), ","),
}

var pascalCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func TestEnumerations(t *testing.T) {
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, def := range crds {
		schema := def.Spec.Versions[0].Schema.OpenAPIV3Schema
		enumerations(schema.Properties["spec"], def.Spec.Names.Kind+".spec", "spec", func(path, name string, values []string) {
			slices.Sort(values)
			seen[name] = true
			if slices.Equal(values, theirs[name]) {
				return
			}
			for _, value := range values {
				if !pascalCase.MatchString(value) {
					t.Errorf("%s: %q is not PascalCase", path, value)
				}
			}
		})
	}
	for name := range theirs {
		if !seen[name] {
			t.Errorf("no field %s has an enumeration: take the exception off", name)
		}
	}
}

func enumerations(s apiextensionsv1.JSONSchemaProps, path, name string, found func(path, name string, values []string)) {
	var values []string
	for _, raw := range s.Enum {
		var value string
		if json.Unmarshal(raw.Raw, &value) == nil {
			values = append(values, value)
		}
	}
	if len(values) > 0 {
		found(path, name, values)
	}
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		enumerations(s.Properties[property], path+"."+property, property, found)
	}
	if s.Items != nil && s.Items.Schema != nil {
		enumerations(*s.Items.Schema, path+"[]", name, found)
	}
}
