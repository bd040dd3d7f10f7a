// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
)

func TestOpenBucketRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for at, tt := range map[string]struct {
		options backup.BucketOptions
		want    string
	}{
		"backups/prod":           {want: "is no place in a bucket"},
		"s3:///prod":             {want: "is no place in a bucket"},
		"s3://key:word@b/prod":   {want: "is no place in a bucket"},
		"https://backups/prod":   {want: "is no place in a bucket"},
		"s3://backups/in-clear":  {backup.BucketOptions{Endpoint: "http://s3.example"}, "use https"},
		"s3://backups/a-path":    {backup.BucketOptions{Endpoint: "https://s3.example/path"}, "is no URL of an object store"},
		"s3://backups/no-scheme": {backup.BucketOptions{Endpoint: "s3.example"}, "is no URL of an object store"},
		"s3://backups/no-file":   {backup.BucketOptions{Authorities: empty + ".none"}, "no such file"},
		"s3://backups/no-pem":    {backup.BucketOptions{Authorities: empty}, "has no certificate in PEM"},
	} {
		if _, err := backup.OpenBucket(at, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %+v: %v, want %q", at, tt.options, err, tt.want)
		}
	}
	b, err := backup.OpenBucket("s3://backups/a/b/", backup.BucketOptions{})
	if err != nil || b.String() != "s3://backups/a/b" {
		t.Errorf("%v, %v", b, err)
	}
}

func TestSplit(t *testing.T) {
	place, name, err := backup.Split("s3://backups/a/etcd-prod-20261123T010000Z-cp1.db")
	if err != nil || place != "s3://backups/a" || name != "etcd-prod-20261123T010000Z-cp1" {
		t.Errorf("%q %q %v", place, name, err)
	}
	for _, bad := range []string{"s3://backups/a/x.json", "s3://x.db", "/a/x.db", ""} {
		if _, _, err := backup.Split(bad); err == nil || !strings.Contains(err.Error(), "is no backup in a bucket") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
