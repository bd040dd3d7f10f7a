// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery/recoverytest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/steptest"
)

// disk is a host that answers the files below /etc/kubernetes/pki that it is asked for.
type disk struct {
	host.Host
	files recoverytest.Disk
	argv  []string
}

func (d *disk) Name() string { return "node1" }

func (d *disk) Exec(_ context.Context, c host.Command) (*host.Result, error) {
	d.argv = c.Argv
	said := d.files.Exec(c)
	return &said, nil
}

// controlPlaneDisk has what a control plane host has.
func controlPlaneDisk(t *testing.T, a pki.Authorities) *disk {
	t.Helper()
	files, err := recoverytest.Of(a)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{files: files}
	if key := a.Encryption.Key.Reveal(); key != nil {
		d.files["../encryption/key"], d.files["../encryption/config.yaml"] = key, encryptionConfig(t, key)
	}
	return d
}

// encryptionConfig is what the API server reads, as its step writes it.
func encryptionConfig(t *testing.T, key []byte) []byte {
	t.Helper()
	k := spec.Kubernetes{EncryptionAtRest: spec.EncryptionAtRest{Provider: spec.EncryptionSecretbox, Resources: []string{"configmaps", "secrets"}}}
	for _, f := range steptest.Files(apiserver.Encryption(k)) {
		if f.Path == apiserver.EncryptionConfig {
			return []byte(strings.ReplaceAll(f.Content.String(), "<secret encryption/key>", string(key)))
		}
	}
	t.Fatal("there is none")
	return nil
}

func newAuthorities(t *testing.T) pki.Authorities {
	t.Helper()
	a, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	a.CompleteEncryption()
	return a
}

func TestRead(t *testing.T) {
	own, other := newAuthorities(t), newAuthorities(t)
	for name, tc := range map[string]struct {
		change func(*disk)
		want   string
	}{
		"all is there":         {func(*disk) {}, ""},
		"no key":               {func(d *disk) { delete(d.files, "etcd/ca.key") }, "key pair etcd: there is no /etc/kubernetes/pki/etcd/ca.key"},
		"no certificate":       {func(d *disk) { delete(d.files, "ca.crt") }, "key pair ca: there is no /etc/kubernetes/pki/ca.crt"},
		"another's key":        {func(d *disk) { d.files["ca.key"] = other.Cluster.Key.Reveal() }, "does not belong"},
		"another's public key": {func(d *disk) { d.files["sa.pub"] = other.ServiceAccount.Cert }, "does not belong"},
		"a certificate of another's": {func(d *disk) {
			d.files["apiserver.crt"] = controlPlaneDisk(t, other).files["apiserver.crt"]
		}, "/etc/kubernetes/pki/apiserver.crt, which the host uses, is not signed by /etc/kubernetes/pki/ca.crt"},
		"no file of the encryption key's own": {func(d *disk) { delete(d.files, "../encryption/key") }, ""},
		"the encryption key alone": {func(d *disk) {
			delete(d.files, "../encryption/config.yaml")
		}, "encryption key: there is no /etc/kubernetes/encryption/config.yaml"},
		"another encryption key": {func(d *disk) {
			d.files["../encryption/key"] = other.Encryption.Key.Reveal()
		}, "/etc/kubernetes/encryption/key has another one than /etc/kubernetes/encryption/config.yaml"},
		"a configuration of somebody's": {func(d *disk) {
			d.files["../encryption/config.yaml"] = []byte("resources: [{providers: [{identity: {}}]}]")
		}, "config.yaml is not as kubexm writes it"},
		"half a key": {func(d *disk) {
			d.files["../encryption/config.yaml"] = encryptionConfig(t, own.Encryption.Key.Reveal()[:30])
		}, "config.yaml: it is not 32 bytes in base64"},
		"nothing that it has signed": {func(d *disk) { delete(d.files, "front-proxy-client.crt") }, "there is no /etc/kubernetes/pki/front-proxy-client.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			d := controlPlaneDisk(t, own)
			tc.change(d)
			found, err := recovery.Read(t.Context(), d, pki.AllNames())
			text := fmt.Sprintf("%v %+v %v", found, found, err) + strings.Join(d.argv, " ")
			if strings.Contains(text, "PRIVATE") || strings.Contains(text, string(own.Encryption.Key.Reveal()[:30])) {
				t.Errorf("a key is shown: %s", text)
			}
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "node1") {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range pki.AllNames() {
				want, _ := own.Get(name)
				if got, _ := found.Get(name); string(got.Cert) != string(want.Cert) || !got.Key.Equal(want.Key) {
					t.Errorf("%s is another", name)
				}
			}
		})
	}
}

// TestReadWithoutEncryption: a host of a cluster that encrypts nothing has no key, and that is no error.
func TestReadWithoutEncryption(t *testing.T) {
	own := newAuthorities(t)
	own.Encryption = pki.KeyPair{}
	found, err := recovery.Read(t.Context(), controlPlaneDisk(t, own), pki.AllNames())
	if err != nil || !found.Encryption.IsZero() || found.Cluster.IsZero() {
		t.Errorf("found a key %t, %v", !found.Encryption.IsZero(), err)
	}
}
