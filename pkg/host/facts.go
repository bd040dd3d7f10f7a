// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io/fs"
	"maps"
	"time"
)

// Facts is what was seen of a host at one time. Maps are keyed by what the Query named; a missing key means that it was
// not asked, a zero-valued answer (Exists false, Load "not-found", …) that it was asked and is not there.
type Facts struct {
	// Taken is the host's own clock; ClockSkew is how far it is ahead of ours, half the exchange's time allowed for.
	Taken     time.Time     `json:"taken"`
	ClockSkew time.Duration `json:"clockSkew"`

	System   System               `json:"system"`
	Paths    map[string]Path      `json:"paths,omitempty"`
	Blocks   map[string]string    `json:"blocks,omitempty"` // key: path + "#" + block name; absent blocks are missing
	Units    map[string]UnitState `json:"units,omitempty"`
	Sysctls  map[string]string    `json:"sysctls,omitempty"`
	Modules  map[string]bool      `json:"modules,omitempty"` // loaded or built in
	Packages map[string]string    `json:"packages,omitempty"`
	// Ports holds, per asked port, who listens on it; a free port has no entry.
	Ports    map[int32]Listener `json:"ports,omitempty"`
	Commands map[string]Result  `json:"commands,omitempty"`

	// Journal is what runs of ours have finished on this host, by node.
	Journal map[string]JournalEntry `json:"journal,omitempty"`
	// UndoEntries is how many entries the undo store holds; 0 on a host that we never changed or gave back.
	UndoEntries int `json:"undoEntries,omitempty"`
	// Owner is whose the host is by its own record, nil if it has none that can be read. OwnerUnreadable says why it cannot.
	Owner           *Owner `json:"owner,omitempty"`
	OwnerUnreadable string `json:"ownerUnreadable,omitempty"`
	// Serial is that of the state with which the host was changed last, nil if it has none that can be read. SerialUnreadable says why it
	// cannot.
	Serial           *Serial `json:"serial,omitempty"`
	SerialUnreadable string  `json:"serialUnreadable,omitempty"`
}

// System is what every observation tells.
type System struct {
	Hostname string `json:"hostname"`
	// MachineID is /etc/machine-id: 32 lower-case hex digits, or "" if it has none.
	MachineID string `json:"machineID,omitempty"`
	// OSID and OSVersion are ID and VERSION_ID of /etc/os-release.
	OSID      string `json:"osID"`
	OSVersion string `json:"osVersion"`
	OSName    string `json:"osName,omitempty"` // PRETTY_NAME
	// Arch is GOARCH's spelling: amd64, arm64.
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	// Container names the container manager when the host is a container (systemd-detect-virt), else "".
	Container string `json:"container,omitempty"`
	// CgroupVersion is 1 or 2 (1 for the hybrid layout).
	CgroupVersion int32 `json:"cgroupVersion"`
	// MissingCapabilities are those that root's bounding set lacks, in the names of capabilities(7), lower case without
	// "cap_".
	MissingCapabilities []string `json:"missingCapabilities,omitempty"`

	CPUs        int32 `json:"cpus"`
	MemoryBytes int64 `json:"memoryBytes"`
	// DiskFreeBytes and DiskTotalBytes are of the file system that holds /var/lib.
	DiskFreeBytes  int64 `json:"diskFreeBytes"`
	DiskTotalBytes int64 `json:"diskTotalBytes"`

	// User is who we logged in as; Root says whether we act as root (directly or by sudo).
	User string `json:"user"`
	Root bool   `json:"root"`

	BootTime time.Time `json:"bootTime"`
	// Addresses are the global unicast addresses of the host's interfaces, in CIDR form.
	Addresses []string `json:"addresses,omitempty"`
	// DefaultInterface has the IPv4 default route.
	DefaultInterface string `json:"defaultInterface,omitempty"`
	// DefaultIPv6 is the lowest of the global IPv6 addresses of that interface that last: neither temporary (RFC 8981) nor
	// deprecated.
	DefaultIPv6 string `json:"defaultIPv6,omitempty"`
	// HostnameAddresses is what the host's own name resolves to on the host.
	HostnameAddresses []string `json:"hostnameAddresses,omitempty"`
	// Nameservers of /etc/resolv.conf, and of systemd-resolved's own file where that is in use.
	Nameservers         []string `json:"nameservers,omitempty"`
	UpstreamNameservers []string `json:"upstreamNameservers,omitempty"`

	// NetworkManager says that it is active.
	NetworkManager bool `json:"networkManager,omitempty"`

	// Swap lists active swap devices. SELinux is Enforcing, Permissive, Disabled or "". Firewall is the active
	// firewall manager (firewalld, ufw) or "". TimeSync is the active NTP service's unit or "".
	Swap     []string `json:"swap,omitempty"`
	SELinux  string   `json:"selinux,omitempty"`
	Firewall string   `json:"firewall,omitempty"`
	TimeSync string   `json:"timeSync,omitempty"`

	// Tools says which compressors are on the path: zstd, gzip.
	Tools map[string]bool `json:"tools,omitempty"`
}

// Path is one path as seen, not followed when it is a link.
type Path struct {
	Exists bool `json:"exists"`
	// Mode has the type bits and permissions of io/fs.
	Mode fs.FileMode `json:"mode,omitempty"`
	// Owner and Group are names, or numbers where there is no name; UID and GID are their numbers.
	Owner    string    `json:"owner,omitempty"`
	Group    string    `json:"group,omitempty"`
	UID      uint32    `json:"uid,omitempty"`
	GID      uint32    `json:"gid,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	// Digest is "sha256:…" when asked and the path is a regular file.
	Digest string `json:"digest,omitempty"`
	// Target is a link's target.
	Target string `json:"target,omitempty"`
	// Content is at most MaxContent bytes, when asked.
	Content []byte `json:"content,omitempty"`
	// Entries is the number of entries of a directory.
	Entries int `json:"entries,omitempty"`
}

// UnitState is a systemd unit as `systemctl show` tells it.
type UnitState struct {
	Load   string `json:"load"`   // loaded, not-found, masked, …
	Active string `json:"active"` // active, inactive, failed, activating, …
	Sub    string `json:"sub,omitempty"`
	// File is the unit file state: enabled, disabled, static, masked, …
	File             string    `json:"file,omitempty"`
	NeedDaemonReload bool      `json:"needDaemonReload,omitempty"`
	Since            time.Time `json:"since,omitzero"` // when it became active; zero when it is not
}

// Listener is who listens on a port.
type Listener struct {
	Process string `json:"process,omitempty"`
	PID     int32  `json:"pid,omitempty"`
}

// Result of a command.
type Result struct {
	ExitCode int    `json:"exitCode"`
	Stdout   []byte `json:"stdout,omitempty"`
	Stderr   []byte `json:"stderr,omitempty"`
	// Stopped is the deadline of a CommandQuery that had not ended by then and was stopped: it has no answer, and nothing may be
	// concluded from the rest. It is 0 for a command that has ended by itself, whatever its exit code.
	Stopped time.Duration `json:"stopped,omitempty"`
}

// JournalEntry says that a node finished.
type JournalEntry struct {
	Run    string    `json:"run"`
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"`
}

// Update takes over everything that f2, a later and perhaps narrower observation of the same host, tells.
func (f *Facts) Update(f2 *Facts) {
	f.Taken, f.ClockSkew, f.System = f2.Taken, f2.ClockSkew, f2.System
	f.Journal, f.UndoEntries = f2.Journal, f2.UndoEntries
	f.Owner, f.OwnerUnreadable = f2.Owner, f2.OwnerUnreadable
	f.Serial, f.SerialUnreadable = f2.Serial, f2.SerialUnreadable
	f.Paths = overlay(f.Paths, f2.Paths)
	f.Blocks = overlay(f.Blocks, f2.Blocks)
	f.Units = overlay(f.Units, f2.Units)
	f.Sysctls = overlay(f.Sysctls, f2.Sysctls)
	f.Modules = overlay(f.Modules, f2.Modules)
	f.Packages = overlay(f.Packages, f2.Packages)
	f.Ports = overlay(f.Ports, f2.Ports)
	f.Commands = overlay(f.Commands, f2.Commands)
}

func overlay[K comparable, V any](a, b map[K]V) map[K]V {
	if a == nil {
		return b
	}
	maps.Copy(a, b)
	return a
}
