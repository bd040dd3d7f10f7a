// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// An account is made when it or its group is not there; one whose group was there leaves it there.
func TestUser(t *testing.T) {
	u := step.User{Name: "etcd"}
	for name, tt := range map[string]struct {
		user, group int
		differs     int
		undo        string
	}{
		"there":    {0, 0, 0, "keep"},
		"absent":   {2, 2, 2, "remove"},
		"no user":  {2, 0, 1, "keep"},
		"no group": {0, 2, 1, "remove"},
	} {
		facts := &host.Facts{Commands: map[string]host.Result{"user etcd": {ExitCode: tt.user}, "group etcd": {ExitCode: tt.group}}}
		d, err := u.Precheck(step.View{Facts: facts})
		if err != nil || len(d) != tt.differs {
			t.Errorf("%s: %v differs (%v)", name, d, err)
		}
		e, err := u.Effect(step.View{Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		c := e.Changes[0].(host.Command)
		if got := c.Undo[len(c.Undo)-1]; got != tt.undo {
			t.Errorf("%s: the undo is told %q, want %q", name, got, tt.undo)
		}
	}
}
