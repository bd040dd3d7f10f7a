// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestNetworkPolicy has Kubernetes' own tests of NetworkPolicy judge Calico: all cases of test/e2e/network/netpol but those that need SCTP,
// a module that the kernels of test hosts may lack.
func TestNetworkPolicy(t *testing.T) {
	c := start(t, "hanp", 3, `  roleGroups: {master: [$1], worker: [$2, $3]}
  kubernetes: {version: v1.36.3, type: kubexm}
  network:
    plugin: calico
    calico: {ipipMode: Never, vxlanMode: Always}
`)
	c.Bundle = lab.Bundle(t, "KUBEXM_BUNDLE_NETWORK_POLICY", "bundle-network-policy")
	c.create()
	c.works() // which puts the cases' image on the hosts
	c.keepsNetworkPolicies()
	c.isReset()
}

// keepsNetworkPolicies wants every case to pass, and none of them to be missing.
func (c *cluster) keepsNetworkPolicies() {
	c.t.Helper()
	programs, err := filepath.Glob(filepath.Join(c.Bundle, "network-policy-tests", "*", "*", "network-policy"))
	if err != nil || len(programs) != 1 {
		c.t.Fatalf("the bundle has %d programs that test NetworkPolicy, want 1 (%v)", len(programs), err)
	}
	report := filepath.Join(c.Dir, "network-policy.json")
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs[0], "-kubeconfig", c.Kubeconfig(), "-provider", "skeleton",
		"-ginkgo.label-filter", "Feature: isSubsetOf NetworkPolicy", "-ginkgo.json-report", report, "-ginkgo.timeout", "1h",
		"-ginkgo.no-color")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	failed := cmd.Run()
	data, err := os.ReadFile(report)
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", failed, err, out.Bytes())
	}
	var suites []types.Report
	if err := json.Unmarshal(data, &suites); err != nil {
		c.t.Fatal(err)
	}
	passed := 0
	for _, s := range suites {
		for _, spec := range s.SpecReports {
			switch name := spec.FullText(); {
			case spec.LeafNodeType != types.NodeTypeIt || strings.Contains(name, "Feature:SCTPConnectivity"):
			case spec.State == types.SpecStatePassed:
				passed++
				c.t.Logf("%5.1f s  %s", spec.RunTime.Seconds(), name)
			default:
				c.t.Errorf("%s: %s: %s", name, spec.State, spec.FailureMessage())
			}
		}
	}
	if want := 47; passed != want {
		c.t.Errorf("%d cases have passed, want %d", passed, want)
	}
	if failed != nil {
		c.t.Fatalf("%v\n%s", failed, out.Bytes())
	}
}
