// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crio

import (
	_ "embed"
	"fmt"
	"path"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	socket = "unix:///run/crio/crio.sock"

	service = "crio.service"
	unit    = "/etc/systemd/system/" + service
	config  = "/etc/crio/crio.conf.d/10-kubexm.conf"
	policy  = "/etc/crio/policy.json"
	bin     = "/usr/local/bin"
	// auth is where users put passwords of registries and mirrors, if there are any: it is read with each pull.
	auth = "/etc/crio/auth.json"

	crictl       = "crictl"
	crictlConfig = "/etc/crictl.yaml"

	// restricted is runc where the host is a container, and may not do all that CRI-O asks for.
	restricted = "/usr/local/lib/crio/runc"
)

var (
	//go:embed crio.service
	unitFile string
	//go:embed policy.json
	policyFile string
	//go:embed restrict.sh
	restrictedFile string
)

// Settings of the runtime.
type Settings struct {
	DataDir    string
	PauseImage string
	// SystemdCgroup: systemd makes the cgroups of containers; else CRI-O and runc do.
	SystemdCgroup bool
	// RestrictOOMScore: do not ask for OOM scores below our own. Needed without CAP_SYS_RESOURCE.
	RestrictOOMScore bool
	Registries       spec.Registries
}

// PackageNames are the packages that Packages installs on a host with this operating system. What conmon is linked with comes with it.
func PackageNames(os family.Family) []string { return family.Names(os, "conmon") }

// Packages installs conmon, from the given files if these have it.
func Packages(os family.Family, from step.PackageFiles) step.Step {
	return step.New(step.Meta{
		Name: "cri-o/packages", Description: "install conmon", Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	}, step.Package{Names: PackageNames(os), From: from})
}

// InstallPrograms installs CRI-O, what goes with it, and runc.
func InstallPrograms(programs []step.Artifact) step.Step {
	return step.New(step.Meta{Name: "cri-o/programs", Description: "install CRI-O and runc", Disrupts: "restarts CRI-O"},
		step.Programs(bin, programs)...)
}

// Config writes CRI-O's configuration, the registries', and crictl's.
func Config(s Settings) step.Step {
	parts := []step.Step{
		step.File{Path: policy, Mode: 0o644, Content: step.Literal(policyFile)},
		step.File{Path: registriesConfig, Mode: 0o644, Content: step.Literal(registries(s.Registries))},
		step.File{Path: crictlConfig, Mode: 0o644, Content: step.Literal("runtime-endpoint: " + socket + "\nimage-endpoint: " + socket + "\n")},
	}
	if s.RestrictOOMScore {
		parts = append(parts, step.File{Path: restricted, Mode: 0o755, Content: step.Literal(restrictedFile)})
	}
	parts = append(parts, step.File{Path: config, Mode: 0o644, Content: step.Literal(render(s))})
	return step.New(step.Meta{Name: "cri-o/config", Description: "configure CRI-O", Disrupts: "restarts CRI-O"}, parts...)
}

// Service runs CRI-O. Containers go on while it is restarted.
func Service(programs []step.Artifact) step.Step {
	watches := []string{unit, config, policy, registriesConfig}
	for _, p := range programs {
		watches = append(watches, path.Join(bin, path.Base(p.Path)))
	}
	return step.New(step.Meta{Name: "cri-o/service", Description: "run CRI-O", Disrupts: "restarts CRI-O"},
		step.File{Path: unit, Mode: 0o644, Content: step.Literal(unitFile)},
		step.Service{Name: service, Watches: watches, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// Images stores images, by a program that is compiled with CRI-O's own storage: CRI-O has no command for it.
func Images(arch, dataDir string, images []step.Image) step.Step {
	program := []string{path.Join(bin, "crio-images"), dataDir}
	does := func(what ...string) []string { return append(program[:len(program):len(program)], what...) }
	return step.New(step.Meta{
		Name: "cri-o/images", Description: "store images", Timeout: step.Duration(20 * time.Minute), Follows: step.FollowsOthers,
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(2 * time.Second)},
	}, step.Import{Arch: arch, Images: images, Store: step.ImageStore{List: does("list"), Load: does("load"), Name: does()}})
}

// render is CRI-O's configuration. Namespaces and containers' state are in directories of CRI-O's own, so that a reset knows them from
// others'; what pods may do beyond the capabilities that they have is what containerd gives them.
func render(s Settings) string {
	runtime, cgroups := path.Join(bin, runc), "cgroup_manager = \"systemd\"\n"
	if s.RestrictOOMScore {
		runtime = restricted
	}
	if !s.SystemdCgroup {
		cgroups = "cgroup_manager = \"cgroupfs\"\nconmon_cgroup = \"pod\"\n"
	}
	return fmt.Sprintf(`# Written by kubexm.
[crio]
root = %q
runroot = "/run/containers/storage"
storage_driver = "overlay"
storage_option = []
version_file = "/run/crio/version"

[crio.api]
listen = "/run/crio/crio.sock"

[crio.runtime]
%sdefault_runtime = "runc"
pinns_path = "/usr/local/bin/pinns"
namespaces_dir = "/run/crio"
container_exits_dir = "/run/crio/exits"
container_attach_socket_dir = "/run/crio"
irqbalance_config_restore_file = "disable"
default_sysctls = ["net.ipv4.ip_unprivileged_port_start=0", "net.ipv4.ping_group_range=0 2147483647"]

[crio.runtime.runtimes.runc]
runtime_path = %q
runtime_root = "/run/crio/runc"

[crio.image]
pause_image = %q
signature_policy = %q
global_auth_file = %q

[crio.network]
network_dir = "/etc/cni/net.d"
plugin_dirs = ["/opt/cni/bin"]
`, path.Join(s.DataDir, "storage"), cgroups, runtime, s.PauseImage, policy, auth)
}
