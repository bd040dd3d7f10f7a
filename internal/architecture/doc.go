// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package architecture keeps the house in order: it has tests alone, which read the source of the whole repository.
//
//	imports_test.go     who may import whom, and who may not reach whom
//	layers_test.go      what tasks may be made of, and who speaks SSH
//	choices_test.go     who asks for a component by its name
//	components_test.go  in how many files a component is known
//	health_test.go      who reads how a host is
//	verbs_test.go       what is done with hosts is in tables
//	scripts_test.go     which scripts wait
//	source_test.go      how every file begins, how long it may be, what packages are called
//	width_test.go       how wide a line may be
//	words_test.go       which words nobody uses here
//	habits_test.go      what nobody does here
//	api_test.go         what every field of an API must say of itself
//	suites_test.go      CI runs all tests on hosts
//	layout_test.go      docs and lists of files are of what is there
//	reading_test.go     each stop of the tour is there
//
// A rule is a check of a tree of files. Its test (kept) runs it on the repository's, and on that with a violation planted, which it must
// report.
//
//	repository_test.go  the tree, and how rules are kept
//	types_test.go       what go/types knows of it
package architecture
