// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
)

//go:embed packaged.sh
var packaged string

//go:embed remove.sh
var remove string

const packagesOf = "packages that own files"

// Owned is a path that a package owns.
type Owned struct{ Path, Package string }

// asked are the paths that Acts would claim.
func asked(nodes []plan.Node, theirs []string) []string {
	claimed := Claimed(nodes)
	paths := slices.Concat(claimed, theirs)
	for _, n := range nodes {
		if isKubernetes(n) {
			paths = append(paths, files(n, claimed)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// PackagedQuery asks what packages own of the paths that Acts would claim, with the same theirs.
func PackagedQuery(nodes []plan.Node, theirs ...string) host.Query {
	return host.Query{Commands: []host.CommandQuery{{
		ID: packagesOf, Argv: append([]string{"/bin/sh", "-uc", packaged, "sh"}, asked(nodes, theirs)...), Timeout: 4 * host.QueryTimeout,
	}}}
}

// Packaged is what packages own, of a host that was asked PackagedQuery: by the path that Acts would claim, that itself and what is below.
func Packaged(seen *host.Facts, nodes []plan.Node, theirs ...string) (map[string][]Owned, error) {
	said := seen.Commands[packagesOf]
	if said.ExitCode != 0 || said.Stopped > 0 {
		return nil, errors.New("which files are of packages is not known: " + host.Word(strings.TrimSpace(string(said.Stderr)), 300))
	}
	paths, of := asked(nodes, theirs), map[string][]Owned{}
	for line := range strings.Lines(string(said.Stdout)) {
		name, owned, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !found {
			continue
		}
		for _, p := range paths {
			if owned == p || strings.HasPrefix(owned, p+"/") {
				of[p] = append(of[p], Owned{Path: owned, Package: name})
			}
		}
	}
	return of, nil
}

// leave is what empties a directory but for what packages own of it. As long as that is not undone it does nothing.
func leave(directory string, owned []Owned) host.Change {
	argv := []string{"/bin/sh", "-uc", remove, "sh", directory}
	for _, o := range owned {
		argv = append(argv, o.Path)
	}
	return host.Command{Title: "remove what no package owns of " + directory, Undo: argv}
}
