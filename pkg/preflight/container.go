// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// container: what runs containers must itself have the right to.
func container(r *report) {
	var missing []string
	for _, c := range []string{"sys_admin", "net_admin", "net_raw", "sys_chroot", "sys_ptrace", "mknod", "setuid", "setgid", "chown", "dac_override"} {
		if slices.Contains(r.f.System.MissingCapabilities, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		where := "root"
		if r.f.System.Container != "" {
			where = fmt.Sprintf("the host is a container (%s), and root in it", r.f.System.Container)
		}
		r.error(fmt.Sprintf("%s lacks the capabilities %s, which a container runtime needs", where, strings.Join(missing, ", ")),
			"start the host with these capabilities")
	}
}
