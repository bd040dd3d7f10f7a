// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestCheckShowsLines: a look that finds content changed says in which lines, for what is for all to see, and that of nothing else. It
// takes one exchange more, and only then.
func TestCheckShowsLines(t *testing.T) {
	const want = "one\ntwo\nthree\nfour\n"
	file := func(path string, mode step.Mode, content step.Text) step.Step {
		return step.New(step.Meta{Name: "test" + path}, step.File{Path: path, Mode: mode, Content: content})
	}
	b := plan.New("Test", "test")
	b.Host("n1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "files", Steps: []step.Step{
		file("/etc/open", 0o644, step.Literal(want)),
		file("/etc/closed", 0o600, step.Literal(want)),
		file("/etc/secret", 0o644, step.Join(step.Literal("pass="), step.Secret("app", "password"))),
		file("/etc/key", 0o644, step.Literal(want)),
		file("/etc/tight", 0o644, step.Literal(want)),
		file("/etc/absent", 0o644, step.Literal(want)),
		step.New(step.Meta{Name: "test/block"}, step.Block{Path: "/etc/hosts", Name: "cluster", Content: "10.0.0.1 api\n"}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m := fake.New("n1")
	m.Put("/etc/hosts", "127.0.0.1 localhost\n", 0o644)
	e := engine.New(engine.Options{
		Holder: "test", Dial: func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Secrets: func(step.SecretRef) ([]byte, error) { return []byte("hunter2"), nil },
	})
	if _, err := e.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	before := m.Stats().Exchanges
	if r, err := e.Check(t.Context(), p); err != nil || !r.Converged() || m.Stats().Exchanges != before+1 {
		t.Fatalf("of a host that is as planned: %v after %d exchanges (%v)", r.Checks, m.Stats().Exchanges-before, err)
	}

	m.Put("/etc/open", "one\ntwo\n3 \x1b[2Jhunter2\nfour\n", 0o644)
	m.Put("/etc/closed", "a password\n", 0o600)
	m.Put("/etc/secret", "pass=hunter3", 0o644)
	m.Put("/etc/key", "-----BEGIN PRIVATE KEY-----\n", 0o644)
	m.Put("/etc/tight", "a password\n", 0o600)
	m.Put("/etc/hosts", "127.0.0.1 localhost\n", 0o644)
	before = m.Stats().Exchanges
	r, err := e.Check(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if took := m.Stats().Exchanges - before; took != 2 {
		t.Errorf("it took %d exchanges", took)
	}
	lines := map[string]string{}
	for _, c := range r.Checks {
		for subject, text := range c.Lines {
			lines[subject] = text
		}
	}
	open := "@@ -2,3 +2,3 @@\n two\n-3 [2J(redacted)\n+three\n four"
	if diff := cmp.Diff(map[string]string{"file /etc/open": open}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	var text strings.Builder
	if err := p.Render(&text, r.Checks); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\n  file /etc/open:\n    @@ -2,3 +2,3 @@\n     two\n    -3 ") || strings.Contains(text.String(), "hunter") {
		t.Errorf("it is shown as\n%s", &text)
	}
}
