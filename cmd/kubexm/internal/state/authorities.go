// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"os"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const secretsDir = "secrets"

// Authorities are the cluster's certificate authorities and service account keys. Those that are not there are made, and
// kept. It is called with the lock held.
func (d Dir) Authorities() (pki.Authorities, error) { return d.MakeAuthorities(pki.CARequest{}) }

// MakeAuthorities is Authorities, where those that are not there are made as asked for.
func (d Dir) MakeAuthorities(missing pki.CARequest) (pki.Authorities, error) {
	a, err := d.authorities(missing)
	if err != nil {
		return a, fmt.Errorf("certificate authorities of cluster %s in %s: %w", d.Cluster, d.Path(secretsDir), err)
	}
	return a, nil
}

func (d Dir) authorities(missing pki.CARequest) (a pki.Authorities, err error) {
	for _, name := range AuthorityNames() {
		cert, err := d.Read(secretsDir, name+".crt")
		if err != nil {
			return a, err
		}
		key, err := d.Read(secretsDir, name+".key")
		if err != nil {
			return a, err
		}
		// A certificate is written after its key: without it, the process that made the pair was killed.
		if len(cert) > 0 {
			a.Set(name, pki.KeyPair{Cert: cert, Key: secret.New(key)})
		}
	}
	made, err := a.Complete(missing)
	if err != nil {
		return a, err
	}
	for _, name := range made {
		pair, _ := a.Get(name)
		if err := d.Write(pair.Key.Reveal(), secretsDir, name+".key"); err != nil {
			return a, err
		}
		if err := d.Write(pair.Cert, secretsDir, name+".crt"); err != nil {
			return a, err
		}
	}
	return a, a.Check(time.Now())
}

// AuthorityNames are the names of a cluster's key pairs, as Cluster API has them.
func AuthorityNames() []string {
	return []string{pki.ClusterName, pki.EtcdName, pki.FrontProxyName, pki.ServiceAccountName}
}

// HasAuthorities reports whether the cluster's authorities were made here.
func (d Dir) HasAuthorities() bool {
	_, err := os.Stat(d.Path(secretsDir, pki.ServiceAccountName+".crt"))
	return err == nil
}
