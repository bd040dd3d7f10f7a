// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

func TestKeysLast(t *testing.T) {
	dir := t.TempDir()
	first, err := loadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := os.ReadFile(filepath.Join(dir, saPrivate))
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.authority.Cert, second.authority.Cert) {
		t.Error("the second start has another authority")
	}
	if bytes.Equal(first.server.Cert, second.server.Cert) {
		t.Error("the second start has the certificate of the first, which ends some day")
	}
	if again, err := os.ReadFile(filepath.Join(dir, saPrivate)); err != nil || !bytes.Equal(accounts, again) {
		t.Errorf("the second start has other service account keys (%v)", err)
	}
	for _, pair := range []pki.KeyPair{first.server, second.server, second.webhook} {
		if err := pair.CheckLeaf(second.authority.Cert, time.Now(), pki.Server); err != nil {
			t.Error(err)
		}
	}
	if err := first.admin.CheckLeaf(second.authority.Cert, time.Now(), pki.Client); err != nil {
		t.Errorf("a kubeconfig of the first start: %v", err)
	}
}

func TestKeysHalfWritten(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadKeys(dir); err != nil {
		t.Fatal(err)
	}
	// Killed between the key and the certificate.
	if err := os.Remove(filepath.Join(dir, caCert)); err != nil {
		t.Fatal(err)
	}
	if _, err := loadKeys(dir); err != nil {
		t.Errorf("half a pair: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caKey), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := loadKeys(dir)
	if err == nil || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, caKey)) {
		t.Errorf("a key that is none: %v", err)
	}
}
