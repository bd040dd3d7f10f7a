// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// onFailure is the flag --on-failure: what becomes of what was changed on a host when a step fails. "" leaves it to the config file.
type onFailure spec.FailurePolicy

func (f *onFailure) addFlag(flags *pflag.FlagSet) {
	flags.StringVar((*string)(f), "on-failure", "",
		"when a step fails: Stop leaves what is done, UndoTask restores what its task changed, UndoRun all that the run changed "+
			"(default what the config file says, or Stop)")
}

// check refuses what is no policy.
func (f *onFailure) check() error {
	if !slices.Contains([]spec.FailurePolicy{"", spec.FailureStop, spec.FailureUndoTask, spec.FailureUndoRun}, spec.FailurePolicy(*f)) {
		return usage("--on-failure: %q is none of %s, %s, %s", *f, spec.FailureStop, spec.FailureUndoTask, spec.FailureUndoRun)
	}
	return nil
}

// declare has the cluster's hosts follow the flag, if it was given.
func (f *onFailure) declare(c *spec.Cluster) {
	if *f != "" {
		c.OnFailure = spec.FailurePolicy(*f)
	}
}
