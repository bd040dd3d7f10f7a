// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	_ "embed"
	"errors"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

//go:embed packaged.sh
var packaged string

const packagesOf = "packages that own files"

// PackagedQuery asks which of the paths that Acts would claim are of packages.
func PackagedQuery(nodes []plan.Node) host.Query {
	paths := Claimed(nodes)
	for _, p := range Query(nodes).Paths {
		paths = append(paths, p.Path)
	}
	return host.Query{Commands: []host.CommandQuery{{
		ID: packagesOf, Argv: append([]string{"/bin/sh", "-uc", packaged, "sh"}, paths...), Timeout: 4 * host.QueryTimeout,
	}}}
}

// Packaged are the packages of paths, of a host that was asked PackagedQuery.
func Packaged(seen *host.Facts) (map[string]string, error) {
	said := seen.Commands[packagesOf]
	if said.ExitCode != 0 || said.Stopped > 0 {
		return nil, errors.New("which files are of packages is not known: " + host.Word(strings.TrimSpace(string(said.Stderr)), 300))
	}
	of := map[string]string{}
	for line := range strings.Lines(string(said.Stdout)) {
		if path, name, found := strings.Cut(strings.TrimSpace(line), " "); found {
			of[path] = name
		}
	}
	return of, nil
}
