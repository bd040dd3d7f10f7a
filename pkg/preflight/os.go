// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// family is what is known of a family of operating systems.
type family struct {
	// id is ID in /etc/os-release; name is for people.
	id, name string
	// releases are values of VERSION_ID.
	releases []string
}

// families are the operating systems that hosts may have.
func families() []family { return []family{debian()} }

// privilege: seed 002, Step_CheckConnectivity.
func privilege(r *report) {
	if !r.f.System.Root {
		r.error(fmt.Sprintf("user %s is not root and cannot become root", r.f.System.User),
			"allow it in /etc/sudoers.d without a password (NOPASSWD: ALL), or give sudo's password")
	}
}

// operatingSystem: seed 002, Step_CheckOS.
func operatingSystem(r *report) {
	var supported []string
	for _, f := range families() {
		supported = append(supported, f.name+" "+strings.Join(f.releases, ", "))
		if r.f.System.OSID != f.id {
			continue
		}
		if !slices.Contains(f.releases, r.f.System.OSVersion) {
			r.error(fmt.Sprintf("%s %q is not a supported release of %s", r.f.System.OSID, r.f.System.OSVersion, f.name),
				"use "+f.name+" "+strings.Join(f.releases, " or "))
		}
		r.architecture()
		return
	}
	cause := "there is no /etc/os-release that names the operating system"
	if found := strings.TrimSpace(r.f.System.OSID + " " + r.f.System.OSVersion); found != "" {
		cause = "the operating system " + found + " is not supported"
	}
	r.error(cause, "use one of "+strings.Join(supported, "; "))
	r.architecture()
}

func (r *report) architecture() {
	arch := r.f.System.Arch
	switch {
	case arch != string(spec.ArchAMD64) && arch != string(spec.ArchARM64):
		r.error(fmt.Sprintf("the processor architecture %q is not supported", arch), "use amd64 or arm64")
	case r.t.Host.Arch != "" && string(r.t.Host.Arch) != arch:
		r.error(fmt.Sprintf("the host is %s, and declared as %s", arch, r.t.Host.Arch), "correct the host's arch, or leave it out")
	}
}
