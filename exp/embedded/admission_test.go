// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

func validating(service *admissionregistrationv1.ServiceReference) []*admissionregistrationv1.ValidatingWebhookConfiguration {
	return []*admissionregistrationv1.ValidatingWebhookConfiguration{{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validation.example.org", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: service},
		}},
	}}
}

func TestAdmission(t *testing.T) {
	const name, path = "validation.example.org", "/validate-example"
	service := &admissionregistrationv1.ServiceReference{Path: ptr.To(path)}
	ours := validating(service)
	all, err := newAdmission(Options{ValidatingWebhooks: ours}, 4711, []byte("authority"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all.mutating.Webhooks) == 0 || len(all.validating.Webhooks) < 2 {
		t.Errorf("core's webhooks are missing: %d mutating, %d validating", len(all.mutating.Webhooks), len(all.validating.Webhooks))
	}
	for _, hook := range all.validating.Webhooks {
		c := hook.ClientConfig
		if c.Service != nil || !strings.HasPrefix(*c.URL, "https://127.0.0.1:4711/") || string(c.CABundle) != "authority" {
			t.Errorf("%s: %v", hook.Name, c)
		}
		if hook.Name == name && *c.URL != "https://127.0.0.1:4711"+path {
			t.Errorf("%s: %s", hook.Name, *c.URL)
		}
	}
	if ours[0].Webhooks[0].ClientConfig.Service == nil {
		t.Error("the caller's object was changed")
	}

	for what, wrong := range map[string][]*admissionregistrationv1.ValidatingWebhookConfiguration{
		"names no Service with a path": validating(nil),
		"there are two of it":          append(validating(service), validating(service)...),
	} {
		_, err := newAdmission(Options{ValidatingWebhooks: wrong}, 4711, nil)
		if err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q: %v", what, err)
		}
	}
}
