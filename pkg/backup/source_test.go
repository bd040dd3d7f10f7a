// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/local"
)

// TestOnHost reads a backup where it lies, on this machine's own shell here, and finds out what is damaged.
func TestOnHost(t *testing.T) {
	there := t.TempDir()
	at := func(path string) backup.OnHost {
		return backup.OnHost{Path: path, Dial: func(context.Context) (host.Host, error) {
			h, err := local.New(local.Config{Name: "cp1"})
			if err != nil {
				return nil, err
			}
			return h, nil
		}}
	}
	path := save(t, there, "prod", "SHA256:a", 1)
	if m, err := at(path).Manifest(t.Context()); err != nil || m.Cluster != "prod" || m.Revision != 7 {
		t.Errorf("%+v, %v", m, err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := at(path).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(got) != string(want) {
		t.Errorf("it reads %d bytes and not these %d: %v", len(got), len(want), err)
	}
	whole := filepath.Join(there, "whole.db") // no part is shorter than the others
	put(t, whole, strings.Repeat("x", 2<<20))
	if r, err = at(whole).Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != 2<<20 {
		t.Errorf("it reads %d bytes, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	bad := save(t, there, "prod", "SHA256:a", 2)
	content, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-1] ^= 1
	put(t, bad, string(content))
	short := save(t, there, "prod", "SHA256:a", 3)
	put(t, short, string(content[:100]))
	alone := save(t, there, "prod", "SHA256:a", 4)
	if err := os.Remove(strings.TrimSuffix(alone, ".db") + ".json"); err != nil {
		t.Fatal(err)
	}
	odd := save(t, there, "prod", "SHA256:a", 5)
	put(t, strings.TrimSuffix(odd, ".db")+".json", "[]")
	half := save(t, there, "prod", "SHA256:a", 6)
	put(t, strings.TrimSuffix(half, ".db")+".json", `{"cluster": "prod", `)
	for path, want := range map[string]string{
		bad: "is damaged", short: "is damaged", odd: "is no manifest", half: "is no manifest",
		alone: "nothing says whose snapshot", filepath.Join(there, "none.db"): "nothing says whose snapshot",
	} {
		if _, err := at(path).Manifest(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !backup.IsLasting(err) {
			t.Errorf("%s: %v, want %q, for good", path, err, want)
		}
	}
}

// TestIsLasting: what may answer later is asked again.
func TestIsLasting(t *testing.T) {
	for _, c := range []struct {
		err     error
		lasting bool
	}{
		{errors.New("it is damaged"), true},
		{&host.Error{Kind: host.KindUnreachable}, false},
		{&host.Error{Kind: host.KindHostKey}, true},
		{context.DeadlineExceeded, false},
		{&url.Error{Op: "Get", Err: errors.New("connection refused")}, false},
		{minio.ErrorResponse{StatusCode: 404}, true},
		{minio.ErrorResponse{StatusCode: 403}, true},
		{minio.ErrorResponse{StatusCode: 503}, false},
		{minio.ErrorResponse{StatusCode: 429}, false},
		{minio.ErrorResponse{StatusCode: 408}, false},
		{minio.ErrorResponse{StatusCode: 400, Code: "RequestTimeout"}, false},
		{minio.ErrorResponse{StatusCode: 400, Code: "InvalidArgument"}, true},
		{io.ErrUnexpectedEOF, false}, // of an answer that was cut
	} {
		if got := backup.IsLasting(fmt.Errorf("the backup: %w", c.err)); got != c.lasting {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// TestFits: a backup is restored into the cluster that it is of, with a version that understands it, and not if too much would be lost.
func TestFits(t *testing.T) {
	is := backup.Manifest{Cluster: "prod", Authority: "SHA256:a", KubernetesVersion: "v1.36.3", Time: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	ok := backup.Wanted{Cluster: "prod", Authority: "SHA256:a", KubernetesVersion: "v1.36.3", Override: "--of-cluster"}
	for what, c := range map[string]struct {
		change func(*backup.Wanted)
		want   string
	}{
		"its own":                      {func(*backup.Wanted) {}, ""},
		"another cluster's":            {func(w *backup.Wanted) { w.Cluster = "dev" }, "If that is meant, say so: --of-cluster prod"},
		"another authority's":          {func(w *backup.Wanted) { w.Authority = "SHA256:b" }, "may be of no use here"},
		"another's that is meant":      {func(w *backup.Wanted) { w.Cluster, w.Authority, w.OfCluster = "dev", "SHA256:b", "prod" }, ""},
		"another than is meant":        {func(w *backup.Wanted) { w.OfCluster = "dev" }, "it is of cluster prod, and --of-cluster says dev"},
		"not too old":                  {func(w *backup.Wanted) { w.NotBefore = is.Time }, ""},
		"too old":                      {func(w *backup.Wanted) { w.NotBefore = is.Time.Add(time.Second) }, "it was saved at 2026-11-23T03:00:00Z"},
		"of an older patch":            {func(w *backup.Wanted) { w.KubernetesVersion = "v1.36.9" }, ""},
		"of the minor version before":  {func(w *backup.Wanted) { w.KubernetesVersion = "v1.37.0" }, ""},
		"of a newer minor version":     {func(w *backup.Wanted) { w.KubernetesVersion = "v1.35.4" }, "API servers understand"},
		"of two minor versions before": {func(w *backup.Wanted) { w.KubernetesVersion = "v1.38.0" }, "API servers understand"},
		"of another major version":     {func(w *backup.Wanted) { w.KubernetesVersion = "v2.36.3" }, "API servers understand"},
	} {
		wanted := ok
		c.change(&wanted)
		if err := is.Fits(wanted); c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	if err := (backup.Manifest{Cluster: "prod", Authority: "SHA256:a"}).Fits(ok); err == nil || !strings.Contains(err.Error(), "which is no version") {
		t.Errorf("of no version: %v", err)
	}
}
