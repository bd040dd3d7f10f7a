// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recoverytest is the disk of a control plane host, for tests of what is read back from one.
package recoverytest

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// Disk are the files of a control plane host, by their paths relative to /etc/kubernetes/pki.
type Disk map[string][]byte

// Of is the disk of a host of the cluster with these pairs, without an encryption key.
func Of(a pki.Authorities) (Disk, error) {
	d := Disk{
		"ca.crt": a.Cluster.Cert, "ca.key": a.Cluster.Key.Reveal(), "etcd/ca.crt": a.Etcd.Cert, "etcd/ca.key": a.Etcd.Key.Reveal(),
		"front-proxy-ca.crt": a.FrontProxy.Cert, "front-proxy-ca.key": a.FrontProxy.Key.Reveal(),
		"sa.pub": a.ServiceAccount.Cert, "sa.key": a.ServiceAccount.Key.Reveal(),
	}
	for file, by := range map[string]pki.KeyPair{
		"apiserver.crt": a.Cluster, "apiserver-kubelet-client.crt": a.Cluster, "apiserver-etcd-client.crt": a.Etcd, "front-proxy-client.crt": a.FrontProxy,
	} {
		leaf, err := by.Sign(pki.LeafRequest{CommonName: "x", Usages: []pki.Usage{pki.Client}})
		if err != nil {
			return nil, err
		}
		d[file] = leaf.Cert
	}
	return d, nil
}

// Exec answers what reads files.
func (d Disk) Exec(c host.Command) host.Result {
	var out strings.Builder
	for _, name := range c.Argv[min(4, len(c.Argv)):] {
		if content, found := d[name]; found {
			fmt.Fprintf(&out, "%s %s\n", name, base64.StdEncoding.EncodeToString(content))
		}
	}
	return host.Result{Stdout: []byte(out.String())}
}
