// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// contents are artifacts by their digests.
type contents map[string]string

func (c contents) add(content string) *step.Artifact {
	sum := sha256.Sum256([]byte(content))
	a := &step.Artifact{Path: content, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
	c[a.Digest] = content
	return a
}

func (c contents) Open(_ context.Context, a step.Artifact) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(c[a.Digest])), nil
}

// watched is a host of which it is noted what its sessions send ahead and do.
type watched struct {
	host.Host
	told *[]string
}

func (w watched) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	s, err := w.Host.Begin(ctx, r)
	return watchedSession{s, w.told}, err
}

type watchedSession struct {
	host.Session
	told *[]string
}

func (w watchedSession) StageAhead(ctx context.Context, lots ...[]host.Blob) error {
	var said []string
	for _, lot := range lots {
		var names []string
		for _, b := range lot {
			source, err := b.Open()
			if err != nil {
				return err
			}
			content, err := io.ReadAll(source)
			if err != nil || !bytes.Equal(content, []byte(b.Name)) {
				return fmt.Errorf("%s is %q: %w", b.Name, content, err)
			}
			names = append(names, b.Name)
		}
		said = append(said, strings.Join(names, " "))
	}
	*w.told = append(*w.told, "ahead: "+strings.Join(said, ", "))
	return w.Session.StageAhead(ctx, lots...)
}

func (w watchedSession) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	for _, a := range acts {
		*w.told = append(*w.told, a.Node)
	}
	return w.Session.Do(ctx, acts...)
}

// What later steps place is named with the first change, step by step, and once for each session; what is there already is not.
func TestContentIsSentAhead(t *testing.T) {
	have := contents{}
	file := func(name string, from *step.Artifact) step.Step {
		return step.New(step.Meta{Name: name}, step.File{Path: "/opt/" + name, Mode: 0o755, From: from})
	}
	setting := step.New(step.Meta{Name: "setting"}, step.File{Path: "/etc/setting", Mode: 0o644, Content: step.Literal("x")})
	module := func(steps ...step.Step) *plan.Plan {
		b := plan.New("Programs", "test")
		b.Host("n1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "programs", Steps: steps}}})
		p, err := b.Plan()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	m := fake.New("n1")
	var told []string
	e := engine.New(engine.Options{
		Holder: "test", Artifacts: have,
		Dial: func(context.Context, string) (host.Host, error) { return watched{m.Connect(), &told}, nil },
	})
	two := step.New(step.Meta{Name: "two"}, step.Programs("/opt/two", []step.Artifact{*have.add("b"), *have.add("c")})...)
	for _, run := range []struct {
		steps []step.Step
		want  []string
	}{
		{[]step.Step{file("one", have.add("a"))}, []string{"ahead: a", "n1/os/programs/one"}},
		{
			[]step.Step{file("one", have.add("a")), setting, two, file("three", have.add("d"))},
			[]string{"ahead: b c, d", "n1/os/programs/setting", "n1/os/programs/two", "n1/os/programs/three"},
		},
		{[]step.Step{file("one", have.add("a")), setting, two, file("three", have.add("d"))}, nil},
	} {
		told = nil
		if _, err := e.Run(t.Context(), module(run.steps...)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(run.want, told); d != "" {
			t.Error(d)
		}
	}
}

// draining is a cluster whose Nodes are drained once content was sent to a host.
type draining struct {
	*cluster
	sent chan struct{}
}

func (d draining) DrainNode(ctx context.Context, name string) error {
	select {
	case <-d.sent:
		return d.cluster.DrainNode(ctx, name)
	case <-time.After(20 * time.Second):
		return errors.New("nothing is sent while the Node is drained")
	}
}

// sending is a host that tells when content is sent ahead to it.
type sending struct {
	host.Host
	sent chan struct{}
}

func (h sending) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	s, err := h.Host.Begin(ctx, r)
	return sendingSession{s, h.sent}, err
}

type sendingSession struct {
	host.Session
	sent chan struct{}
}

func (s sendingSession) StageAhead(ctx context.Context, lots ...[]host.Blob) error {
	defer close(s.sent)
	return s.Session.StageAhead(ctx, lots...)
}

// Programs are sent while their Node is drained, and placed after that.
func TestContentIsSentDuringTheDrain(t *testing.T) {
	have := contents{}
	drained := graph.Output[string]{Name: "drained"}
	b := plan.New("Programs", "test")
	gate := step.New(step.Meta{Name: "drain"}, step.Drain{Node: "n1", Output: drained.Name})
	b.Gate(plan.Module{Name: "kubernetes", Tasks: []plan.Task{{Name: "drain", Steps: []step.Step{gate}}}})
	b.Host("n1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "programs", Steps: []step.Step{
		step.New(step.Meta{Name: "one", Takes: []string{drained.Name}}, step.File{Path: "/opt/one", Mode: 0o755, From: have.add("a")}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m, c := fake.New("n1"), draining{&cluster{}, make(chan struct{})}
	e := engine.New(engine.Options{
		Holder: "test", Artifacts: have,
		Dial:    func(context.Context, string) (host.Host, error) { return sending{m.Connect(), c.sent}, nil },
		Cluster: func(context.Context) (step.Cluster, error) { return c, nil },
	})
	if _, err := e.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"drain n1"}, c.calls); d != "" {
		t.Error(d)
	}
}
