// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"

	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// privilege: seed 002, Step_CheckConnectivity.
func privilege(r *report) {
	if !r.f.System.Root {
		r.error(fmt.Sprintf("user %s is not root and cannot become root", r.f.System.User),
			"allow it in /etc/sudoers.d without a password (NOPASSWD: ALL), or give sudo's password")
	}
}

// operatingSystem: seed 002, Step_CheckOS.
func operatingSystem(r *report) {
	_, err := systems.Of(r.f.System.OSID, r.f.System.OSVersion)
	if unsupported := (*systems.UnsupportedError)(nil); errors.As(err, &unsupported) {
		r.error(unsupported.Cause, unsupported.Remedy)
	}
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
