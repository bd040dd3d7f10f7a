// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Machine is the state of one machine. Its exported fields are set before the first Connect.
type Machine struct {
	// System is what observations tell; Swap and Modules change with what is done.
	System host.System
	// Available are the packages that can be installed, with their versions; others cannot.
	Available map[string]string
	// Accounts are the numbers of users, and of their groups of the same name. Who is not among them has the number 0, as root has.
	Accounts map[string]uint32
	// OnCommand answers Commands and command queries; nil lets each succeed without output. A query has its deadline as its
	// Timeout, and says with Result.Stopped that it was not over by then.
	OnCommand func(m *Machine, c host.Command) host.Result
	// OnChange, if not nil, is asked before each change is made; its error is the change's, as a *host.Error if it is one.
	OnChange func(node string, c host.Change) error
	// Latency of each exchange.
	Latency time.Duration

	name string

	mu       sync.Mutex
	tick     time.Duration // makes every change of a file a later one
	files    map[string]node
	units    map[string]host.UnitState
	sysctls  map[string]string
	modules  map[string]bool
	packages map[string]string
	staged   map[string][]byte
	journal  map[string]host.JournalEntry
	entries  []*entry
	seq      int
	writer   *session
	cutAt    int
	stats    Stats
}

// Stats is what a machine has been asked so far.
type Stats struct {
	// Exchanges counts as those of the real hosts do.
	Exchanges int64
	// BytesStaged is the content that was sent.
	BytesStaged int64
}

// node is one path.
type node struct {
	mode         fs.FileMode
	owner, group string
	content      string
	target       string
	modified     time.Time
}

var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a freshly installed machine.
func New(name string) *Machine {
	m := &Machine{
		name: name,
		System: host.System{
			Hostname: name, MachineID: idOf(name), OSID: "debian", OSVersion: "12", OSName: "Debian GNU/Linux 12 (bookworm)", Arch: "amd64", Kernel: "6.1.0-fake",
			CgroupVersion: 2, CPUs: 2, MemoryBytes: 4 << 30, DiskFreeBytes: 50 << 30, DiskTotalBytes: 60 << 30, User: "root", Root: true,
			BootTime: born, Addresses: []string{"10.0.0.1/24"}, DefaultInterface: "eth0", HostnameAddresses: []string{"10.0.0.1"},
			Nameservers: []string{"10.0.0.53"}, TimeSync: "chrony.service",
			Tools: map[string]bool{"zstd": true, "gzip": true},
		},
		files: map[string]node{}, units: map[string]host.UnitState{}, sysctls: map[string]string{}, modules: map[string]bool{},
		packages: map[string]string{}, staged: map[string][]byte{}, journal: map[string]host.JournalEntry{},
	}
	for _, d := range []string{
		"/", "/etc", "/etc/systemd", "/etc/systemd/system", "/usr", "/usr/local", "/usr/local/bin",
		"/var", "/var/lib", "/run", "/tmp", "/srv", "/opt",
	} {
		m.files[d] = node{mode: fs.ModeDir | 0o755, owner: "root", group: "root", modified: born}
	}
	return m
}

// idOf is the id of the machine of this name.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Put makes a file with its parents, as root's.
func (m *Machine) Put(file, content string, mode fs.FileMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d := path.Dir(file); d != "/"; d = path.Dir(d) {
		if _, ok := m.files[d]; !ok {
			m.files[d] = m.stamp(node{mode: fs.ModeDir | 0o755, owner: "root", group: "root"})
		}
	}
	m.files[file] = m.stamp(node{mode: mode, owner: "root", group: "root", content: content})
}

// Link makes a symbolic link.
func (m *Machine) Link(file, target string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[file] = m.stamp(node{mode: fs.ModeSymlink | 0o777, owner: "root", group: "root", target: target})
}

// Remove takes a path away, with what is below.
func (m *Machine) Remove(file string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(file)
}

// SetUnit sets what was there before anybody came, as SetSysctl does.
func (m *Machine) SetUnit(name string, state host.UnitState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units[name] = state
}

// SetSysctl gives the kernel a parameter; those that were never set do not exist.
func (m *Machine) SetSysctl(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sysctls[name] = value
}

// CutAt kills the session that changes the machine at its nth boundary, once; 0 disarms. Boundaries lie between saving,
// changing and journaling, as on a real host.
func (m *Machine) CutAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cutAt = n
}

// Stats tells what the machine was asked so far.
func (m *Machine) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// stamp gives n the time of its change.
func (m *Machine) stamp(n node) node {
	m.tick += time.Second
	n.modified = born.Add(m.tick)
	return n
}

// named is the name of an account that is given by its number.
func (m *Machine) named(account string) string {
	for name, number := range m.Accounts {
		if account == strconv.FormatUint(uint64(number), 10) {
			return name
		}
	}
	return rootOr(account)
}

// behind is the path to which links lead, p itself where it is none.
func (m *Machine) behind(p string) string {
	for range 40 { // as the kernel does
		n := m.files[p]
		if n.mode&fs.ModeSymlink == 0 {
			break
		}
		if p = path.Join(path.Dir(p), n.target); path.IsAbs(n.target) {
			p = path.Clean(n.target)
		}
	}
	return p
}

// below lists p and what lies in it.
func (m *Machine) below(p string) []string {
	var found []string
	for f := range m.files {
		if f == p || strings.HasPrefix(f, strings.TrimSuffix(p, "/")+"/") {
			found = append(found, f)
		}
	}
	slices.Sort(found)
	return found
}

func (m *Machine) remove(p string) {
	for _, f := range m.below(p) {
		delete(m.files, f)
	}
}

// tree is a copy of p and what lies in it.
func (m *Machine) tree(p string) map[string]node {
	t := map[string]node{}
	for _, f := range m.below(p) {
		t[f] = m.files[f]
	}
	return t
}

// restore makes p what t says, nothing if t is empty.
func (m *Machine) restore(p string, t map[string]node) {
	m.remove(p)
	maps.Copy(m.files, t)
}
