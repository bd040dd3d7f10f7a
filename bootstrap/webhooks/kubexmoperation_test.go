// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestValidateOperation(t *testing.T) {
	ok := bootstrapv1.KubexmOperationSpec{
		Type: bootstrapv1.RebootType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.MachineDeploymentTarget, Name: "workers"},
	}
	for name, tc := range map[string]struct {
		change func(*bootstrapv1.KubexmOperationSpec)
		// want are the paths of the errors, in order.
		want string
	}{
		"what is needed": {func(*bootstrapv1.KubexmOperationSpec) {}, ""},
		"all of it": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.MaxConcurrent, s.TimeoutSeconds, s.TTLSecondsAfterFinished = ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](0)
		}, ""},
		"components of a restart": {func(s *bootstrapv1.KubexmOperationSpec) {
			s.Type, s.Components = bootstrapv1.RestartType, []spec.ComponentName{spec.ComponentKubelet}
		}, ""},
		"a restart of nothing":   {func(s *bootstrapv1.KubexmOperationSpec) { s.Type = bootstrapv1.RestartType }, "components"},
		"components of a reboot": {func(s *bootstrapv1.KubexmOperationSpec) { s.Components = []spec.ComponentName{spec.ComponentKubelet} }, "components"},
		"no name at all":         {func(s *bootstrapv1.KubexmOperationSpec) { s.Target.Name = "a b" }, "target.name"},
	} {
		t.Run(name, func(t *testing.T) {
			before, o := &bootstrapv1.KubexmOperation{Spec: ok}, &bootstrapv1.KubexmOperation{Spec: ok}
			tc.change(&o.Spec)
			var got []string
			for _, err := range ValidateOperation(o) {
				got = append(got, strings.TrimPrefix(err.Field, "spec."))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("refused %v, and not %q", got, tc.want)
			}
			changed := !reflect.DeepEqual(before.Spec, o.Spec)
			if errs := ValidateOperationUpdate(before, o); (len(errs) > 0) != changed {
				t.Errorf("changed %v, refused %v", changed, errs)
			}
		})
	}
}
