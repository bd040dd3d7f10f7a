// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// healthTimeout bounds one question after health: a server that takes longer is not healthy.
const healthTimeout = 5 * time.Second

// Healthy returns nil when the API server answers /readyz with ok. Else the error names the checks that failed, or says
// why there was no answer.
func (c *Cluster) Healthy(ctx context.Context) error {
	asking, cancel := context.WithTimeoutCause(ctx, healthTimeout, fmt.Errorf("no answer within %s", healthTimeout))
	defer cancel()
	body, err := c.typed.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").MaxRetries(0).Do(asking).Raw()
	if err == nil {
		return nil
	}
	if failed := failedChecks(string(body)); len(failed) > 0 {
		err = errors.New("failing: " + strings.Join(failed, "; "))
	} else if asking.Err() != nil {
		err = context.Cause(asking)
	}
	return c.fail(err, "not ready")
}

// failedChecks returns the failing lines of /readyz?verbose, without their marks: a passing one is "[+]etcd ok", a
// failing one "[-]etcd failed: reason withheld".
func failedChecks(readyz string) []string {
	var failed []string
	for line := range strings.Lines(readyz) {
		if check, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			failed = append(failed, strings.TrimSuffix(check, ": reason withheld"))
		}
	}
	return failed
}
