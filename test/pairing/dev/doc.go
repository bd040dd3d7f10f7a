// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev runs Cluster API's own infrastructure provider for development, the one of DevCluster and DevMachine with its Docker back
// end, for tests of our pairing with it. It is that provider's own program, of the module that Cluster API's tests are in.
//
//	images     hosts are test hosts' image, named by each DevMachine's customImage; load balancers are made of it with haproxy, named by
//	           the DevCluster's image fields: those that the provider would take by itself cannot be had where the tests run
//	proxy      stands before the engine's socket (see Proxy): privileged containers are refused here, and a host that is no image of
//	           kind's has no container runtime yet
//	webhooks   are not installed: objects that a test makes are complete
package dev
