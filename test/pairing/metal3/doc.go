// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metal3 plays Metal3, the infrastructure provider for bare metal that is given an image, for tests of our pairing with it: its
// controllers, and its operator with what that has of a host: the power, and the disk. It is written from what these do; their own code
// cannot be had here as modules that run without baseboard controllers. What is real is the host's part: cloud-init with a config drive.
//
//	installed   the kinds Metal3Cluster, Metal3Machine with its template, and BareMetalHost; they keep Cluster API's contract v1beta2
//	inspected   each BareMetalHost says which addresses its interfaces had then: the first is another host's by now, the second a link's
//	controller  waits for the Cluster's infrastructure and for Cluster API's word that bootstrap data is ready (a condition of the Machine
//	            in v1beta1's form), takes any free BareMetalHost that matches, and sets its image and its user data
//	operator    copies the user data once, makes the host boot its image, and says that it is provisioned before it has booted
//	controller  looks every 30 s for the one Node that is labelled with the BareMetalHost's UID, gives it a provider ID, refuses another,
//	            and only then is the Metal3Machine provisioned
//	controller  waits when a Metal3Machine is deleted, until its host is wiped, and has not asked anybody to reset it
//
// What it does not play: Metal3Data and its IPAM, cloudProviderEnabled, reuse of nodes, remediation, failure domains, pausing.
package metal3
