// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has the kinds of the bootstrap provider: what one host must be, and how far it is.
//
//	KubexmClusterConfig        what the hosts of one Cluster share, and which of them are its members
//	KubexmConfig               one host's desired state; its reconciler is the only one that opens a connection to the host
//	KubexmConfigTemplate       what MachineSets and the control plane make KubexmConfigs from
//	KubexmRemediation          an unhealthy worker's host is repaired, or its Machine replaced
//	KubexmRemediationTemplate  what MachineHealthChecks make KubexmRemediations from
//
// They follow the contract v1beta2 of Cluster API for bootstrap providers, and that of external remediation. Conditions and their reasons
// are constants in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.cluster.x-k8s.io
package v1beta1
