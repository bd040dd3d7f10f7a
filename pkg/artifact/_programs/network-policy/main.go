// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command network-policy is the part of Kubernetes' own end-to-end tests that is about NetworkPolicy (test/e2e/network/netpol), and takes
// the same flags as these: -kubeconfig says which cluster is tested, and -ginkgo.focus, -ginkgo.skip and -ginkgo.label-filter by which
// cases. It needs the image agnhost on all Nodes.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/network/netpol"
)

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "network-policy: there are no arguments but flags, and this is one: %s\n", flag.Arg(0))
		os.Exit(2)
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	if !ginkgo.RunSpecs(result{}, "NetworkPolicy", suite, reporter) {
		os.Exit(1)
	}
}

// result is what Ginkgo reports a failure to beside what it returns.
type result struct{}

func (result) Fail() {}
