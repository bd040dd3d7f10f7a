// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bmc resets machines by their management controllers (BMCs), which answer when the machine's own system does not. It speaks the
// two requests of DMTF's Redfish (DSP0266) that this takes: to read a ComputerSystem, and its action Reset.
package bmc
