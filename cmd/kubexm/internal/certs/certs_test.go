// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// TestOfHalf: a host on which the script fails is not one without certificates.
func TestOfHalf(t *testing.T) {
	e := engine.New(engine.Options{Dial: func(_ context.Context, name string) (host.Host, error) {
		m := fake.New(name)
		m.OnCommand = func(*fake.Machine, host.Command) host.Result {
			return host.Result{ExitCode: 127, Stderr: []byte("sh: awk: not found\n")}
		}
		return m.Connect(), nil
	}})
	got, err := Of(t.Context(), e, "prod", []string{"node1"}, time.Now(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []Certificate{{Cluster: "prod", Host: "node1", Status: Unreadable, File: certificate.File{
		Message: "not all could be read, exit code 127: sh: awk: not found",
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOf: what hosts answer is judged, in their order, and one that does not answer hides nothing of the others.
func TestOf(t *testing.T) {
	made, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	is, err := made.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{Dial: func(_ context.Context, name string) (host.Host, error) {
		if name == "gone" {
			return nil, &host.Error{Kind: host.KindUnreachable, Host: name, Message: "cannot connect"}
		}
		m := fake.New(name)
		m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
			if c.Argv[0] != "/bin/sh" {
				t.Errorf("a command that nobody should run: %v", c.Argv)
			}
			files := []byte("# /etc/kubernetes/pki/x.key\n# /etc/kubernetes/pki/x.crt\n")
			return host.Result{Stdout: append(files, made.Cert...)}
		}
		return m.Connect(), nil
	}})
	const day = 24 * time.Hour
	for _, c := range []struct {
		now  time.Time
		days int
		want Status
	}{
		{is.NotAfter.Add(-90 * day), 90, Good},
		{is.NotAfter.Add(-90*day + time.Second), 89, Ending},
		{is.NotAfter.Add(-time.Second), 0, Ending},
		{is.NotAfter, -1, Expired},
		{is.NotAfter.Add(36 * time.Hour), -2, Expired},
	} {
		got, err := Of(t.Context(), e, "prod", []string{"node2", "gone", "node1"}, c.now, 90*day)
		var failed *engine.Error
		if !errors.As(err, &failed) || len(failed.Failures) != 1 {
			t.Fatalf("error %v, want that of one host", err)
		}
		if len(got) != 2 || got[0].Host != "node2" || got[1].Host != "node1" {
			t.Fatalf("certificates %v", got)
		}
		if got[0].Status != c.want || got[0].DaysLeft != c.days {
			t.Errorf("at %s: %s, %d days; want %s, %d", c.now, got[0].Status, got[0].DaysLeft, c.want, c.days)
		}
	}
}
