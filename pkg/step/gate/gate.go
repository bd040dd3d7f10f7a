// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate holds the steps on the controller that wait for the cluster, or fetch from it what a host needs.
package gate

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// API waits until the API server answers; when is made then. After are outputs that must be there first.
func API(when graph.Output[string], after ...string) step.Step {
	return step.New(step.Meta{
		Name: "gate/api", Description: "wait for the API server", Timeout: step.Duration(20 * time.Minute), Takes: after,
	}, step.Await{For: "api", Output: when.Name})
}

// lifetime of a token. It is made when the first host asks for it, and the last one may have to be filled over a slow link
// before it joins; a token that is found may have used up half of it.
const lifetime = 2 * time.Hour

// Token makes a bootstrap token.
func Token(token graph.Output[string], after graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "gate/token", Description: "make a bootstrap token", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.Token{Output: token, TTL: step.Duration(lifetime), After: []string{after.Name}})
}

// ExternalEtcd waits until an etcd that others run answers at every endpoint, is well and new enough. secret is the Secret with
// ca.crt, tls.crt and tls.key, "" where it is reached without TLS; checked is made then.
func ExternalEtcd(endpoints []string, secret string, checked graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "gate/etcd", Description: "check the external etcd", Timeout: step.Duration(2 * time.Minute),
	}, step.Etcd{Endpoints: endpoints, Secret: secret, Output: checked.Name})
}

// Network waits until the network carries the Node's packets: a Node is Ready as soon as there is a configuration for pods'
// addresses. The DaemonSet is the network's.
func Network(node, namespace, daemonSet string) step.Step {
	return step.New(step.Meta{
		Name: "gate/network-" + node, Description: "wait until the Node's network is up", Timeout: step.Duration(10 * time.Minute),
	}, step.Await{For: "network", Name: namespace + "/" + daemonSet + "/" + node})
}

// NodeReady waits until the Node is Ready. After are outputs that must be there first.
func NodeReady(name string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "gate/node-" + name, Description: "wait until the Node is Ready", Timeout: step.Duration(10 * time.Minute), Takes: after,
	}, step.Await{For: "node", Name: name})
}

// NodeVersion waits until the Node is Ready and its kubelet is of this version; verified is made then. It comes after installed.
func NodeVersion(name, version string, installed, verified graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "gate/version", Description: "wait until the Node is Ready with " + version, Timeout: step.Duration(5 * time.Minute),
		Takes: []string{installed.Name},
	}, step.Await{For: "version", Name: name + "/" + version, Output: verified.Name})
}

// NodeRegistered waits until the Node's kubelet, of this version, has registered and reports no more than that pods have no network. After
// are outputs that must be there first.
func NodeRegistered(name, version string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "gate/node-" + name, Description: "wait until the Node has registered with " + version, Timeout: step.Duration(10 * time.Minute), Takes: after,
	}, step.Await{For: "registered", Name: name + "/" + version})
}

// RegisteredVersion waits for what NodeRegistered does, after installed; verified is made then.
func RegisteredVersion(name, version string, installed, verified graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "gate/version", Description: "wait until the Node reports " + version, Timeout: step.Duration(5 * time.Minute),
		Takes: []string{installed.Name},
	}, step.Await{For: "registered", Name: name + "/" + version, Output: verified.Name})
}
