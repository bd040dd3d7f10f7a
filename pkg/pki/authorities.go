// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"time"
)

// The names by which Cluster API knows a cluster's key pairs: its Secrets are called <cluster>-<name>, with the keys
// tls.crt and tls.key (contract of control plane providers, "Cluster certificates").
const (
	ClusterName        = "ca"
	EtcdName           = "etcd"
	FrontProxyName     = "proxy"
	ServiceAccountName = "sa"
)

// Authorities are what a cluster's trust rests on.
type Authorities struct {
	// Cluster is the CA of the API server, kubelets and users; Etcd that of etcd's members and clients; FrontProxy that
	// of the aggregation layer. ServiceAccount is not a CA: see NewServiceAccountKeys.
	Cluster, Etcd, FrontProxy, ServiceAccount KeyPair
	// Encryption is the key with which API servers encrypt what they store: see NewEncryptionKey. It is zero in clusters that have none.
	Encryption KeyPair
}

// NewAuthorities makes all but Encryption. Of r, CommonName is not used: each has the one that kubeadm gives it.
func NewAuthorities(r CARequest) (Authorities, error) {
	var a Authorities
	_, err := a.Complete(r)
	return a, err
}

// Complete makes those that are missing, as NewAuthorities does, and returns their names.
func (a *Authorities) Complete(r CARequest) (made []string, err error) {
	cas := []struct {
		name, commonName string
		pair             *KeyPair
	}{
		{ClusterName, "kubernetes", &a.Cluster},
		{EtcdName, "etcd-ca", &a.Etcd},
		{FrontProxyName, "front-proxy-ca", &a.FrontProxy},
	}
	for _, ca := range cas {
		if !ca.pair.IsZero() {
			continue
		}
		r.CommonName = ca.commonName
		if *ca.pair, err = NewCA(r); err != nil {
			return made, err
		}
		made = append(made, ca.name)
	}
	if a.ServiceAccount.IsZero() {
		if a.ServiceAccount, err = NewServiceAccountKeys(r.Key); err != nil {
			return made, err
		}
		made = append(made, ServiceAccountName)
	}
	return made, nil
}

// CompleteEncryption makes the encryption key if it is missing, and reports whether it did.
func (a *Authorities) CompleteEncryption() bool {
	if !a.Encryption.IsZero() {
		return false
	}
	a.Encryption = NewEncryptionKey()
	return true
}

// Get returns the pair by its name in Cluster API, and whether there is such a name.
func (a *Authorities) Get(name string) (KeyPair, bool) {
	if p := a.at(name); p != nil {
		return *p, true
	}
	return KeyPair{}, false
}

// Set puts p in the place of the pair with this name, and reports whether there is such a name.
func (a *Authorities) Set(name string, p KeyPair) bool {
	at := a.at(name)
	if at != nil {
		*at = p
	}
	return at != nil
}

// Check returns nil if every pair can do its work at the time now, else an error that names the first that cannot. That there is no
// encryption key is no error.
func (a *Authorities) Check(now time.Time) error {
	for _, name := range []string{ClusterName, EtcdName, FrontProxyName} {
		if err := a.at(name).CheckCA(now); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := a.ServiceAccount.CheckServiceAccountKeys(); err != nil {
		return fmt.Errorf("%s: %w", ServiceAccountName, err)
	}
	if a.Encryption.IsZero() {
		return nil
	}
	if err := a.Encryption.CheckEncryptionKey(); err != nil {
		return fmt.Errorf("%s: %w", EncryptionName, err)
	}
	return nil
}

func (a *Authorities) at(name string) *KeyPair {
	switch name {
	case ClusterName:
		return &a.Cluster
	case EtcdName:
		return &a.Etcd
	case FrontProxyName:
		return &a.FrontProxy
	case ServiceAccountName:
		return &a.ServiceAccount
	case EncryptionName:
		return &a.Encryption
	}
	return nil
}
