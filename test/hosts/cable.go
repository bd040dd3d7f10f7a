// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"fmt"
)

// Disconnect pulls the host's cable: its interface loses the carrier and keeps its
// addresses and routes, connections stay open and silent. A host that boots is
// connected again. The host must not be paused.
//
// Docker's own way (docker network disconnect) takes the interface away with all
// routes and gives back one of another name, as no cable does.
func (h *Host) Disconnect(ctx context.Context) error { return h.setCable(ctx, "down") }

// Connect ends Disconnect.
func (h *Host) Connect(ctx context.Context) error { return h.setCable(ctx, "up") }

// cableScript sets the link with index $0 to the state $1.
const cableScript = `set -eu
for link in /sys/class/net/*; do
	if [ "$(cat "$link/ifindex")" = "$0" ]; then
		exec ip link set dev "${link##*/}" "$1"
	fi
done
echo "no link has index $0" >&2
exit 1`

// setCable sets the machine's end of the host's cable, from a container in the
// machine's network, so that it takes no other rights than Docker's.
func (h *Host) setCable(ctx context.Context, state string) error {
	fail := func(err error) error { return fmt.Errorf("set the cable of host %s %s: %w", h.Name, state, err) }
	index, err := h.Exec(ctx, "cat", "/sys/class/net/eth0/iflink")
	if err != nil {
		return fail(err)
	}
	image, err := docker(ctx, nil, "inspect", "--type", "container", "--format", "{{.Image}}", h.container)
	if err != nil {
		return fail(err)
	}
	if _, err := docker(ctx, nil, "run", "--rm", "--network", "host", "--cap-add", "NET_ADMIN",
		"--label", poolLabel+"="+h.pool, "--entrypoint", "/bin/sh", image, "-c", cableScript, index, state); err != nil {
		return fail(err)
	}
	return nil
}
