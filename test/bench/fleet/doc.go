// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet is a fleet of Machines to measure a manager with: all that there is of one, but the hosts, which others play.
//
//	ServePlane     is a process with etcd, an API server and Cluster API's own reconcilers; our webhooks are served there too
//	ServeManager   is a process with our reconcilers, as cmd/manager has them, that tells what it costs
//	Fleet          declares the objects, copies workers, and says how far they are
//
// The Machines' Nodes are objects that nobody runs, and the cluster that they are of is the management cluster itself: Machines
// come to be as complete as real ones, with one API server. What is planned for a host is up to who plays it.
package fleet
