// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostrun runs work on hosts outside of reconciles, because a reconcile must not wait for a host.
//
//	Start    begins the work on an object's host, unless some goes on already
//	Observe  says how far it is, or what it came to
//	Cancel   stops it; Forget makes room for the next
//	Source   reconciles the object when its work has gone on or has ended
//
// Nothing is kept from one process to the next. Anyone who starts work again finds by observation where the host stands.
package hostrun
