// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Command smoke proves that a cluster works for pods, and prints what it saw: see package proof.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	bundle := flag.String("bundle", "build/bundle", "bundle that the test image is taken from")
	sshConfig := flag.String("ssh-config", "", "ssh_config with a host for each node, by address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := run(ctx, *kubeconfig, *bundle, *sshConfig); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, bundle, sshConfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	cluster := &proof.Cluster{Client: client, Bundle: bundle, SSHConfig: sshConfig, Out: os.Stdout}
	return cluster.Prove(ctx)
}
