// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bufio"
	"bytes"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// capabilities in the order of their numbers (linux/capability.h).
var capabilities = strings.Fields(`chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable
	net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct
	sys_admin sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
	mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore`)

// systemFromFiles fills in what the files tell.
func (a *answer) systemFromFiles() {
	if !a.o.full {
		return
	}
	sys := &a.facts.System
	text := func(file string) string { return strings.TrimSpace(string(limit(a.files[file], maxSystemFile))) }

	release := assignments(a.files[fileOSRelease])
	sys.OSID, sys.OSVersion = host.Word(release["ID"], maxID), host.Word(release["VERSION_ID"], maxID)
	sys.OSName = host.Word(release["PRETTY_NAME"], maxVersion)
	sys.Hostname, sys.Kernel = host.Word(text(fileHostname), maxVersion), host.Word(text(fileKernel), maxID)
	sys.MachineID = machineID(a.files[fileMachineID])
	if c := text(fileContainer); c != "" && sys.Container == "" {
		sys.Container = host.Word(c, maxID)
	}
	sys.CPUs = countCPUs(text(fileCPUs))
	sys.MemoryBytes = bytesOf(a.files[fileMemory], "MemTotal:")
	sys.DefaultInterface = defaultInterface(a.files[fileRoutes])
	sys.DefaultIPv6 = lastingIPv6(a.addresses, sys.DefaultInterface)
	sys.Nameservers = nameservers(a.files[fileResolv])
	sys.UpstreamNameservers = nameservers(a.files[fileResolved])
	for i, line := range slices.Collect(strings.Lines(string(limit(a.files[fileSwaps], maxSystemFile)))) {
		if fields := strings.Fields(line); i > 0 && len(fields) > 0 && len(sys.Swap) < maxList {
			sys.Swap = append(sys.Swap, host.Word(fields[0], maxPath))
		}
	}
	switch enforce, has := a.files[fileSELinux]; {
	case has && strings.TrimSpace(string(enforce)) == "1":
		sys.SELinux = "Enforcing"
	case has:
		sys.SELinux = "Permissive"
	case a.files[fileSELinuxOff] != nil:
		sys.SELinux = "Disabled"
	}
	if !a.taken.IsZero() {
		sys.BootTime = a.booted.Truncate(time.Second)
	}
	a.status(sys)
}

// status reads effective user and capability bounds from /proc/self/status.
func (a *answer) status(sys *host.System) {
	last := int(parseInt(strings.TrimSpace(string(a.files[fileLastCap]))))
	for line := range strings.Lines(string(limit(a.files[fileStatus], maxSystemFile))) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == "Uid:":
			sys.Root = fields[2] == "0"
		case len(fields) == 2 && fields[0] == "CapBnd:" && sys.MissingCapabilities == nil:
			bounds, err := strconv.ParseUint(fields[1], 16, 64)
			if err != nil {
				continue
			}
			for i, name := range capabilities {
				if i <= last && bounds&(1<<i) == 0 {
					sys.MissingCapabilities = append(sys.MissingCapabilities, name)
				}
			}
		}
	}
}

// unitsFromList reads the blocks of systemctl show, which come in the order in which the units were named.
func (a *answer) unitsFromList() {
	shown := map[string]host.UnitState{}
	i := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(a.units)), "\n\n") {
		properties := map[string]string{}
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			switch key {
			case "Id", "Names": // compared, and kept nowhere
				properties[key] = value
			case "LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "ActiveEnterTimestampMonotonic":
				properties[key] = host.Word(value, maxID)
			}
		}
		names := append(strings.Fields(properties["Names"]), properties["Id"])
		// A unit that systemctl could not show at all has no block.
		for i < len(a.o.units) && !slices.Contains(names, a.o.units[i]) && !slices.Contains(names, a.o.units[i]+".service") {
			i++
		}
		if i == len(a.o.units) {
			break
		}
		unit := host.UnitState{
			Load: properties["LoadState"], Active: properties["ActiveState"], Sub: properties["SubState"], File: properties["UnitFileState"],
			NeedDaemonReload: properties["NeedDaemonReload"] == "yes",
		}
		if since := between(0, parseInt(properties["ActiveEnterTimestampMonotonic"]), maxMemory); since > 0 && unit.Active == "active" && !a.booted.IsZero() {
			unit.Since = a.booted.Add(time.Duration(since) * time.Microsecond)
		}
		shown[a.o.units[i]] = unit
		i++
	}
	for _, name := range a.o.query.Units {
		unit, ok := shown[name]
		if !ok {
			unit = host.UnitState{Load: "not-found", Active: "inactive"}
		}
		if a.facts.Units == nil {
			a.facts.Units = map[string]host.UnitState{}
		}
		a.facts.Units[name] = unit
	}
	if !a.o.full {
		return
	}
	sys := &a.facts.System
	for _, name := range timeUnits {
		if shown[name].Active == "active" && sys.TimeSync == "" {
			sys.TimeSync = name
		}
	}
	sys.NetworkManager = shown[networkManager].Active == "active"
	if shown["firewalld.service"].Active == "active" {
		sys.Firewall = "firewalld"
	} else if unit := shown["ufw.service"]; (unit.Active == "active" || unit.File == "enabled") && assignments(a.files[fileUFW])["ENABLED"] == "yes" {
		// "ufw enable" does not start its unit, which the next boot does.
		sys.Firewall = "ufw"
	}
}

// assignments reads KEY=value lines with optional quotes (os-release(5)).
func assignments(content []byte) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(string(limit(content, maxSystemFile))) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(key, "#") {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	return values
}

func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// countCPUs counts a list such as 0-3,8.
func countCPUs(list string) int32 {
	var n int64
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		switch {
		case isRange:
			n += between(0, between(0, parseInt(last), maxCPUs)-between(0, parseInt(first), maxCPUs)+1, maxCPUs)
		case first != "":
			n++
		}
	}
	return int32(between(0, n, maxCPUs))
}

// bytesOf is the amount that a line of /proc/meminfo gives in kB.
func bytesOf(content []byte, key string) int64 {
	for line := range strings.Lines(string(limit(content, maxSystemFile))) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == key {
			return between(0, parseInt(fields[1]), maxMemory>>10) << 10
		}
	}
	return 0
}

// parseFloat reads how many seconds the host has been up.
func parseFloat(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	f, err := strconv.ParseFloat(first, 64)
	if err != nil || !(f >= 0 && f < lastSecond/100) {
		return 0
	}
	return f
}

// defaultInterface reads /proc/net/route: interface, destination, gateway, flags, …, mask, with the default's all zero.
func defaultInterface(content []byte) string {
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 7 && fields[1] == "00000000" && fields[7] == "00000000" {
			return host.Word(fields[0], maxID)
		}
	}
	return ""
}

func nameservers(content []byte) []string {
	var servers []string
	for line := range strings.Lines(string(limit(content, maxSystemFile))) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" && len(servers) < maxList {
			servers = append(servers, host.Word(fields[1], maxID))
		}
	}
	return servers
}

// maxAddresses is how many addresses of a host are known: a load balancer can have many.
const maxAddresses = 1024

// parseAddresses reads lines of "ip -o addr": "2: eth0 inet 10.0.0.1/24 …".
func parseAddresses(body []byte) []string {
	var addresses []string
	scanner := bufio.NewScanner(bytes.NewReader(body))
	for scanner.Scan() && len(addresses) < maxAddresses {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 4 || fields[2] != "inet" && fields[2] != "inet6" {
			continue
		}
		if p, err := netip.ParsePrefix(fields[3]); err == nil && p.Addr().IsGlobalUnicast() {
			addresses = append(addresses, p.String())
		}
	}
	return addresses
}

// lastingIPv6 is the lowest IPv6 address of an interface that lasts, of lines as parseAddresses reads.
func lastingIPv6(body []byte, name string) string {
	var lowest netip.Addr
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[1] != name || fields[2] != "inet6" || slices.ContainsFunc(fields[4:], isPassing) {
			continue
		}
		p, err := netip.ParsePrefix(fields[3])
		if err == nil && p.Addr().IsGlobalUnicast() && (!lowest.IsValid() || p.Addr().Less(lowest)) {
			lowest = p.Addr()
		}
	}
	if !lowest.IsValid() {
		return ""
	}
	return lowest.String()
}

// isPassing reports whether a flag of ip-address(8) says that an address is not one to know a host by.
func isPassing(flag string) bool {
	return slices.Contains([]string{"temporary", "deprecated", "tentative", "dadfailed"}, flag)
}

// parseResolves reads lines of "getent ahosts": "10.0.0.1 STREAM name".
func parseResolves(body []byte) []string {
	var addresses []string
	for line := range strings.Lines(string(body)) {
		if fields := strings.Fields(line); len(fields) > 0 && len(addresses) < maxList && !slices.Contains(addresses, fields[0]) {
			addresses = append(addresses, host.Word(fields[0], maxID))
		}
	}
	return addresses
}

// parsePorts reads lines of "ss -Htlnp": State Recv-Q Send-Q Local:Port Peer:Port users:(("name",pid=1,fd=3)).
func parsePorts(body []byte, asked []int32) map[int32]host.Listener {
	ports := map[int32]host.Listener{}
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		colon := strings.LastIndexByte(fields[3], ':')
		number, err := strconv.ParseUint(fields[3][colon+1:], 10, 16)
		port := int32(number)
		if err != nil || !slices.Contains(asked, port) {
			continue
		}
		var l host.Listener
		if _, users, ok := strings.Cut(line, `users:(("`); ok {
			name, rest, _ := strings.Cut(users, `"`)
			_, pid, _ := strings.Cut(rest, "pid=")
			pid, _, _ = strings.Cut(pid, ",")
			l = host.Listener{Process: host.Word(name, maxID), PID: int32(between(0, parseInt(pid), math.MaxInt32))}
		}
		ports[port] = l
	}
	return ports
}
