// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// TestEnterTriesTwice: an sshd that takes its configuration in refuses for a moment, which is not waited for like a host that has not
// run its bootstrap data.
func TestEnterTriesTwice(t *testing.T) {
	failed := func(kind host.Kind) error { return &host.Error{Kind: kind, Host: "w1"} }
	for name, tc := range map[string]struct {
		answers []error
		ends    time.Duration // of the attempt, 0 if it does not
		want    error
		dials   int
		after   time.Duration
	}{
		"it lets us in":             {answers: []error{nil}, dials: 1},
		"it does so a moment later": {answers: []error{failed(host.KindAuth), nil}, dials: 2, after: secondTry},
		"it refuses again": {answers: []error{failed(host.KindHostKey), failed(host.KindUnreachable)},
			want: failed(host.KindUnreachable), dials: 2, after: secondTry},
		"something else is wrong":     {answers: []error{failed(host.KindPrivilege)}, want: failed(host.KindPrivilege), dials: 1},
		"the attempt ends meanwhile":  {answers: []error{failed(host.KindAuth)}, ends: time.Second, want: failed(host.KindAuth), dials: 1, after: time.Second},
		"it has no kind that we know": {answers: []error{errors.New("other")}, want: errors.New("other"), dials: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.ends > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.ends)
					defer cancel()
				}
				dials, began := 0, time.Now()
				j := &enrollment{withoutPlan: withoutPlan{host: "w1", dial: func(context.Context, string) (host.Host, error) {
					dials++
					return nil, tc.answers[dials-1]
				}}}
				_, err := j.enter(ctx)
				if dials != tc.dials || time.Since(began) != tc.after {
					t.Errorf("%d dials in %s", dials, time.Since(began))
				}
				if (err == nil) != (tc.want == nil) ||
					err != nil && (err.Error() != tc.want.Error() || host.KindOf(err) != host.KindOf(tc.want)) {
					t.Errorf("it ended with %v, want %v", err, tc.want)
				}
			})
		})
	}
}
