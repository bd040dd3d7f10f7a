// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// EncryptionDir has the key with which kube-apiserver encrypts, and nothing else.
	EncryptionDir = "/etc/kubernetes/encryption"
	// EncryptionKey is the file with the key alone, in base64.
	EncryptionKey = EncryptionDir + "/key"
	// EncryptionConfig is the file that kube-apiserver reads. Its name has no digest: what is in it never changes.
	EncryptionConfig = EncryptionDir + "/config.yaml"
)

// Encryption writes the cluster's encryption key, and the configuration by which kube-apiserver encrypts with it. It comes before the
// API server is started for the first time, and is only for clusters that encrypt.
func Encryption(k spec.Kubernetes) step.Step {
	return step.New(step.Meta{Name: "apiserver/encryption", Description: "write the key that Secrets are encrypted with"}, append(
		[]step.Step{step.Directory{Path: EncryptionDir, Mode: 0o700}},
		step.Key(EncryptionKey, step.SecretRef{Name: pki.EncryptionName, Key: pki.EncryptionKeyName},
			step.File{Path: EncryptionConfig, Mode: 0o600, Content: encryption(k.EncryptionAtRest)})...,
	)...)
}

// encryption is apiserver.config.k8s.io/v1. The first provider encrypts what is written. What was stored in clear, as in a snapshot of
// etcd that somebody restores, can be read by the last. The key's name is stored with all that it encrypts.
func encryption(e spec.EncryptionAtRest) step.Text {
	return step.Join(
		step.Literalf(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources:
  - %s
  providers:
  - %s:
      keys:
      - name: key1
        secret: `, strings.Join(slices.Sorted(slices.Values(e.Resources)), "\n  - "), strings.ToLower(string(e.Provider))),
		step.Secret(pki.EncryptionName, pki.EncryptionKeyName),
		step.Literal("\n  - identity: {}\n"),
	)
}
