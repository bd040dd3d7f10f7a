// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet holds the steps that install the kubelet and keep it running.
package kubelet

import (
	_ "embed"
	"path"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// UnitName is systemd's name for the kubelet.
	UnitName = "kubelet.service"

	service = UnitName
	unit    = "/etc/systemd/system/" + service
	bin     = "/usr/local/bin"

	// packaged is the drop-in of Kubernetes' own packages, which has their kubelet run by any unit of this name. dropIn takes its place:
	// of two with one name, systemd reads that in /etc.
	packaged = "/usr/lib/systemd/system/" + service + ".d/10-kubeadm.conf"
	dropIn   = unit + ".d/10-kubeadm.conf"

	// ResolvConf is the file that the kubelet gives to pods where the host's own would not do.
	ResolvConf = "/etc/kubernetes/resolv.conf"
)

//go:embed kubelet.service
var unitFile string

const noDropIn = "# Written by kubexm: takes the place of the drop-in of the package, which would run another kubelet.\n"

// Programs installs kubelet, kubeadm and kubectl.
func Programs(programs []step.Artifact) step.Step {
	return step.New(step.Meta{Name: "kubelet/programs", Description: "install kubelet, kubeadm and kubectl", Disrupts: "restarts kubelet"},
		step.Programs(bin, programs)...)
}

// Unit writes and enables the kubelet's unit, which systemd starts after that of the container runtime. It does not start it: kubeadm does,
// when there is something to start with. The drop-in of a package goes after the unit: without either, the package's unit would start a
// kubelet that has no configuration.
func Unit(runtime Runtime) step.Step {
	return step.New(step.Meta{Name: "kubelet/unit", Description: "enable the kubelet"},
		step.Directory{Path: "/etc/kubernetes/manifests", Mode: 0o755},
		step.File{Path: unit, Mode: 0o600, Content: step.Literal(strings.Replace(unitFile, "$RUNTIME", runtime.Unit, 1))},
		step.File{Path: dropIn, Mode: 0o600, Content: step.Literal(noDropIn), Where: packaged},
		step.Service{Name: service, State: step.Enabled},
	)
}

// Resolv writes a resolv.conf for pods with these name servers.
func Resolv(nameservers []string) step.Step {
	var b strings.Builder
	b.WriteString("# Written by kubexm: the host's own /etc/resolv.conf names only itself, which pods cannot reach.\n")
	for _, n := range nameservers {
		b.WriteString("nameserver " + n + "\n")
	}
	return step.New(step.Meta{Name: "kubelet/resolv", Description: "write the name servers of pods"},
		step.File{Path: ResolvConf, Mode: 0o644, Content: step.Literal(b.String())})
}

// Service keeps the kubelet running, and restarts it when its program, its unit or one of the files that it reads is newer than
// it.
func Service(programs []step.Artifact, reads ...string) step.Step {
	watches := append([]string{unit, dropIn}, reads...)
	for _, p := range programs {
		if path.Base(p.Path) == "kubelet" {
			watches = append(watches, path.Join(bin, "kubelet"))
		}
	}
	return step.New(step.Meta{Name: "kubelet/service", Description: "run the kubelet", Disrupts: "restarts kubelet"},
		step.Service{Name: service, Watches: watches, Settle: step.Duration(time.Second)})
}
