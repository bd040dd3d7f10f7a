// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// unmanaged is read after all other configuration, and adds to what stands there.
const unmanaged = "/etc/NetworkManager/conf.d/90-kubexm.conf"

// reload has NetworkManager read its configuration. One that was stopped reads it when it starts.
const reload = `systemctl is-active --quiet NetworkManager.service || exit 0; systemctl reload NetworkManager.service`

// Unmanaged keeps NetworkManager away from the links of pods: those of their networks, which are named, and those that the standard
// plugins make. It would otherwise make connections of its own of them, and take off what it does not know.
func Unmanaged(links []string) step.Step {
	devices := []string{"interface-name:cni0", "interface-name:veth*"}
	for _, l := range links {
		devices = append(devices, "interface-name:"+l)
	}
	text := "# Written by kubexm: changes are lost.\n[keyfile]\nunmanaged-devices+=" + strings.Join(devices, ";") + "\n"
	argv := []string{"/bin/sh", "-ec", reload}
	return step.New(step.Meta{Name: "system/network-manager", Description: "keep NetworkManager away from the links of pods"},
		// What it undoes comes last: the file is gone by then.
		step.Command{Title: "see that NetworkManager runs", Argv: []string{"systemctl", "is-active", "--quiet", "NetworkManager.service"},
			Undo: argv, Done: step.Done{SameInput: true}},
		step.File{Path: unmanaged, Mode: 0o644, Content: step.Literal(text)},
		step.Command{Title: "reload NetworkManager", Argv: append(argv, "sh", text), Done: step.Done{SameInput: true}},
	)
}
