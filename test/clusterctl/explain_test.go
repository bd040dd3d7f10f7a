// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"os/exec"
	"strings"
)

// explain says how far everything is, when a part has failed. Not every command has an answer then.
func (l *environment) explain() string {
	var text strings.Builder
	for _, args := range []string{
		"get nodes,pods,persistentvolumeclaims --all-namespaces --output wide",
		"get events --all-namespaces --field-selector type!=Normal --sort-by .lastTimestamp",
		"get cluster,kubexmcluster,kubexmcontrolplane,machinedeployment,machine,kubexmconfig,kubexmmachine,kubexmhost --all-namespaces",
		"describe kubexmconfig,kubexmcontrolplane --namespace " + namespace,
		"logs --namespace kubexm-bootstrap-system deployment/kubexm-bootstrap-controller-manager --tail 40",
		"logs --namespace kubexm-control-plane-system deployment/kubexm-control-plane-controller-manager --tail 40",
		"logs --namespace kubexm-infrastructure-system deployment/kubexm-infrastructure-controller-manager --tail 40",
		"logs --namespace capi-system deployment/capi-controller-manager --tail 40",
	} {
		fields := append([]string{"--kubeconfig", l.kubeconfig}, strings.Fields(args)...)
		out, err := exec.CommandContext(l.t.Context(), l.program("kubernetes", "kubectl"), fields...).CombinedOutput()
		text.WriteString("$ kubectl " + args + "\n" + string(out))
		if err != nil {
			text.WriteString(err.Error() + "\n")
		}
	}
	return text.String()
}
