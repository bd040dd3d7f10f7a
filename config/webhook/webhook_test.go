// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
)

// Every kind that can be created is validated.
func TestEveryKindIsValidated(t *testing.T) {
	all, err := webhook.All()
	if err != nil {
		t.Fatal(err)
	}
	var validated []string
	for _, configuration := range all.Validating {
		for _, hook := range configuration.Webhooks {
			for _, rule := range hook.Rules {
				kind := strings.TrimSuffix(rule.Resources[0], "s")
				want := fmt.Sprintf("/validate-%s-%s-%s", strings.ReplaceAll(rule.APIGroups[0], ".", "-"), rule.APIVersions[0], kind)
				if path := hook.ClientConfig.Service.Path; path == nil || *path != want {
					t.Errorf("%s: the path is %v, and the webhook is served at %s", hook.Name, path, want)
				}
				validated = append(validated, rule.Resources[0]+"."+rule.APIGroups[0])
			}
		}
	}
	crds, err := crd.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range crds {
		if !slices.Contains(validated, def.Name) {
			t.Errorf("no webhook validates %s", def.Name)
		}
	}
	var mutating []string
	for _, configuration := range all.Mutating {
		mutating = append(mutating, configuration.Name)
	}
	if want := []string{"bootstrap-mutating-webhook-configuration", "controlplane-mutating-webhook-configuration"}; !slices.Equal(mutating, want) {
		t.Errorf("mutating configurations: %v, want %v", mutating, want)
	}
}
