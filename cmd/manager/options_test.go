// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/logs"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
)

// TestFlags keeps all flags, as --help shows them, in one file: the reference.
func TestFlags(t *testing.T) {
	t.Setenv(hostLogsVariable, "")
	golden.File(t, "../../docs/reference/manager.md", "# The managers' flags\n\n"+
		"All three providers are one program, `manager`, and these are its flags, as `--help` shows them. Those that `clusterctl init` sets by\n"+
		"variables are in the [guide](../guides/clusterctl.md).\n\n```text\n"+(&options{logs: logs.NewOptions()}).flags().FlagUsages()+"```\n")
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		args      []string
		providers []string
		refused   []string
	}{
		"nothing":                   {providers: []string{bootstrap, controlPlane, infrastructure}},
		"what our manifests say":    {args: []string{"--leader-elect", "--providers=control-plane"}, providers: []string{controlPlane}},
		"two":                       {args: []string{"--providers=bootstrap,infrastructure"}, providers: []string{bootstrap, infrastructure}},
		"what the contract demands": {args: []string{"--namespace=fleet", "--watch-filter=blue"}, providers: known},
		"an unknown provider":       {args: []string{"--providers=core"}, refused: []string{"--providers", "core"}},
		"a provider twice":          {args: []string{"--providers=bootstrap,bootstrap"}, refused: []string{"--providers", "twice"}},
		"all that is wrong": {args: []string{"--concurrency=0", "--hosts-at-once=-1", "--drift-check-interval=0s", "--host-heartbeat-interval=-1s"},
			refused: []string{"--concurrency", "--hosts-at-once", "--drift-check-interval", "--host-heartbeat-interval"}},
		"no address to connect to": {args: []string{"--call-home-address=nowhere"}, refused: []string{"--call-home-address"}},
		"nobody takes connections": {args: []string{"--providers=infrastructure", "--call-home-address=capi.example.org:4334"},
			refused: []string{"--call-home-address"}},
		"no heartbeats":       {args: []string{"--host-heartbeat-interval=0"}, providers: known},
		"a port of hooks":     {args: []string{"--runtime-extension-port=9444"}, providers: known},
		"a port that is none": {args: []string{"--runtime-extension-port=70000"}, refused: []string{"--runtime-extension-port", "70000"}},
		"hooks that nobody serves": {args: []string{"--runtime-extension-port=9444", "--providers=infrastructure"},
			refused: []string{"--runtime-extension-port", "bootstrap"}},
		"an argument":     {args: []string{"start"}, refused: []string{"start"}},
		"an unknown flag": {args: []string{"--provider=bootstrap"}, refused: []string{"--provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(test.args)
			if (err != nil) != (test.refused != nil) {
				t.Fatal(err)
			}
			for _, part := range test.refused {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in: %v", part, err)
				}
			}
			if err == nil && !slices.Equal(o.providers, test.providers) {
				t.Errorf("runs %v, not %v", o.providers, test.providers)
			}
		})
	}
}
