// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

var (
	//go:embed halt.sh
	halt string
	//go:embed resume.sh
	resume string
	//go:embed withdraw.sh
	withdraw string
	//go:embed withdraw-check.sh
	withdrawCheck string
)

// halted says whether nothing of the host's control plane answers, while it must not: a host that was booted since has started nothing.
const halted = `[ ! -e "$restore/halted" ] || ! api /livez >/dev/null || { echo "kube-apiserver runs, and etcd is being restored"; exit 1; }`

// resumeLimit is how long an API server may take that begins with what it finds in etcd.
const resumeLimit = 4 * time.Minute

// Halt ends the host's control plane, but etcd, and keeps its manifests in restore. id is whatever this is done for, once.
func Halt(c Cluster, n kubelet.Node, restore, id, done string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "kubeadm/halt", Description: "end the control plane, whose etcd is restored", Disrupts: "ends this host's control plane",
		Timeout: step.Duration(withdrawLimit + time.Minute), Takes: after, Makes: []string{done},
	}, step.Command{
		Title: "end the control plane", Argv: halting(c, n, restore, id, withdrawLimit, halt),
	}).Until(step.Done{SameInput: true, Check: halting(c, n, restore, id, withdrawLimit, halted)})
}

// Resume starts again what Halt has ended, and waits for it.
func Resume(c Cluster, n kubelet.Node, restore, id, done string, after ...string) []step.Step {
	start := step.New(step.Meta{
		Name: "kubeadm/resume", Description: "start the control plane with the restored etcd", Takes: after,
	}, step.Command{
		Title: "start the control plane", Argv: halting(c, n, restore, id, 0, resume),
	}).Until(step.Done{SameInput: true})
	wait := step.New(step.Meta{
		Name: "kubeadm/resumed", Description: "wait until the API server is ready", Timeout: step.Duration(resumeLimit), Makes: []string{done},
	}, step.WaitFor{Title: "kube-apiserver is ready", Check: askReady(c, n)})
	return []step.Step{start, wait}
}

func halting(c Cluster, n kubelet.Node, restore, id string, limit time.Duration, script string) []string {
	return append(apiEnvironment(c, n),
		"restore="+restore, "id="+id, "components=kube-apiserver kube-controller-manager kube-scheduler", "patience="+seconds(limit),
		"/bin/sh", "-uc", fail+ready+script, "kubeadm")
}

// Withdraw ends the host's API server, which lets those go first that wait for answers.
func Withdraw(c Cluster, n kubelet.Node) step.Step {
	argv := func(script string) []string {
		return append(apiEnvironment(c, n), "patience="+seconds(withdrawLimit), "/bin/sh", "-uc", fail+ready+script, "kubeadm")
	}
	return step.New(step.Meta{Name: "kubeadm/withdraw", Description: "end the API server, before its etcd goes"}, step.Command{
		Title: "end kube-apiserver", Argv: argv(withdraw), Done: step.Done{Check: argv(withdrawCheck)},
		Timeout: step.Duration(withdrawLimit + 20*time.Second),
	})
}

// withdrawLimit is how long an API server may take to end: the kubelet kills it after half a minute.
const withdrawLimit = time.Minute
