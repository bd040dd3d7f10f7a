// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

//go:embed logs.sh
var logsScript string

// reading is how long a host has to tell its logs: it is not well, and is to be repaired soon.
const reading = time.Minute

// Logs returns what a host can tell of what ails it, as gzip: the end of the journals of the kernel and of Kubernetes' units, and of
// the logs of kube-system's Pods, and the journals of these other services. It comes as one stream; see logs.sh for how long it may be.
// There may be secrets in it.
func Logs(ctx context.Context, h host.Host, services ...string) ([]byte, error) {
	said, err := h.Exec(ctx, host.Command{Title: "read logs", Argv: append([]string{"sh", "-c", logsScript, "sh"}, services...), Timeout: reading})
	if err != nil {
		return nil, err
	}
	if said.ExitCode != 0 || len(said.Stdout) == 0 {
		return nil, &host.Error{Kind: host.KindCommand, Host: h.Name(), Message: "its logs cannot be read", ExitCode: said.ExitCode,
			Output: strings.TrimSpace(string(said.Stderr)), Remedy: "see that sh, journalctl and gzip work on the host"}
	}
	return said.Stdout, nil
}
