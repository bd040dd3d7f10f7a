// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crio

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// registriesConfig is read by all that uses the same library, such as Podman, and after the distribution's own files.
const registriesConfig = "/etc/containers/registries.conf.d/90-kubexm.conf"

// registries renders the settings of registries. A name without a registry is Docker Hub's, as with other runtimes.
func registries(r spec.Registries) string {
	var b strings.Builder
	b.WriteString("# Written by kubexm.\nunqualified-search-registries = [\"docker.io\"]\n")
	names := make([]string, 0, len(r.Mirrors))
	for _, m := range r.Mirrors {
		names = append(names, m.Registry)
		writeRegistry(&b, m.Registry, slices.Contains(r.Insecure, m.Registry))
		for _, e := range m.Endpoints {
			location, insecure := mirror(e, r.Insecure)
			fmt.Fprintf(&b, "\n[[registry.mirror]]\nlocation = %q\n", location)
			if insecure {
				b.WriteString("insecure = true\n")
			}
		}
	}
	for _, name := range r.Insecure {
		if !slices.Contains(names, name) {
			writeRegistry(&b, name, true)
		}
	}
	return b.String()
}

func writeRegistry(b *strings.Builder, name string, insecure bool) {
	fmt.Fprintf(b, "\n[[registry]]\nprefix = %q\nlocation = %q\n", name, name)
	if insecure {
		b.WriteString("insecure = true\n")
	}
}

// mirror is where a mirror is, and whether it is asked without TLS or without verification of its certificate. The library puts /v2/
// before a path; the specification allows no other.
func mirror(endpoint string, insecure []string) (string, bool) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint, false // the specification has been validated
	}
	below := strings.Trim(strings.TrimPrefix(u.Path, "/v2/"), "/")
	return strings.TrimSuffix(u.Host+"/"+below, "/"), u.Scheme == "http" || slices.Contains(insecure, u.Host)
}
