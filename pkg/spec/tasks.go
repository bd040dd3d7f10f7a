// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import "slices"

// Place is where a task runs.
type Place int

const (
	// OnHosts tasks make a host what it must be.
	OnHosts Place = iota
	// OnController tasks wait for the cluster, or change it through its API.
	OnController
	// OnRequest tasks run on hosts when somebody asks for them, again and again.
	OnRequest
)

// Task is a task as hooks and limits know it. All of them (Tasks) are generated from the plans of all kinds of clusters, because what is
// checked here must not depend on what plans are made of.
type Task struct {
	Name  string
	Place Place
	// Steps are the names of all steps that the task may have.
	Steps []string
}

func taskNames() []string {
	var names []string
	for _, t := range Tasks() {
		names = append(names, t.Name)
	}
	return names
}

func stepNames() []string {
	var names []string
	for _, t := range Tasks() {
		names = append(names, t.Steps...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
