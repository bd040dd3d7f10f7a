// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of kubexm, and the versions of Kubernetes that it has artifacts for",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			catalogue, err := artifact.DefaultCatalogue()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "kubexm %s %s %s/%s\nKubernetes %s\n", a.ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
				strings.Join(catalogue.Versions(artifact.Kubernetes), ", "))
			return nil
		},
	}
}

// ownVersion is what the program was built as; without, it is what the go command recorded.
func (a *app) ownVersion() string {
	if a.built != "" {
		return a.built
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
