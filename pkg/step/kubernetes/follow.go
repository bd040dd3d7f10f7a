// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/turn"
)

// keptUnits go with the boot: the components that start with it have started anew then.
const keptUnits = "/run/kubexm-control-plane"

var (
	//go:embed follow-begin.sh
	followBegin string
	//go:embed follow.sh
	followUnits string
)

// Follow brings the components of a control plane host that runs already to other settings: the API server, then those that use
// it, one host of the cluster at a time, so that there is always an API server that answers. When one does not come up, the
// units that were there before are put back. On a host where nothing runs yet there is nothing to do, nor while programs are
// replaced, which is while the path upgrading exists: hosts take turns for that anyway, and all is undone when it fails.
func Follow(c Cluster, n Node, upgrading string) step.Step {
	argv := []string{
		"/usr/bin/env", "name=" + n.Name, "admin=" + adminConf, "server=" + itself(c), "units=" + unitsDir, "kept=" + keptUnits, "upgrading=" + upgrading,
		"patience=" + patience, "term=" + seconds(turn.Term), "asking=" + seconds(turn.Asking), "limit=" + seconds(turn.Limit),
	}
	check := []string{"/bin/sh", "-c", unitsFollowed, "sh", upgrading, keptUnits}
	var programs []string
	for _, u := range controlPlaneUnits(c, n) {
		sum := sha256.Sum256([]byte(u.String()))
		argv = append(argv, strings.ReplaceAll(u.program, "-", "_")+"="+u.String())
		check = append(check, u.file(), hex.EncodeToString(sum[:]))
		programs = append(programs, u.program)
	}
	argv = append(append(argv, "/bin/sh", "-uc", followBegin+turn.Script+followUnits, "kubernetes"), programs...)
	return step.New(step.Meta{
		Name: "kubernetes/follow", Description: "bring the running control plane to other settings",
		Timeout: step.Duration(turn.Limit + turn.Term), Disrupts: "restarts the control plane's components",
	}, step.Command{Title: "change the control plane's units", Argv: argv, Done: step.Done{Check: check}})
}

// unitsFollowed holds when the units that there are are as they must be, and none is being changed.
const unitsFollowed = `[ ! -e "$1" ] || exit 0
if [ -e "$2" ]; then echo "a change of the units was cut"; exit 1; fi
shift 2
while [ $# -gt 0 ]; do
	if [ -e "$1" ] && [ "$(sha256sum <"$1" | cut -c 1-64)" != "$2" ]; then echo "$1 is to change"; exit 1; fi
	shift 2
done`

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
