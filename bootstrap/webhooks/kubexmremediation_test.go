// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

func TestValidateRemediation(t *testing.T) {
	for name, test := range map[string]struct {
		spec bootstrapv1.KubexmRemediationSpec
		// want are the paths of the errors, in order.
		want []string
	}{
		"nothing is said": {},
		"nothing is tried": {spec: bootstrapv1.KubexmRemediationSpec{
			ConvergeTimeoutSeconds: ptr.To[int32](0), RebootTimeoutSeconds: ptr.To[int32](0), MinHealthyPeriodSeconds: ptr.To[int32](0),
		}},
		"negative times": {
			spec: bootstrapv1.KubexmRemediationSpec{
				ConvergeTimeoutSeconds: ptr.To[int32](-1), RebootTimeoutSeconds: ptr.To[int32](-600),
				MinHealthyPeriodSeconds: ptr.To[int32](-2),
			},
			want: []string{"convergeTimeoutSeconds", "rebootTimeoutSeconds", "minHealthyPeriodSeconds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := &bootstrapv1.KubexmRemediationTemplate{}
			template.Spec.Template.Spec = test.spec
			var got, ofTemplate []string
			for _, err := range ValidateRemediation(&bootstrapv1.KubexmRemediation{Spec: test.spec}) {
				got = append(got, strings.TrimPrefix(err.Field, "spec."))
			}
			for _, err := range ValidateRemediationTemplate(template) {
				ofTemplate = append(ofTemplate, strings.TrimPrefix(err.Field, "spec.template.spec."))
			}
			if want := strings.Join(test.want, " "); strings.Join(got, " ") != want || strings.Join(ofTemplate, " ") != want {
				t.Errorf("refused %v, in a template %v, and not %v", got, ofTemplate, test.want)
			}
		})
	}
}

func TestRemediationTemplateMetadata(t *testing.T) {
	template := &bootstrapv1.KubexmRemediationTemplate{}
	template.Spec.Template.ObjectMeta.Labels = map[string]string{"a b": "c"}
	if errs := ValidateRemediationTemplate(template); len(errs) != 1 || errs[0].Field != "spec.template.metadata.labels" {
		t.Errorf("a bad label: %v", errs)
	}
}
