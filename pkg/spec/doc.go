// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spec says what a cluster and a host are, once: custom resources and config.yaml embed these types, planners read them.
//
//	Cluster   what all hosts of one cluster share   KubexmControlPlane.spec.cluster, config.yaml's spec
//	Node      what is one host's own                the body of KubexmConfig.spec
//	Host      one host as planners see it           made of a Machine and its host, or of config.yaml's hosts
//	Target    all of these, for one host            what a planner is given
//
// The order is: decode, Default, Validate. Default fills what was left out and never changes what was said. Validate
// expects defaulted values; each of its errors has the field's path and says what to do. ValidateUpdate refuses changes
// that a running cluster cannot follow.
//
// Enumerations list what this version supports, nothing else. A field's zero value always means that it was left out.
//
// +kubebuilder:object:generate=true
package spec
