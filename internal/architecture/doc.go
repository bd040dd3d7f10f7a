// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package architecture keeps the house in order: it has tests alone, which read the source of the whole repository.
//
//	imports_test.go     who may import whom
//	layers_test.go      what tasks may be made of, and who speaks SSH
//	components_test.go  in how many files a component is known
//	source_test.go      how every file begins, how long it may be, what packages are called
//	habits_test.go      what nobody does here
//	api_test.go         what every field of an API must say of itself
package architecture
