// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// kubeconfigFile lies in the plane's directory.
const kubeconfigFile = "kubeconfig"

// writeKubeconfig writes the administrator's kubeconfig, with all that it needs in it, and returns it.
func writeKubeconfig(dir string, config *rest.Config, k keys) ([]byte, error) {
	content, err := pki.Kubeconfig(pki.KubeconfigRequest{
		Cluster: "kubexm-embedded", User: "kubexm", Server: config.Host, CA: k.authority.Cert, Client: k.admin,
	})
	if err != nil {
		return nil, err
	}
	return content.Reveal(), atomicfile.WriteBytes(filepath.Join(dir, kubeconfigFile), 0o600, content.Reveal())
}
