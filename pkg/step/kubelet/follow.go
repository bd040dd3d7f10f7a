// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// patience is how long a kubelet may take to become healthy.
	patience = time.Minute
	// kept goes with the boot: a kubelet that starts with it has started anew then.
	kept = "/run/kubexm-kubelet"
)

var (
	//go:embed change.sh
	change string
	//go:embed follow.sh
	follow string
	//go:embed healthy.sh
	healthy string
)

// File is one that the kubelet, or systemd for it, reads.
type File struct{ Path, Content string }

// Environment is what ChangeScript must know, as env takes it. upgrading is a path that exists while programs are replaced.
func Environment(k spec.Kubelet, upgrading string) []string {
	return []string{"kept=" + kept, "health=" + health(k), "patience=" + strconv.Itoa(int(patience/time.Second)), "upgrading=" + upgrading}
}

// ChangeScript is what scripts begin with that change files of the kubelet: begin, then place each FILE NEW, then end with all
// files. When the kubelet does not become healthy with them, what was there before is put back.
func ChangeScript() string { return change }

// health is the URL at which a kubelet with these flags says that it is healthy, "" where the user turned that off.
func health(k spec.Kubelet) string {
	address, port := "127.0.0.1", "10248"
	for _, a := range k.ExtraArgs {
		switch {
		case a.Name == "healthz-port":
			port = a.Value
		case a.Name == "healthz-bind-address" && a.Value != "0.0.0.0" && a.Value != "::":
			address = a.Value
		}
	}
	if port == "0" {
		return ""
	}
	return "http://" + net.JoinHostPort(address, port) + "/healthz"
}

// Follow brings the files of a kubelet that runs already to other contents and restarts it. When it does not become healthy
// within a minute, what was there before is put back, the kubelet runs with that, and the step fails with what the kubelet said.
// Where the kubelet has not run yet there is nothing to do, nor while programs are replaced.
func Follow(k spec.Kubelet, upgrading string, files ...File) step.Step {
	argv := append([]string{"/usr/bin/env"}, Environment(k, upgrading)...)
	check := []string{"/bin/sh", "-c", followed, "sh", upgrading, kept}
	var paths []string
	for i, f := range files {
		argv = append(argv, fmt.Sprintf("file_%d=%s", i+1, f.Content))
		sum := sha256.Sum256([]byte(f.Content))
		check = append(check, f.Path, hex.EncodeToString(sum[:]))
		paths = append(paths, f.Path)
	}
	argv = append(append(argv, "/bin/sh", "-uc", change+follow, "kubelet"), paths...)
	return step.New(step.Meta{
		Name: "kubelet/follow", Description: "bring the running kubelet to another configuration", Disrupts: "restarts kubelet",
		Timeout: step.Duration(5 * time.Minute),
	}, step.Command{Title: "change the kubelet's configuration", Argv: argv, Done: step.Done{Check: check}})
}

// followed holds when the files that there are are as they must be, and none is being changed.
const followed = `[ ! -e "$1" ] || exit 0
if [ -e "$2" ]; then echo "a change of the kubelet's files was cut"; exit 1; fi
shift 2
while [ $# -gt 0 ]; do
	if [ -e "$1" ] && [ "$(sha256sum <"$1" | cut -c 1-64)" != "$2" ]; then echo "$1 is to change"; exit 1; fi
	shift 2
done`

// Healthy waits until the kubelet says that it is healthy. It is a step of its own: what a step looked at before its act does not
// tell what a restart in that act leads to.
func Healthy(k spec.Kubelet) step.Step {
	run := func(script string) []string {
		argv := append([]string{"/usr/bin/env"}, Environment(k, "/nowhere")...)
		return append(argv, "/bin/sh", "-uc", change+script, "kubelet")
	}
	return step.New(step.Meta{
		Name: "kubelet/healthy", Description: "wait until the kubelet is healthy", Timeout: step.Duration(2 * time.Minute),
	}, step.Command{
		Title: "wait until the kubelet is healthy", Argv: run(healthy),
		Done: step.Done{Check: run("is_healthy || { echo \"the kubelet is $(property ActiveState) and not healthy\"; exit 1; }\n")},
	})
}
