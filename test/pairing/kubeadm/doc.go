// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeadm runs Cluster API's own providers by kubeadm, those of KubeadmConfig and of KubeadmControlPlane, for tests of our pairing
// with them. They are the providers' own programs, of the version of Cluster API that go.mod has.
//
//	kinds      are installed while everything else already runs, in the version that is stored: nothing converts others here
//	webhooks   are the programs' own, asked at the loopback address
//	rights     are an administrator's: those of the providers' ServiceAccounts are not ours to test
//	image      makes of a host what such a provider takes for granted of a machine's image (see Bake)
package kubeadm
