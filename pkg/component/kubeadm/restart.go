// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"path"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// pods are the static pods of the components that have one.
var pods = map[string]spec.ComponentName{
	"etcd": spec.ComponentEtcd, "kube-apiserver": spec.ComponentAPIServer, "kube-controller-manager": spec.ComponentControllerManager,
	"kube-scheduler": spec.ComponentScheduler,
}

// Restart has the kubelet restart static pods, each when what comes before is Ready, and on one host of the cluster at a time: their
// manifests get a mark by which their Pods are others, and stay what they are otherwise. Etcd comes first, which may have steps of its own.
func Restart(c Cluster, n kubelet.Node, r component.Restart, etcd []step.Step) []step.Step {
	var wanted []string
	for _, pod := range components(len(c.EtcdEndpoints) == 0) {
		if r.Has(pods[pod]) {
			wanted = append(wanted, pod)
		}
	}
	if len(etcd)+len(wanted) == 0 {
		return nil
	}
	begin := beginChange(c, n, step.Savepoint{Unless: []step.Done{{SameInput: true}}}).(step.Sequence)
	begin.About.Description = "take the turn of the control plane, to restart components " + r.AsFor()
	steps := append([]step.Step{begin}, etcd...)
	if len(etcd) > 0 {
		steps = append(steps, serves(c, n))
	}
	steps = append(steps, eachWhenReady(c, n, wanted, func(pod string) step.Step { return restartAsked(c, n, pod, r) })...)
	return append(steps, endChange())
}

// restartAsked gives a pod's manifest another mark, where it is older than the request.
func restartAsked(c Cluster, n kubelet.Node, pod string, r component.Restart) step.Step {
	about := step.Meta{Name: stepOf(pod), Description: "restart " + pod + ", " + r.AsFor(), Disrupts: "restarts " + pod}
	request := component.RestartRequest(pods[pod])
	argv := placeArgv(pod, "", "", request)
	if pod == "etcd" {
		argv = etcdArgv(c, n, placeEnvironment(pod, "", "", request))
		about.Timeout = step.Duration(etcdLimit + 2*time.Minute)
	}
	done := step.Done{NoOlder: []step.Age{{Path: path.Join(manifestsDir, pod+".yaml"), Than: []string{request}}}}
	return step.New(about, step.Command{Title: "restart " + pod, Argv: argv, Done: done})
}

// serves waits for the API server, whose etcd was restarted.
func serves(c Cluster, n kubelet.Node) step.Step {
	return step.New(step.Meta{Name: "kubeadm/serves", Description: "wait until the API server is ready", Timeout: step.Duration(patience)},
		step.WaitFor{Title: "kube-apiserver is ready", Check: askReady(c, n)})
}
