// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs plans.
//
//	Options{Dial, Secrets, Artifacts, Cluster, …} ─▶ New ─▶ Engine
//	Engine.Run(plan)   makes it so and waits          ─▶ Report, *Error
//	Engine.Start(plan) the same, to be watched        ─▶ Run.Events, Run.Wait
//	Engine.Check(plan) looks and changes nothing      ─▶ Report with what differs
//	Engine.Look(query) observes hosts                 ─▶ Facts, to plan from
//	Engine.Undo(scope) resets hosts                   ─▶ Report, *Error
//
// How a run goes. One goroutine owns its state (scheduler.go); what touches a host or the cluster is done by workers,
// which are lent a host's connection and facts for one job at a time and send back what came of it. As many hosts as
// Options.HostsAtOnce are worked on at once; the nodes of one host come one after the other; between hosts there is no
// order but outputs, and a host that waits for one does not count as worked on.
//
// What a host costs. All that its nodes want to know is asked in one exchange. When nothing differs that is all: no
// lock, no session. Otherwise each node that runs costs one exchange, because it also answers what the nodes after it
// want to know: those up to the next one that is not so already, so that what was found to be so before a change is judged
// again after it.
//
// Steps on the controller (gates) run only when somebody needs them: those that make nothing always, those that make outputs
// when a node that differs takes them. A join token is not made for a host that has joined.
//
// What comes by itself is waited for: a step that does nothing else (step.WaitFor), and a gate, is asked again until it holds, says that it
// will not, or its timeout is over.
//
// On failure, what is done stays or is rolled back, as Options.Policy says. A host that has an open savepoint (step.Savepoint) must not
// stay half way: it is rolled back to there, whatever the policy and over how many runs it took, and so are the gates whose
// outputs the savepoint takes (its Node is uncordoned). What has no way back (step.Meta.Stays) stays, with all that its task did.
// A run that is stopped from outside, or killed, is gone on with by the next.
package engine
