// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// trusting writes a file, then a key pair, then a certificate that it has signed.
func trusting(t *testing.T) *plan.Plan {
	t.Helper()
	leaf := peer()
	b := plan.New("Test", "test")
	b.Host("h", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
		step.New(step.Meta{Name: "first"}, step.File{Path: "/first", Mode: 0o644, Content: step.Literal("first")}),
		step.New(step.Meta{Name: "authority"}, step.Authority("etcd", leaf.Trusted, "/ssl/ca.key")...),
		step.New(step.Meta{Name: "leaf"}, leaf),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func engineFor(m *fake.Machine, of authorities) *engine.Engine {
	return engine.New(engine.Options{
		Dial:    func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Secrets: of.Secret, Holder: "test", Jitter: func(time.Duration) time.Duration { return 0 },
	})
}

// files are those on m that are about trust, or that the plan writes first.
func files(t *testing.T, m *fake.Machine) map[string]string {
	t.Helper()
	c := peer()
	var q host.Query
	for _, p := range []string{"/first", c.Trusted, "/ssl/ca.key", c.Path, c.KeyPath} {
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

// TestOtherAuthorityIsRefused: nothing at all is done on a host that has another authority, not even what comes before it, whichever of
// its files is left; and what is merely lost is written again.
func TestOtherAuthorityIsRefused(t *testing.T) {
	own, other := authorities{"etcd": authority(t, 0)}, authorities{"etcd": authority(t, 0)}
	leaf := peer()
	for _, tt := range []struct {
		name    string
		change  func(*fake.Machine)
		with    authorities
		refused string
	}{
		{"the same", func(*fake.Machine) {}, own, ""},
		{"the certificate is lost", func(m *fake.Machine) { m.Remove(leaf.Trusted) }, own, ""},
		{"the certificate is garbage", func(m *fake.Machine) { m.Put(leaf.Trusted, "garbage", 0o644) }, own, ""},
		{"the key is lost", func(m *fake.Machine) { m.Remove("/ssl/ca.key") }, own, ""},
		{"the key is garbage beside its certificate", func(m *fake.Machine) { m.Put("/ssl/ca.key", "garbage", 0o600) }, own, ""},
		{"the leaf is another's", func(m *fake.Machine) {
			m.Put(leaf.Path, string(other["etcd"].Cert), 0o644)
		}, own, ""},
		{"another", func(*fake.Machine) {}, other, leaf.Trusted + " is of another authority (sha256:"},
		{"another, whose key is lost", func(m *fake.Machine) { m.Remove("/ssl/ca.key") }, other, leaf.Trusted + " is of another authority (sha256:"},
		{"another, whose certificate is lost", func(m *fake.Machine) { m.Remove(leaf.Trusted) }, other, "/ssl/ca.key is another private key"},
		{"another, whose certificate is garbage", func(m *fake.Machine) {
			m.Put(leaf.Trusted, "garbage", 0o644)
		}, other, "/ssl/ca.key is another private key"},
		{"another, of which a leaf is left", func(m *fake.Machine) {
			m.Remove(leaf.Trusted)
			m.Remove("/ssl/ca.key")
		}, other, leaf.Path + " is signed by another authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := fake.New("h")
			if _, err := engineFor(m, own).Run(t.Context(), trusting(t)); err != nil {
				t.Fatal(err)
			}
			m.Remove("/first") // so that there is something to do before the authority's turn
			tt.change(m)
			before := files(t, m)
			for _, run := range []func(context.Context, *plan.Plan) (engine.Report, error){engineFor(m, tt.with).Check,
				engineFor(m, tt.with).Run} {
				_, err := run(t.Context(), trusting(t))
				if tt.refused == "" {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				var failed *engine.Error
				if !errors.As(err, &failed) || host.KindOf(err) != host.KindOtherAuthority {
					t.Fatalf("got %v, want a refusal", err)
				}
				for _, want := range []string{tt.refused, "host h", "kubexm certs recover", "nothing is changed on the host"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q must have %q", err, want)
					}
				}
				if strings.Contains(err.Error(), "PRIVATE") {
					t.Error("a key is shown")
				}
			}
			after := files(t, m)
			if tt.refused == "" {
				if len(after) != 5 {
					t.Errorf("there is %v: all is written", after)
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

// TestFingerprintsAreInTheRefusal: that of the host's authority, and that of the declared one.
func TestFingerprintsAreInTheRefusal(t *testing.T) {
	own, other := authorities{"etcd": authority(t, 0)}, authorities{"etcd": authority(t, 0)}
	m := fake.New("h")
	if _, err := engineFor(m, own).Run(t.Context(), trusting(t)); err != nil {
		t.Fatal(err)
	}
	_, err := engineFor(m, other).Run(t.Context(), trusting(t))
	for _, pair := range []pki.KeyPair{own["etcd"], other["etcd"]} {
		fingerprint, printErr := pki.Fingerprint(pair.Cert)
		if printErr != nil || !strings.Contains(err.Error(), fingerprint) {
			t.Errorf("%q must have %q (%v)", err, fingerprint, printErr)
		}
	}
}
