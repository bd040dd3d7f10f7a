// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// It takes minutes, and hosts would add nothing to it.
//go:build !hosts

package reconcilers

import (
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestEveryFieldHasAnEffect: what the API takes is done, or it is refused. Each field of each of our kinds is changed, cleared and set
// anew, and each list and map gets and loses an item, in objects that are admitted by the webhooks themselves. Such a change must be
//
//   - refused, with the path of the field, or
//   - followed: the plan of at least one host has a step, or a part of one, that it did not have, and nothing that it had on the host is
//     let go of: what a step that is gone did would stay there, or
//   - somebody else's to read than plans: then it is in the list elsewhere, which is true of nothing that plans depend on.
func TestEveryFieldHasAnEffect(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	f := &fields{
		webhooks: serveWebhooks(t), kinds: map[string][]string{}, seen: map[string]bool{},
		read: map[string]bool{}, partly: map[string][2]bool{},
	}
	all := subjects(t)
	for _, s := range all {
		if kind := s.kind(); f.kinds[kind] == nil {
			f.kinds[kind] = leavesOf(reflect.TypeOf(s.object).Elem(), kind)
		}
	}
	for _, kind := range registered(t) {
		if f.kinds[kind] == nil {
			t.Errorf("%s: no object of this kind is checked: add one to subjects", kind)
		}
	}
	for _, s := range all {
		t.Run(s.kind()+"/"+s.name, func(t *testing.T) {
			if refused := f.webhooks.admit(t, nil, s.object); len(refused) > 0 {
				t.Fatalf("the object itself is refused: %v", refused)
			}
			before := s.follow(t, s.object)
			for _, c := range changesOf(s.object, s.kind()) {
				f.judge(t, s, before, c)
			}
		})
	}
	f.conclude(t)
}
