// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	maxSkew = 5 * time.Second
	// showSkew is where a skew begins to be worth a word: certificates and logs tell the time in seconds.
	showSkew = time.Second
)

// timeSync: seed 002, Step_CheckTimeSync.
func timeSync(r *report) {
	skew, side := r.f.ClockSkew, "ahead of"
	if skew < 0 {
		skew, side = -skew, "behind"
	}
	cause := fmt.Sprintf("the clock is %s %s this machine's", skew.Round(100*time.Millisecond), side)
	switch {
	case skew > maxSkew:
		r.error(fmt.Sprintf("%s, and at most %s are allowed: certificates and etcd depend on it", cause, maxSkew), "set the clocks by NTP, here and there")
	case skew > showSkew:
		r.warn(cause, "set the clocks by NTP, here and there")
	}
	// A container has its machine's clock.
	if r.f.System.TimeSync == "" && r.f.System.Container == "" {
		r.avoid(spec.CheckTime, "no NTP service runs (chrony, systemd-timesyncd, ntpd)", "install and start chrony")
	}
}
