// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestRestrict: what is left of a plan has all that it takes, in the order that it had.
func TestRestrict(t *testing.T) {
	b := plan.New("JoinWorker", "prod")
	file := func(name string, meta step.Meta) step.Step {
		meta.Name = name
		return step.New(meta, step.File{Path: "/etc/" + name, Content: step.Literal("a")})
	}
	b.Host("a", plan.Module{Name: "m", Tasks: []plan.Task{
		{Name: "one", Steps: []step.Step{file("first", step.Meta{}), file("makes", step.Meta{Makes: []string{"x"}}), file("between", step.Meta{})}},
		{Name: "two", Steps: []step.Step{file("kept", step.Meta{}), file("last", step.Meta{Takes: []string{"y"}})}},
	}})
	b.Host("b", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "one", Steps: []step.Step{
		file("other", step.Meta{}), file("kept", step.Meta{Takes: []string{"x"}, Makes: []string{"y"}}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	left, err := p.Restrict(func(n plan.Node) bool { return n.Name == "kept" })
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range left.Graph().Order() {
		n := left.Graph().Node(i)
		ids = append(ids, n.ID)
		if i, found := p.Graph().Index(n.ID); !found || p.Graph().Node(i).Value.Digest != n.Value.Digest {
			t.Errorf("%s is another node than before", n.ID)
		}
	}
	slices.Sort(ids)
	if want := []string{"a/m/one/makes", "a/m/two/kept", "b/m/one/kept"}; !slices.Equal(ids, want) {
		t.Errorf("left are %v, want %v", ids, want)
	}
	i, _ := left.Graph().Index("a/m/two/kept")
	if after := left.Graph().Node(i).After; !slices.Equal(after, []string{"a/m/one/makes"}) {
		t.Errorf("it comes after %v", after)
	}
	if !slices.Equal(left.Hosts, []string{"a", "b"}) {
		t.Errorf("the hosts are %v", left.Hosts)
	}
	if _, err := p.Restrict(func(plan.Node) bool { return false }); err == nil {
		t.Error("a plan of nothing is no error")
	}
}
