// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	_ "embed"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// changeDir exists while files of a kubelet that runs are brought to other contents.
	changeDir = "/etc/kubernetes/kubexm-kubelet"
	// patience is how long a kubelet may take to become healthy.
	patience = time.Minute
)

//go:embed healthy.sh
var healthy string

// Changes is what BeginChange must know of the files of a kubelet.
type Changes struct {
	// Replaces, Unless, InUse and Keeps are as those of a step.Savepoint.
	Replaces []step.Content
	Unless   []step.Done
	InUse    string
	Keeps    []string
	// Upgrading is a path that exists while programs are replaced: all is rolled back together then.
	Upgrading string
}

// BeginChange comes before the steps that write what the kubelet reads and run it: where that changes, it is rolled back as a whole
// when the kubelet does not become healthy with it (Healthy), and the kubelet runs with what it had. On a host that has no kubelet
// yet it does nothing.
func BeginChange(k spec.Kubelet, c Changes) step.Step {
	return step.New(step.Meta{
		Name: "kubelet/begin-change", Description: "open a savepoint before the running kubelet is changed", Disrupts: "restarts kubelet",
	}, step.Savepoint{
		About: "the change of its kubelet", Replaces: c.Replaces, Unless: c.Unless, InUse: c.InUse, Within: c.Upgrading,
		Dir: changeDir, Keeps: c.Keeps, Settled: step.Done{Check: askHealthy(k)},
	})
}

// EndChange comes after Healthy: the change stays. A kubelet that cannot be asked whether it is healthy has run for a while then.
func EndChange(k spec.Kubelet) step.Step {
	parts := []step.Step{step.Commit{Dir: changeDir}}
	if health(k) == "" {
		steady := step.Steady{Units: []string{service}, For: step.Duration(3 * time.Second), While: changeDir}
		parts = slices.Insert(parts, 0, step.Step(steady))
	}
	return step.New(step.Meta{Name: "kubelet/end-change", Description: "commit the change when the kubelet is healthy"}, parts...)
}

// Healthy waits until the kubelet says that it is healthy. It is a step of its own: what a step observed before its act does not
// tell what a restart in that act leads to.
func Healthy(k spec.Kubelet) step.Step {
	return step.New(step.Meta{
		Name: "kubelet/healthy", Description: "wait until the kubelet is healthy", Timeout: step.Duration(patience),
	}, step.WaitFor{Title: "the kubelet is healthy", Check: askHealthy(k)})
}

// askHealthy is the command that asks the kubelet whether it is healthy.
func askHealthy(k spec.Kubelet) []string {
	return []string{"/bin/sh", "-uc", healthy, "kubelet", health(k), changeDir, strconv.Itoa(step.NotAnyMore)}
}

// health is the URL at which a kubelet with these flags says that it is healthy, "" where the user turned that off.
func health(k spec.Kubelet) string {
	address, port := "127.0.0.1", "10248"
	for _, a := range k.ExtraArgs {
		switch {
		case a.Name == "healthz-port":
			port = a.Value
		case a.Name == "healthz-bind-address" && a.Value != "0.0.0.0" && a.Value != "::":
			address = a.Value
		}
	}
	if port == "0" {
		return ""
	}
	return "http://" + net.JoinHostPort(address, port) + "/healthz"
}
