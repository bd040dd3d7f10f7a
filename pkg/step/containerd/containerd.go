// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package containerd holds the steps that install containerd and runc, and fill it with images.
package containerd

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// Socket is where the kubelet finds the runtime.
	Socket = "unix:///run/containerd/containerd.sock"

	service = "containerd.service"
	unit    = "/etc/systemd/system/" + service
	config  = "/etc/containerd/config.toml"
	hosts   = "/etc/containerd/certs.d"
	bin     = "/usr/local/bin"
)

//go:embed containerd.service
var unitFile string

// Settings of the runtime.
type Settings struct {
	DataDir    string
	PauseImage string
	// SystemdCgroup: systemd makes the cgroups of containers; else runc does.
	SystemdCgroup bool
	// RestrictOOMScore: do not ask for OOM scores below our own. Needed without CAP_SYS_RESOURCE.
	RestrictOOMScore bool
	Registries       spec.Registries
}

// Programs installs containerd, its shim, ctr and runc.
func Programs(programs []step.Artifact) step.Step {
	return step.New(step.Meta{Name: "containerd/programs", Description: "install containerd and runc", Disrupts: "restarts containerd"},
		step.Programs(bin, programs)...)
}

// Config writes containerd's configuration and the registries' hosts files.
func Config(s Settings) step.Step {
	parts := []step.Step{
		step.Directory{Path: hosts, Mode: 0o755},
		step.File{Path: config, Mode: 0o644, Content: step.Literal(render(s))},
	}
	for _, r := range registries(s.Registries) {
		parts = append(parts, step.File{
			Path: path.Join(hosts, r.name, "hosts.toml"), Mode: 0o644, Content: step.Literal(r.toml),
		})
	}
	return step.New(step.Meta{Name: "containerd/config", Description: "configure containerd", Disrupts: "restarts containerd"}, parts...)
}

// Service runs containerd.
func Service(programs []step.Artifact) step.Step {
	watches := []string{unit, config}
	for _, p := range programs {
		watches = append(watches, path.Join(bin, path.Base(p.Path)))
	}
	return step.New(step.Meta{Name: "containerd/service", Description: "run containerd", Disrupts: "restarts containerd"},
		step.File{Path: unit, Mode: 0o644, Content: step.Literal(unitFile)},
		step.Service{Name: service, Watches: watches, Settle: step.Duration(200e6)},
	)
}

// Images imports images.
func Images(arch string, images []step.Image) step.Step {
	return step.New(step.Meta{
		Name: "containerd/images", Description: "import images", Timeout: step.Duration(20 * 60e9),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(2e9)},
	}, step.Import{Arch: arch, Images: images})
}

func render(s Settings) string {
	return fmt.Sprintf(`version = 3
root = %q
state = "/run/containerd"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = %q

[plugins."io.containerd.cri.v1.images".registry]
  config_path = %q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = %t

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "/usr/local/bin/runc"
  SystemdCgroup = %t
`, s.DataDir, s.PauseImage, hosts, s.RestrictOOMScore, s.SystemdCgroup)
}

type registry struct{ name, toml string }

// registries renders one hosts.toml per registry that has mirrors, or is not verified.
func registries(r spec.Registries) []registry {
	insecure := make(map[string]bool)
	for _, i := range r.Insecure {
		insecure[i] = true
	}
	var all []registry
	seen := make(map[string]bool)
	for _, m := range r.Mirrors {
		seen[m.Registry] = true
		var b strings.Builder
		fmt.Fprintf(&b, "server = %q\n", "https://"+m.Registry)
		for _, e := range m.Endpoints {
			fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", e)
			_, name, _ := strings.Cut(e, "://")
			name, _, _ = strings.Cut(name, "/")
			if insecure[name] {
				b.WriteString("  skip_verify = true\n")
			}
		}
		if insecure[m.Registry] {
			fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  skip_verify = true\n", "https://"+m.Registry)
		}
		all = append(all, registry{m.Registry, b.String()})
	}
	for _, i := range r.Insecure {
		if !seen[i] {
			all = append(all, registry{i, fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  skip_verify = true\n",
				"https://"+i, "https://"+i)})
		}
	}
	return all
}
