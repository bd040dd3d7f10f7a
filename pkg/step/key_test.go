// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// encrypting writes a file, then the key pki.EncryptionName and what is made of it.
func encrypting(t *testing.T) *plan.Plan {
	t.Helper()
	ref := step.SecretRef{Name: pki.EncryptionName, Key: "tls.key"} // that of authorities, the test's Secrets
	b := plan.New("Test", "test")
	b.Host("h", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
		step.New(step.Meta{Name: "first"}, step.File{Path: "/first", Mode: 0o644, Content: step.Literal("first")}),
		step.New(step.Meta{Name: "key"}, step.Key("/enc/key", ref, step.File{
			Path: "/enc/config", Mode: 0o600, Content: step.Join(step.Literal("secret: "), step.Secret(ref.Name, ref.Key), step.Literal("\n")),
		})...),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOtherKeyIsRefused: nothing at all is done on a host that has another key, whichever of its files is left; what is lost is written
// again, and what is made of the key follows what is declared.
func TestOtherKeyIsRefused(t *testing.T) {
	own, other := authorities{pki.EncryptionName: pki.NewEncryptionKey()}, authorities{pki.EncryptionName: pki.NewEncryptionKey()}
	for _, tt := range []struct {
		name    string
		change  func(*fake.Machine)
		with    authorities
		refused string
	}{
		{"the same", func(*fake.Machine) {}, own, ""},
		{"the key's file is lost", func(m *fake.Machine) { m.Remove("/enc/key") }, own, ""},
		{"what is made of it is lost", func(m *fake.Machine) { m.Remove("/enc/config") }, own, ""},
		{"what is made of it was edited", func(m *fake.Machine) { m.Put("/enc/config", "edited", 0o600) }, own, ""},
		{"both are lost", func(m *fake.Machine) { m.Remove("/enc/key"); m.Remove("/enc/config") }, other, ""},
		{"another", func(*fake.Machine) {}, other, "/enc/key is of another key, or damaged"},
		{"another, whose configuration is lost", func(m *fake.Machine) { m.Remove("/enc/config") }, other, "/enc/key is of another key, or damaged"},
		{"another, whose file is lost", func(m *fake.Machine) { m.Remove("/enc/key") }, other, "/enc/config is of another key, or damaged"},
		{"the key's file is damaged", func(m *fake.Machine) { m.Put("/enc/key", "", 0o600) }, own, "/enc/key is of another key, or damaged"},
		{"the key's file is lost, and the other was edited", func(m *fake.Machine) {
			m.Remove("/enc/key")
			m.Put("/enc/config", "edited", 0o600)
		}, own, "/enc/config is of another key, or damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := fake.New("h")
			if _, err := engineFor(m, own).Run(t.Context(), encrypting(t)); err != nil {
				t.Fatal(err)
			}
			m.Remove("/first") // so that there is something to do before the key's turn
			tt.change(m)
			before := keyFiles(t, m)
			for _, run := range []func(context.Context, *plan.Plan) (engine.Report, error){engineFor(m, tt.with).Check,
				engineFor(m, tt.with).Run} {
				report, err := run(t.Context(), encrypting(t))
				if tt.refused == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				if host.KindOf(err) != host.KindOtherAuthority || !errors.As(err, new(*engine.Error)) {
					t.Fatalf("got %v, want a refusal", err)
				}
				for _, want := range []string{tt.refused, "host h", "kubexm certs recover", "nothing is changed on the host", "move the file away"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q must have %q", err, want)
					}
				}
				said, jsonErr := json.Marshal(report)
				if jsonErr != nil {
					t.Fatal(jsonErr)
				}
				for _, a := range []authorities{own, other} {
					if strings.Contains(err.Error()+string(said), string(a[pki.EncryptionName].Key.Reveal())) {
						t.Error("a key is shown")
					}
				}
			}
			after := keyFiles(t, m)
			if tt.refused == "" {
				key := string(tt.with[pki.EncryptionName].Key.Reveal())
				want := map[string]string{"/first": sha("first"), "/enc/key": sha(key), "/enc/config": sha("secret: " + key + "\n")}
				for path, digest := range want {
					if after[path] != digest {
						t.Errorf("%s is not up to date", path)
					}
				}
				return
			}
			if len(after) != len(before) {
				t.Errorf("there was %v, and is %v", before, after)
			}
			for path, digest := range before {
				if after[path] != digest {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
}

// keyFiles are the digests of what the plan writes, where it is there.
func keyFiles(t *testing.T, m *fake.Machine) map[string]string {
	t.Helper()
	var q host.Query
	for _, p := range []string{"/first", "/enc/key", "/enc/config"} {
		q.Paths = append(q.Paths, host.PathQuery{Path: p, Digest: true})
	}
	f, err := m.Connect().Observe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for path, p := range f.Paths {
		if p.Exists {
			all[path] = p.Digest
		}
	}
	return all
}

// TestKeyIsNotAskedOf: what a host is asked of the files is their digests, so that facts never have the key; and a plan names it only.
func TestKeyIsNotAskedOf(t *testing.T) {
	for _, s := range step.Key("/enc/key", step.SecretRef{Name: "encryption", Key: "key"},
		step.File{Path: "/enc/config", Content: step.Secret("encryption", "key")}) {
		for _, q := range s.Observe().Paths {
			if q.Content || !q.Digest {
				t.Errorf("the host is asked for %+v", q)
			}
		}
		said, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(said), `"secret":{"name":"encryption","key":"key"}`) {
			t.Errorf("a plan has %s (%v)", said, err)
		}
	}
}
