// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// TestTrustOfAKnownCluster: neither what changes hosts nor what only compares gets key pairs made for a cluster that is known.
func TestTrustOfAKnownCluster(t *testing.T) {
	dir, err := clusterdir.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteInventory(&clusterdir.Inventory{Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: &config.Cluster{Name: "prod"}, dir: dir}
	for _, keep := range []bool{true, false} {
		_, err := d.trust(keep)
		var missing *clusterdir.MissingAuthoritiesError
		if !errors.As(err, &missing) || len(missing.Files) != 8 || dir.HasAuthorities() {
			t.Errorf("keep %t: got %v, want that all files are missing, and none to be made", keep, err)
		}
	}
}

// TestEncryptionWithoutAnInventory: the key says that there is something to be read with it.
func TestEncryptionWithoutAnInventory(t *testing.T) {
	dir, err := clusterdir.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, true); err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: &config.Cluster{Name: "prod"}, dir: dir}
	for provider, want := range map[spec.EncryptionProvider]string{
		spec.EncryptionSecretbox: "", spec.EncryptionNone: "spec.kubernetes.encryptionAtRest: prod has an encryption key",
	} {
		d.Spec.Kubernetes.EncryptionAtRest = spec.EncryptionAtRest{Provider: provider, Resources: []string{"secrets"}}
		if err := d.sameCluster(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", provider, err, want)
		}
	}
}

// TestEncryptionOfAKnownCluster: it is refused to turn it on, off or to another in passing, with the value to set it back to; a cluster
// that was remembered before there was encryption has none.
func TestEncryptionOfAKnownCluster(t *testing.T) {
	on := spec.EncryptionAtRest{Provider: spec.EncryptionSecretbox, Resources: []string{"secrets"}}
	off := spec.EncryptionAtRest{Provider: spec.EncryptionNone}
	for name, tc := range map[string]struct {
		was, is spec.EncryptionAtRest
		want    string
	}{
		"as before": {on, on, ""}, "none as before": {off, off, ""}, "from before there was any": {spec.EncryptionAtRest{}, off, ""},
		"turned on":      {spec.EncryptionAtRest{}, on, `set it back to "None"`},
		"turned off":     {on, off, `set it back to "Secretbox"`},
		"another":        {on, spec.EncryptionAtRest{Provider: spec.EncryptionAESCBC, Resources: []string{"secrets"}}, `set it back to "Secretbox"`},
		"something more": {on, spec.EncryptionAtRest{Provider: spec.EncryptionSecretbox, Resources: []string{"pods", "secrets"}}, `set it back to "[secrets]"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := clusterdir.Of(t.TempDir(), "prod")
			if err != nil {
				t.Fatal(err)
			}
			d := &declared{Cluster: &config.Cluster{Name: "prod"}, dir: dir}
			d.Spec.Kubernetes.EncryptionAtRest = tc.is
			if err := d.sameCluster(); err != nil {
				t.Errorf("nothing is known of the cluster: %v", err)
			}
			if err := dir.WriteInventory(&clusterdir.Inventory{Cluster: "prod", Encryption: tc.was}); err != nil {
				t.Fatal(err)
			}
			err = d.sameCluster()
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(err.Error(), "spec.kubernetes.encryptionAtRest.")) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
