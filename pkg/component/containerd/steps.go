// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	_ "embed"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	socket = "unix:///run/containerd/containerd.sock"

	service = "containerd.service"
	unit    = "/etc/systemd/system/" + service
	config  = "/etc/containerd/config.toml"
	hosts   = "/etc/containerd/certs.d"
	bin     = "/usr/local/bin"

	// template is what containerd makes the configuration of pods' networks from.
	template = "/etc/containerd/pods.conflist"
)

var (
	//go:embed containerd.service
	unitFile string
	//go:embed pods.conflist
	podsConflist string
)

// Settings of the runtime.
type Settings struct {
	DataDir    string
	PauseImage string
	// SystemdCgroup: systemd makes the cgroups of containers; else runc does.
	SystemdCgroup bool
	// RestrictOOMScore: do not ask for OOM scores below our own. Needed without CAP_SYS_RESOURCE.
	RestrictOOMScore bool
	Registries       spec.Registries
	// PodMTU is the maximum transmission unit of pods' interfaces in bytes, where containerd makes the configuration by which pods get
	// an address of each of the Node's pod networks when the kubelet tells these networks; 0 where the network writes it.
	PodMTU int32
}

// InstallPrograms installs containerd, its shim, ctr and runc.
func InstallPrograms(programs []step.Artifact) step.Step {
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
	parts = append(parts, offList(s.Registries))
	if s.PodMTU > 0 {
		text := strings.Replace(podsConflist, "$MTU", strconv.Itoa(int(s.PodMTU)), 1)
		parts = append(parts, step.File{Path: template, Mode: 0o644, Content: step.Literal(text)})
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
		step.Service{Name: service, Watches: watches, Settle: step.Duration(200 * time.Millisecond)},
	)
}

// store is containerd's k8s.io namespace, of which images are listed as REF TYPE DIGEST SIZE PLATFORMS LABELS. What had another name
// keeps a third, by which an undo finds it; where there is nothing of that any more, nothing needs to be undone.
var store = step.ImageStore{
	List:  []string{bin + "/ctr", "--namespace", "k8s.io", "images", "list"},
	Match: "name==",
	Load:  []string{bin + "/ctr", "--namespace", "k8s.io", "images", "import", "--local", "-"},
	Name: []string{"/bin/sh", "-euc", `
		tag() { ` + bin + `/ctr --namespace k8s.io images tag --force "$1" "$2"; }
		case $1 in
		name) tag "$3" "$3-before" 2>/dev/null || :; tag "$2" "$3" ;;
		undo) tag "$3-before" "$3" 2>/dev/null || : ;;
		esac`, "sh"},
}

// Images imports images.
func Images(arch string, images []step.Image) step.Step {
	return step.New(step.Meta{
		Name: "containerd/images", Description: "import images", Timeout: step.Duration(20 * time.Minute), Follows: step.FollowsOthers,
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(2 * time.Second)},
	}, step.Import{Arch: arch, Images: images, Store: store})
}

func render(s Settings) string {
	networks := ""
	if s.PodMTU > 0 {
		networks = fmt.Sprintf("  conf_template = %q\n", template)
	}
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
%s
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "/usr/local/bin/runc"
  SystemdCgroup = %t
`, s.DataDir, s.PauseImage, hosts, s.RestrictOOMScore, networks, s.SystemdCgroup)
}

//go:embed off-list.sh
var offListScript string

// offList takes back the hosts files of registries that were declared once, and are not any more. Those of others stay.
func offList(r spec.Registries) step.Step {
	script := func(verb string) []string {
		argv := []string{"/bin/sh", "-ec", offListScript, "sh", verb, hosts}
		for _, one := range registries(r) {
			argv = append(argv, one.name)
		}
		return argv
	}
	return step.Command{Title: "take back registries", Argv: script("remove"), Done: step.Done{Check: script("check")}}
}

type registry struct{ name, toml string }

// registries renders one hosts.toml per registry that has mirrors, or is not verified. It does not name the registry itself
// as "server": containerd knows better that docker.io, for one, is at registry-1.docker.io.
func registries(r spec.Registries) []registry {
	names := make([]string, 0, len(r.Mirrors))
	var all []registry
	for _, m := range r.Mirrors {
		names = append(names, m.Registry)
		all = append(all, registry{m.Registry, hostsFile(r, m)})
	}
	for _, name := range r.Insecure {
		if !slices.Contains(names, name) {
			all = append(all, registry{name, hostsFile(r, spec.Mirror{Registry: name})})
		}
	}
	return all
}

func hostsFile(r spec.Registries, m spec.Mirror) string {
	var b strings.Builder
	if len(m.Endpoints) > 0 {
		fmt.Fprintf(&b, "# Images of %s are asked of these, then of the registry itself.\n", m.Registry)
	}
	if slices.Contains(r.Insecure, m.Registry) {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "# The certificate of %s is not verified.\n", m.Registry)
		}
		b.WriteString("skip_verify = true\n")
	}
	for _, e := range m.Endpoints {
		fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", e)
		u, err := url.Parse(e)
		if err != nil {
			continue // the specification has been validated
		}
		if slices.Contains(r.Insecure, u.Host) {
			b.WriteString("  skip_verify = true\n")
		}
		// A path below /v2 is the root of the API itself, as that of a proxy project in Harbor.
		if strings.HasPrefix(u.Path, "/v2/") {
			b.WriteString("  override_path = true\n")
		}
	}
	return b.String()
}
