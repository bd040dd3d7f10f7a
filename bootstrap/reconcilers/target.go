// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// targetOf is what a host must be.
func targetOf(s *scope) (spec.Target, error) {
	return target.New(s.shared(), s.machine, s.config, s.host.Host, s.host.NodeLabels)
}

// inputOf is the digest of all that a run depends on, but for the host itself. versions are those of Secrets that the
// target names.
func inputOf(t spec.Target, h *infra.Host, versions []string) (string, error) {
	raw, err := json.Marshal(struct {
		Target   spec.Target
		Host     *infra.Host
		Versions []string
	}{t, h, versions})
	if err != nil {
		return "", fmt.Errorf("digest of what the host must be: %w", err)
	}
	return digest(raw), nil
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// namedSecret is a Secret, and the field that names it.
type namedSecret struct {
	name string
	path *field.Path
}

// secretsOf are the Secrets that a host's files are made from, each once, by name.
func secretsOf(c *bootstrapv1.KubexmConfig) []namedSecret {
	var named []namedSecret
	for i, f := range c.Spec.Files {
		if name := f.ContentFrom.Secret.Name; name != "" {
			named = append(named, namedSecret{name, field.NewPath("spec", "files").Index(i).Child("contentFrom", "secret", "name")})
		}
	}
	slices.SortStableFunc(named, func(a, b namedSecret) int { return cmp.Compare(a.name, b.name) })
	return slices.CompactFunc(named, func(a, b namedSecret) bool { return a.name == b.name })
}
