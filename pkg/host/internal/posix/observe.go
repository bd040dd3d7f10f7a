// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Files that tell about the system.
const (
	fileOSRelease  = "/etc/os-release"
	fileResolv     = "/etc/resolv.conf"
	fileResolved   = "/run/systemd/resolve/resolv.conf"
	fileMemory     = "/proc/meminfo"
	fileSwaps      = "/proc/swaps"
	fileStatus     = "/proc/self/status"
	fileLastCap    = "/proc/sys/kernel/cap_last_cap"
	fileHostname   = "/proc/sys/kernel/hostname"
	fileKernel     = "/proc/sys/kernel/osrelease"
	fileRoutes     = "/proc/net/route"
	fileCPUs       = "/sys/devices/system/cpu/online"
	fileSELinux    = "/sys/fs/selinux/enforce"
	fileSELinuxOff = "/etc/selinux/config"
	fileContainer  = "/run/systemd/container"
	fileUFW        = "/etc/ufw/ufw.conf"
)

var systemFiles = []string{
	fileOSRelease, fileResolv, fileResolved, fileMemory, fileSwaps, fileStatus, fileLastCap, fileHostname, fileKernel,
	fileMachineID, fileRoutes, fileCPUs, fileSELinux, fileSELinuxOff, fileContainer, fileUFW,
}

const networkManager = "NetworkManager.service"

var (
	firewallUnits = []string{"firewalld.service", "ufw.service"}
	timeUnits     = []string{"chrony.service", "chronyd.service", "systemd-timesyncd.service", "ntp.service", "ntpd.service", "ntpsec.service", "openntpd.service"}
	networkUnits  = []string{networkManager}
	systemUnits   = slices.Concat(firewallUnits, timeUnits, networkUnits)
)

// witnesses are modules that, built in, show neither in /sys/module nor (on a host without /lib/modules) elsewhere.
var witnesses = map[string]string{
	"br_netfilter": "/proc/sys/net/bridge/bridge-nf-call-iptables",
	"ip_vs":        "/proc/net/ip_vs",
	"nf_conntrack": "/proc/sys/net/netfilter/nf_conntrack_max",
	"nf_tables":    "/proc/net/netfilter",
	"tun":          "/dev/net/tun",
	"fuse":         "/sys/fs/fuse",
}

// disguise returns a prefix that leads nowhere ("/", "/." and so on, as often as it takes to be unguessable) for the
// paths whose contents are asked: head prints the path before the content, and no content can hold that path.
func disguise() string {
	var b strings.Builder
	bits := rand.Uint64()
	for range 48 {
		b.WriteByte('/')
		if bits&1 == 1 {
			b.WriteByte('.')
		}
		bits >>= 1
	}
	return b.String()
}

// observation is a query on its way.
type observation struct {
	query  host.Query
	prefix string // of disguised paths
	// full asks for the System facts and the host's logs.
	full  bool
	units []string
	// asks is the function of the library that answers a command of the query.
	asks string
}

func newObservation(q host.Query, full bool) *observation {
	o := &observation{query: q, prefix: disguise(), full: full, units: slices.Clone(q.Units), asks: "o_query"}
	if full {
		for _, u := range systemUnits {
			if !slices.Contains(o.units, u) {
				o.units = append(o.units, u)
			}
		}
	}
	return o
}

// files lists what is to be read by content, in the shell's words: system files, sysctls, contents, blocks.
func (o *observation) files(stateDir string) []string {
	var files []string
	if o.full {
		files = append(slices.Clone(systemFiles), stateDir+"/"+journalFile, stateDir+"/"+undoFile, stateDir+"/"+host.OwnerFile,
			stateDir+"/"+host.SerialFile)
	}
	for _, s := range o.query.Sysctls {
		files = append(files, sysctlPath(s))
	}
	if slices.Contains(o.query.Modules, "overlay") {
		files = append(files, "/proc/filesystems")
	}
	return files
}

// render adds the observation to s, which has the library.
func (o *observation) render(s *script, stateDir string) {
	if o.full || len(o.query.Units) > 0 {
		s.call("o_clock")
	}
	if o.full {
		s.call("o_system")
	}
	quoted := func(p string) string { return quote(o.prefix + p) }
	var files []string
	for _, f := range o.files(stateDir) {
		files = append(files, quoted(f))
	}
	s.line("set --", strings.Join(files, " "))
	var paths, digests []string
	for _, p := range o.query.Paths {
		if !slices.Contains(paths, p.Path) {
			paths = append(paths, p.Path)
		}
		if p.Digest && !slices.Contains(digests, p.Path) {
			digests = append(digests, p.Path)
		}
		switch {
		case p.Block != "": // in the file to which a link leads
			s.line("[ -f", quote(p.Path), `] && set -- "$@"`, quoted(p.Path))
		case p.Content:
			s.line("[ -f", quote(p.Path), "] && [ ! -L", quote(p.Path), `] && set -- "$@"`, quoted(p.Path))
		}
	}
	if len(o.query.Modules) > 0 {
		s.line("read -r kernel <" + fileKernel)
		s.line(`set -- "$@"`, quote(o.prefix)+`"/lib/modules/$kernel/modules.builtin"`)
	}
	s.line("[ $# -eq 0 ] || o_files", strconv.Itoa(maxFile), `"$@"`)
	if len(paths) > 0 {
		s.call("o_paths", paths...)
	}
	if len(digests) > 0 {
		s.call("o_digests", digests...)
	}
	o.renderUnits(s)
	for _, m := range o.query.Modules {
		name := strings.ReplaceAll(m, "-", "_")
		s.call("o_modules", name)
		if w := witnesses[name]; w != "" {
			s.call("o_witness", name, w)
		}
	}
	if len(o.query.Packages) > 0 {
		s.call("o_packages", o.query.Packages...)
	}
	if len(o.query.Ports) > 0 {
		s.call("o_ports")
	}
	for i, c := range o.query.Commands {
		s.call(o.asks, append([]string{strconv.Itoa(i), strconv.Itoa(host.MaxContent), hundredths(c.Limit())}, c.Argv...)...)
	}
}

// renderUnits asks for the units of the query, and for those that tell about the system where they run.
func (o *observation) renderUnits(s *script) {
	switch system := o.units[len(o.query.Units):]; {
	case len(system) > 0:
		s.call("o_running", system...)
		s.line("set --", quoteAll(o.query.Units), "$running")
		s.line(`[ $# -eq 0 ] || o_units "$@"`)
	case len(o.units) > 0:
		s.call("o_units", o.units...)
	}
}

// maxFile bounds each file that o_files reads; the undo log of a host with long history is larger than contents may be.
const maxFile = 8 << 20

// sysctlPath is the file of a kernel parameter; in the dotted spelling a "/" stands for a dot within a name.
func sysctlPath(name string) string {
	if strings.IndexByte(name, '/') >= 0 && strings.IndexByte(name, '/') < strings.IndexByte(name+".", '.') {
		return "/proc/sys/" + name
	}
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
