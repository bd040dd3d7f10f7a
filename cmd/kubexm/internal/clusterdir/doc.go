// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterdir is what the command line keeps of a cluster from one command to the next, in .kubexm/<cluster>:
//
//	inventory.json   the cluster's version, endpoint, bundle and hosts, and how these are reached; no secrets
//	known_hosts      keys of hosts that were accepted at first use
//	secrets/         the cluster's certificate authorities, made once
//	serial.json      which copy of the state this is, compared with what the hosts say (package serial)
//	kubeconfig       the administrator's, of the cluster
//	plane/           the embedded management plane's
//	lock             held by the command that is changing the cluster
//
// What is read back from hosts is gathered in .kubexm/.recovering/<cluster>, and moved to .kubexm/<cluster> when it is whole.
//
// Directories have mode 0700, files 0600. Files are replaced atomically.
package clusterdir
