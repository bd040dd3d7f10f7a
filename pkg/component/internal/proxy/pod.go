// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

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

// Directory is one where a program writes, with the name of its volume.
type Directory struct{ Name, Path string }

// Pod has the kubelet run the program with these settings as a static pod. A change of the settings is a change of the manifest,
// which restarts the pod: what goes through it must connect again, a second or two later.
func (p Program) Pod(s Settings, image string) step.Step {
	text := p.render(s, imageLayout)
	return step.New(step.Meta{
		Name: p.Name + "/pod", Description: "run " + p.Name + " in front of the API servers", Disrupts: "restarts " + p.Name,
		Follows: step.FollowsAlways,
	},
		step.Directory{Path: p.dir(), Mode: 0o755},
		step.File{Path: p.configPath(), Mode: 0o644, Content: step.Literal(text)},
		step.File{Path: "/etc/kubernetes/manifests/kubexm-" + p.Name + ".yaml", Mode: 0o600, Content: step.Literal(p.manifest(text, image))},
	)
}

// manifest is the static pod of a configuration, by whose digest the kubelet sees that it is another.
func (p Program) manifest(config, image string) string {
	var mounts, volumes []string
	for _, d := range p.PodScratch {
		mounts = append(mounts, "- name: "+d.Name, "  mountPath: "+d.Path)
		volumes = append(volumes, "- name: "+d.Name, "  emptyDir: {}")
	}
	sum := sha256.Sum256([]byte(config))
	return strings.NewReplacer(
		"{name}", p.Name,
		"{command}", p.PodCommand,
		"{capabilities}", p.PodCapabilities,
		"{digest}", hex.EncodeToString(sum[:]),
		"{image}", image,
		"{healthPort}", strconv.Itoa(p.HealthPort),
	).Replace(expand(expand(podFile, "{mounts}", mounts), "{volumes}", volumes))
}
