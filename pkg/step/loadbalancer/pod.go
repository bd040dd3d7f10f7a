// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

//go:embed pod.yaml
var podFile string

// podParts is in what the programs' static pods differ.
type podParts struct {
	// command and capabilities are elements of a YAML list.
	command, capabilities string
	// scratch are the directories where the program writes.
	scratch []directory
}

type directory struct{ name, path string }

// Pod has the kubelet run the program with these settings as a static pod. A change of the settings is a change of the manifest,
// which restarts the pod: what goes through it must connect again, a second or two later.
func (p Program) Pod(s Settings, image string) step.Step {
	text := p.render(s)
	return step.New(step.Meta{
		Name: p.name + "/pod", Description: "run " + p.name + " in front of the API servers", Disrupts: "restarts " + p.name,
		Follows: step.FollowsAlways,
	},
		step.Directory{Path: p.dir(), Mode: 0o755},
		step.File{Path: p.configPath(), Mode: 0o644, Content: step.Literal(text)},
		step.File{Path: "/etc/kubernetes/manifests/kubexm-" + p.name + ".yaml", Mode: 0o600, Content: step.Literal(p.manifest(text, image))},
	)
}

// manifest is the static pod of a configuration, by whose digest the kubelet sees that it is another.
func (p Program) manifest(config, image string) string {
	var mounts, volumes []string
	for _, d := range p.pod.scratch {
		mounts = append(mounts, "- name: "+d.name, "  mountPath: "+d.path)
		volumes = append(volumes, "- name: "+d.name, "  emptyDir: {}")
	}
	sum := sha256.Sum256([]byte(config))
	return strings.NewReplacer(
		"{name}", p.name,
		"{command}", p.pod.command,
		"{capabilities}", p.pod.capabilities,
		"{digest}", hex.EncodeToString(sum[:]),
		"{image}", image,
		"{healthPort}", strconv.Itoa(p.healthPort),
	).Replace(expand(expand(podFile, "{mounts}", mounts), "{volumes}", volumes))
}
