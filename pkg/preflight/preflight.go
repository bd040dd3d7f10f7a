// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Severity says what a problem means for the run.
type Severity string

const (
	// Error stops the run before anything is changed.
	Error Severity = "Error"
	// Warning is shown, and the run goes on.
	Warning Severity = "Warning"
)

// Problem is what is wrong with a host, in words for a person.
type Problem struct {
	Host     string   `json:"host"`
	Check    string   `json:"check"` // os, hardware, kernel, hostname, time, installation, ports, resolv, selinux, …
	Severity Severity `json:"severity"`
	// Cause says what was found and what is needed; Remedy what to do.
	Cause  string `json:"cause"`
	Remedy string `json:"remedy"`
}

// String is the problem in one line.
func (p Problem) String() string {
	return p.Host + ": " + p.Check + ": " + p.Cause + ". Remedy: " + p.Remedy
}

// Query is what must be known of a host for Check. It is merged into the one observation.
func Query(t spec.Target) host.Query { return query(t) }

// Check returns everything that is wrong with a host. It is pure. What is found on a host that is o's by its own record, or
// that o adopts, may be our own work; a journal alone does not make it so.
func Check(t spec.Target, f *host.Facts, o host.Ownership) []Problem { return check(t, f, o) }

// CheckCluster returns what is wrong with hosts only in view of each other: names that lead to one machine, machines
// that were cloned, addresses that two have. Facts are by the hosts' names; hosts without are passed over. It is pure.
func CheckCluster(targets []spec.Target, facts map[string]*host.Facts) []Problem {
	return checkCluster(targets, facts)
}

// Failed reports whether one of the problems is an Error.
func Failed(problems []Problem) bool {
	for _, p := range problems {
		if p.Severity == Error {
			return true
		}
	}
	return false
}
