// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestUpgrade tells what a plan with another version of Kubernetes does on a host that is as the plan with the one before has made
// it: the steps that differ, in their order, each with why, and what users notice. Nothing else may differ.
func TestUpgrade(t *testing.T) {
	newer := bundle(t)
	older := olderBundle(t)
	binary := func(t *spec.Target) {
		t.Cluster.Kubernetes.Type, t.Cluster.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
	}
	kubeadm := func(t *spec.Target) { t.Cluster.Etcd.Type = spec.EtcdKubeadm }
	for _, tt := range []struct {
		name   string
		role   spec.Role
		change func(*spec.Target)
		make   func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error)
	}{
		{"control-plane-kubeadm", spec.RoleControlPlane, kubeadm, pipeline.CreateControlPlane},
		{"worker-kubeadm", spec.RoleWorker, kubeadm, pipeline.JoinWorker},
		{"control-plane-binary", spec.RoleControlPlane, binary, pipeline.CreateControlPlane},
		{"worker-binary", spec.RoleWorker, binary, pipeline.JoinWorker},
	} {
		t.Run(tt.name, func(t *testing.T) {
			planned := func(b *artifact.Bundle) *plan.Plan {
				t.Helper()
				n := node("n1", "192.168.0.11", tt.role, machine, tt.change)
				n.Target.KubernetesVersion = b.Version(artifact.Kubernetes)
				p, err := tt.make(n, b)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			was := planned(older)
			h := madeBy(was)
			if left := h.differs(was); left != "" {
				t.Fatalf("the host is not as its own plan makes it:\n%s", left)
			}
			golden.File(t, filepath.Join("testdata", "upgrade", tt.name+".golden"), h.differs(planned(newer)))
		})
	}
}

// olderBundle is the bundle with another Kubernetes in it, and all else the same.
func olderBundle(t *testing.T) *artifact.Bundle {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "bundle", artifact.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	m, err := artifact.ReadManifest(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "v1.36.3", "v1.35.4")
	for _, i := range m.Items {
		if i.Component == artifact.Kubernetes {
			text = strings.ReplaceAll(text, i.SHA256, "35040000"+i.SHA256[8:])
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, artifact.ManifestName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// made is a host in the state to which plans bring it, as far as it follows from them.
type made struct {
	facts *host.Facts
	// images by their names, with their digests.
	images map[string]string
}

// The clock of such a host: what was made, when units were started, and what a later plan writes.
var (
	written = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	started = written.Add(time.Hour)
	later   = started.Add(time.Hour)
)

func madeBy(p *plan.Plan) *made {
	// What kubeadm and the kubelet write by themselves.
	theirs := map[string]host.Path{
		"/etc/kubernetes/kubelet.conf": {Exists: true}, "/var/lib/kubelet/pki/kubelet-client-current.pem": {Exists: true},
	}
	for _, pod := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		for _, in := range []string{"manifests", "kubexm-manifests"} {
			theirs["/etc/kubernetes/"+in+"/"+pod+".yaml"] = host.Path{Exists: true, Digest: "sha256:" + pod}
		}
	}
	m := &made{images: map[string]string{}, facts: &host.Facts{
		Taken: later.Add(time.Hour), Paths: theirs,
		Blocks: map[string]string{}, Units: map[string]host.UnitState{}, Sysctls: map[string]string{}, Modules: map[string]bool{},
		Packages: map[string]string{}, Commands: map[string]host.Result{}, Journal: map[string]host.JournalEntry{},
	}}
	for i := range p.Graph().Len() {
		if n := p.Graph().Node(i).Value; n.Host != plan.Controller {
			m.make(n.Step, written)
			m.facts.Journal[n.ID] = host.JournalEntry{Run: "run", Digest: n.Digest}
		}
	}
	return m
}

// make makes a step so.
func (m *made) make(s step.Step, at time.Time) {
	for _, q := range s.Observe().Commands {
		if _, known := m.facts.Commands[q.ID]; !known {
			m.facts.Commands[q.ID] = host.Result{}
		}
	}
	f := m.facts
	switch s := s.(type) {
	case step.Sequence:
		for _, p := range s.Parts {
			m.make(p, at)
		}
	case step.File:
		digest := ""
		if s.From != nil {
			digest = s.From.Digest
		} else if text, err := s.Content.Resolve(secrets{}); err == nil {
			sum := sha256.Sum256(text.Reveal())
			digest = "sha256:" + hex.EncodeToString(sum[:])
		}
		f.Paths[s.Path] = host.Path{
			Exists: true, Mode: fs.FileMode(s.Mode), Owner: owner(s.Owner), Group: owner(s.Group), Digest: digest, Modified: at,
		}
	case step.Directory:
		f.Paths[s.Path] = host.Path{Exists: true, Mode: fs.ModeDir | fs.FileMode(s.Mode), Owner: owner(s.Owner), Group: owner(s.Group)}
	case step.Block:
		f.Blocks[s.Path+"#"+s.Name] = s.Content
	case step.Service:
		since := started
		if at.After(started) {
			since = at
		}
		f.Units[s.Name] = host.UnitState{Load: "loaded", Active: "active", File: "enabled", Since: since}
		if s.State == step.Stopped {
			f.Units[s.Name] = host.UnitState{Load: "not-found"}
		}
	case step.Sysctl:
		f.Sysctls[s.Name] = s.Value
	case step.Module:
		f.Modules[s.Name] = true
	case step.Package:
		for _, name := range s.Observe().Packages {
			f.Packages[name] = "1"
		}
	case step.Import:
		for _, i := range s.Images {
			m.images[i.Ref] = i.Digest
			if i.As != "" {
				m.images[i.As] = i.Digest
			}
		}
	}
}

// look answers what depends on more than the question: which images there are.
func (m *made) look(q host.Query) {
	var table strings.Builder
	for name, digest := range m.images {
		fmt.Fprintf(&table, "%s type %s\n", name, digest)
	}
	for _, c := range q.Commands {
		if strings.HasPrefix(c.ID, "images") {
			m.facts.Commands[c.ID] = host.Result{Stdout: []byte(table.String())}
		}
	}
}

// differs are the steps of p that differ, each as it is found when those before it are made so. Certificates, which take real ones
// to be judged, are taken for good.
func (m *made) differs(p *plan.Plan) string {
	var b strings.Builder
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		if n.Host == plan.Controller || len(step.Certificates(n.Step)) > 0 || n.Name == "kubeadm/certificates" {
			continue
		}
		m.look(n.Step.Observe())
		d, err := n.Step.Precheck(step.View{Facts: m.facts, Values: secrets{}, Node: n.ID, Digest: n.Digest})
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", n.ID, err)
		}
		if len(d) == 0 {
			continue
		}
		meta := n.Step.Meta()
		fmt.Fprintf(&b, "%s", strings.TrimPrefix(n.ID, n.Host+"/"))
		for _, takes := range meta.Takes {
			fmt.Fprintf(&b, "  < %s", takes)
		}
		if meta.Disrupts != "" {
			fmt.Fprintf(&b, "  ! %s", meta.Disrupts)
		}
		b.WriteString("\n")
		for _, x := range d {
			fmt.Fprintf(&b, "    %s: %s → %s\n", x.Subject, x.From, x.To)
		}
		m.make(n.Step, later)
		if opens, _ := step.SavepointOf(n.Step); opens != nil {
			m.facts.Paths[opens.Dir] = host.Path{Exists: true, Mode: fs.ModeDir | 0o700}
		}
	}
	return b.String()
}

func owner(name string) string {
	if name == "" {
		return "root"
	}
	return name
}

// secrets are all the same, and no output is known.
type secrets struct{}

func (secrets) Secret(step.SecretRef) ([]byte, error) { return []byte("secret"), nil }
func (secrets) Output(string) ([]byte, error)         { return nil, step.ErrUnknown }
