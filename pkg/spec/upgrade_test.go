// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestValidateUpgrade(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"v1.35.4", "v1.35.4", ""},
		{"v1.35.4", "v1.35.9", ""},
		{"v1.35.4", "v1.36.0", ""},
		{"v1.36.0-rc.1", "v1.36.0", ""},
		{"v1.36.3", "v1.36.2", "cannot be downgraded"},
		{"v1.36.3", "v1.35.9", "cannot be downgraded"},
		{"v1.36.0", "v1.36.0-rc.1", "cannot be downgraded"},
		{"v1.34.9", "v1.36.0", "upgrade to a v1.35 first"},
		{"v1.36.3", "v2.0.0", "stay with v1"},
	} {
		errs := spec.ValidateUpgrade(c.from, c.to, field.NewPath("spec", "version"))
		switch {
		case c.want == "" && len(errs) > 0:
			t.Errorf("%s to %s: %v", c.from, c.to, errs)
		case c.want != "" && (len(errs) != 1 || errs[0].Field != "spec.version" || !strings.Contains(errs[0].Error(), c.want)):
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, errs, c.want)
		}
	}
}
