// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// What a host says of itself is bounded here, where it comes in, and nowhere else: strings by bytes, lists by entries.
const (
	maxID      = 128  // identifiers, accounts, units' states
	maxVersion = 256  // versions of packages, names of operating systems
	maxPath    = 4096 // PATH_MAX
	maxList    = 64   // devices, addresses, servers
	// maxSystemFile is how much of a file about the system is read, in bytes.
	maxSystemFile = 64 << 10
	maxCPUs       = 1 << 16
	maxMemory     = 1 << 53 // bytes; JSON numbers are exact up to there
	// lastSecond is in the year 6325: what is added to it can still be written as RFC 3339 has it, up to the year 9999.
	lastSecond = 1 << 37
)

// answer collects the frames of one observation.
type answer struct {
	o       *observation
	facts   *host.Facts
	files   map[string][]byte
	taken   time.Time // the host's clock
	booted  time.Time // when that clock's time since boot was 0
	arrived time.Time // ours when that was told
	units   []byte
	// addresses is what "ip -o addr" said.
	addresses []byte
}

func newAnswer(o *observation) *answer {
	return &answer{o: o, facts: &host.Facts{}, files: map[string][]byte{}}
}

// add takes one frame and reports whether it was part of an observation.
func (a *answer) add(f frame) bool {
	sys := &a.facts.System
	switch f.kind() {
	case "clock":
		a.arrived = time.Now()
		a.taken = parseSeconds(f.arg(1))
		a.booted = a.taken.Add(-time.Duration(parseFloat(f.arg(2)) * float64(time.Second)))
	case "machine":
		sys.Arch = host.Word(goarch(f.arg(1)), maxID)
	case "disk":
		size := parseInt(f.arg(3))
		sys.DiskFreeBytes, sys.DiskTotalBytes = product(parseInt(f.arg(1)), size), product(parseInt(f.arg(2)), size)
	case "container":
		sys.Container = host.Word(f.arg(1), maxID)
	case "addresses":
		a.addresses = f.body
		sys.Addresses = parseAddresses(f.body)
	case "resolves":
		sys.HostnameAddresses = parseResolves(f.body)
	case "tools":
		sys.Tools = map[string]bool{}
		for _, t := range f.words[1:min(len(f.words), maxList)] {
			sys.Tools[host.Word(t, maxID)] = true
		}
	case "cgroup":
		sys.CgroupVersion = int32(between(1, parseInt(f.arg(1)), 2))
	case "files":
		a.files = splitFiles(f.body, a.o.prefix)
	case "paths":
		a.paths(f.body)
	case "accounts":
		a.accounts(f.body)
	case "entries":
		a.path(firstLine(f.body), func(p *host.Path) { p.Entries = int(between(0, parseInt(f.arg(1)), math.MaxInt32)) })
	case "link":
		name, target, _ := bytes.Cut(f.body, []byte("\n"))
		a.path(string(name), func(p *host.Path) { p.Target = host.Text(string(target), maxPath) })
	case "digest":
		a.path(firstLine(f.body), func(p *host.Path) { p.Digest = host.Word(f.arg(1), maxID) })
	case "digests":
		a.digests(f.body)
	case "units":
		a.units = f.body
	case "module":
		if a.facts.Modules == nil {
			a.facts.Modules = map[string]bool{}
		}
		if slices.ContainsFunc(a.o.query.Modules, func(m string) bool { return strings.ReplaceAll(m, "-", "_") == f.arg(1) }) {
			a.facts.Modules[f.arg(1)] = true
		}
	case "packages":
		a.packages(f.body)
	case "ports":
		a.facts.Ports = parsePorts(f.body, a.o.query.Ports)
	case "stdout":
		a.command(f.arg(1), func(r *host.Result, _ host.CommandQuery) { r.Stdout = limit(f.body, host.MaxContent) })
	case "stderr":
		a.command(f.arg(1), func(r *host.Result, _ host.CommandQuery) { r.Stderr = limit(f.body, host.MaxContent) })
	case "exit":
		a.command(f.arg(1), func(r *host.Result, _ host.CommandQuery) { r.ExitCode = int(parseInt(f.arg(2))) })
	case "stopped":
		a.command(f.arg(1), func(r *host.Result, asked host.CommandQuery) { r.Stopped = asked.Limit() })
	case "stderrend":
	default:
		return false
	}
	return true
}

func (a *answer) path(name string, set func(*host.Path)) {
	if p, ok := a.facts.Paths[name]; ok {
		set(&p)
		a.facts.Paths[name] = p
	}
}

func (a *answer) command(number string, set func(r *host.Result, asked host.CommandQuery)) {
	i := int(parseInt(number))
	if i < 0 || i >= len(a.o.query.Commands) {
		return
	}
	asked := a.o.query.Commands[i]
	if a.facts.Commands == nil {
		a.facts.Commands = map[string]host.Result{}
	}
	r := a.facts.Commands[asked.ID]
	set(&r, asked)
	a.facts.Commands[asked.ID] = r
}

// paths reads lines of o_paths and fills in what was asked and is not there.
func (a *answer) paths(body []byte) {
	found := make(map[string]host.Path, len(a.o.query.Paths))
	for _, q := range a.o.query.Paths {
		found[q.Path] = host.Path{}
	}
	for line := range strings.Lines(string(body)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 7)
		if len(fields) != 7 {
			continue
		}
		mode, err := strconv.ParseUint(fields[0], 16, 32)
		if err != nil {
			continue
		}
		if _, asked := found[fields[6]]; !asked {
			continue
		}
		found[fields[6]] = host.Path{
			Exists: true, Mode: fileMode(uint32(mode)),
			Owner: account(fields[1]), Group: account(fields[2]), UID: number(fields[1]), GID: number(fields[2]),
			Size: max(0, parseInt(fields[3])), Modified: parseSeconds(fields[4]),
		}
	}
	a.facts.Paths = make(map[string]host.Path, len(a.o.query.Paths))
	for _, q := range a.o.query.Paths {
		a.facts.Paths[q.Path] = found[q.Path]
	}
}

// account is root's name, and the number of any other until accounts names it.
func account(number string) string {
	if number == "0" {
		return "root"
	}
	return host.Word(number, maxID)
}

// number is that of an account.
func number(text string) uint32 { return uint32(between(0, parseInt(text), math.MaxUint32)) }

// accounts gives the owners and groups of paths their names. One without a name keeps its number.
func (a *answer) accounts(body []byte) {
	users, groups := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(limit(body, maxSystemFile))) {
		if fields := strings.Fields(line); len(fields) == 4 {
			users[fields[0]], groups[fields[1]] = fields[2], fields[3]
		}
	}
	named := func(names map[string]string, number string) string {
		if name, ok := names[number]; ok && name != "UNKNOWN" {
			return host.Word(name, maxID)
		}
		return number
	}
	for name, p := range a.facts.Paths {
		p.Owner, p.Group = named(users, p.Owner), named(groups, p.Group)
		a.facts.Paths[name] = p
	}
}

// digests reads sha256sum's lines; one whose path holds a backslash starts with another and doubles them.
func (a *answer) digests(body []byte) {
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		escaped := strings.HasPrefix(line, "\\")
		sum, name, ok := strings.Cut(strings.TrimPrefix(line, "\\"), "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 {
			continue
		}
		if escaped {
			name = strings.ReplaceAll(name, "\\\\", "\\")
		}
		a.path(name, func(p *host.Path) { p.Digest = "sha256:" + sum })
	}
}

func (a *answer) packages(body []byte) {
	a.facts.Packages = map[string]string{}
	for _, p := range a.o.query.Packages {
		a.facts.Packages[p] = ""
	}
	for line := range strings.Lines(string(body)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "installed" {
			continue
		}
		if _, asked := a.facts.Packages[fields[1]]; asked {
			a.facts.Packages[fields[1]] = host.Word(fields[2], maxVersion)
		}
	}
}

// finish turns the files and lists that were read into facts. sent is when the script was sent.
func (a *answer) finish(sent time.Time) *host.Facts {
	f := a.facts
	f.Taken = a.taken
	if !a.taken.IsZero() {
		f.ClockSkew = a.taken.Sub(sent.Add(a.arrived.Sub(sent) / 2))
	}
	a.systemFromFiles()
	a.unitsFromList()
	a.contents()
	for _, s := range a.o.query.Sysctls {
		if f.Sysctls == nil {
			f.Sysctls = map[string]string{}
		}
		f.Sysctls[s] = host.Text(strings.TrimSuffix(string(a.files[sysctlPath(s)]), "\n"), maxPath)
	}
	a.modules()
	return f
}

func (a *answer) contents() {
	for _, q := range a.o.query.Paths {
		content, ok := a.files[q.Path]
		if !ok {
			continue
		}
		if q.Content && a.facts.Paths[q.Path].Mode.IsRegular() { // a link's is read for a block alone
			a.path(q.Path, func(p *host.Path) { p.Content = limit(content, host.MaxContent) })
		}
		if q.Block != "" {
			if block, ok := findBlock(string(content), q.Block); ok {
				if a.facts.Blocks == nil {
					a.facts.Blocks = map[string]string{}
				}
				a.facts.Blocks[q.Path+"#"+q.Block] = block
			}
		}
	}
}

// findBlock returns the lines between the marks of the block, each with its newline.
func findBlock(content, name string) (string, bool) {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(content) {
		switch text := strings.TrimSuffix(line, "\n"); {
		case !inside && text == "# BEGIN kubexm "+name:
			inside = true
		case inside && text == "# END kubexm "+name:
			return b.String(), true
		case inside:
			b.WriteString(line)
		}
	}
	return "", false
}

// modules adds what is built in and answers for each name as it was asked.
func (a *answer) modules() {
	if len(a.o.query.Modules) == 0 {
		return
	}
	loaded := a.facts.Modules
	asked := make(map[string]bool, len(a.o.query.Modules))
	for _, m := range a.o.query.Modules {
		asked[strings.ReplaceAll(m, "-", "_")] = true
	}
	builtin := map[string]bool{}
	for name, content := range a.files {
		if strings.HasSuffix(name, "/modules.builtin") {
			for line := range strings.Lines(string(content)) {
				base := strings.TrimSpace(line[strings.LastIndexByte(line, '/')+1:])
				base, _, _ = strings.Cut(base, ".ko")
				if base = strings.ReplaceAll(base, "-", "_"); asked[base] {
					builtin[base] = true
				}
			}
		}
	}
	for line := range strings.Lines(string(a.files["/proc/filesystems"])) {
		if fields := strings.Fields(line); len(fields) > 0 && asked[fields[len(fields)-1]] {
			builtin[fields[len(fields)-1]] = true
		}
	}
	a.facts.Modules = map[string]bool{}
	for _, m := range a.o.query.Modules {
		name := strings.ReplaceAll(m, "-", "_")
		a.facts.Modules[m] = loaded[name] || builtin[name]
	}
}

// splitFiles takes head's output apart. Each head is the disguised path, which no content holds.
func splitFiles(body []byte, prefix string) map[string][]byte {
	files := map[string][]byte{}
	open := []byte("==> " + prefix)
	at := 0
	// No observation asks for so many.
	if !bytes.HasPrefix(body, open) {
		return files
	}
	for at < len(body) && len(files) < maxEntries {
		rest := body[at+len(open):]
		end := bytes.Index(rest, []byte(" <==\n"))
		if end < 0 {
			break
		}
		name := string(rest[:end])
		content := rest[end+len(" <==\n"):]
		next := bytes.Index(content, append([]byte("\n"), open...))
		if next < 0 {
			files[name] = content
			break
		}
		files[name] = content[:next]
		at = len(body) - len(content) + next + 1
	}
	return files
}

// fileMode turns st_mode into io/fs's.
func fileMode(st uint32) fs.FileMode {
	mode := fs.FileMode(st & 0o777)
	switch st & 0o170000 {
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		mode |= fs.ModeDevice
	}
	for bit, m := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if st&bit != 0 {
			mode |= m
		}
	}
	return mode
}

// octal is the four-digit mode that chmod takes.
func octal(m fs.FileMode) string {
	n := uint32(m.Perm())
	for bit, mode := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&mode != 0 {
			n |= bit
		}
	}
	return fmt.Sprintf("%04o", n)
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}

func limit(b []byte, n int) []byte { return b[:min(len(b), n)] }

func parseInt(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// between is n, or the bound that it is beyond.
func between(least, n, most int64) int64 { return max(least, min(n, most)) }

// product is a times b, of amounts that cannot be negative and fit into an int64.
func product(a, b int64) int64 {
	if a <= 0 || b <= 0 || a > math.MaxInt64/b {
		return 0
	}
	return a * b
}

// parseSeconds reads seconds since 1970 with an optional fraction. What is no time that can be written down is none.
func parseSeconds(s string) time.Time {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 || seconds > lastSecond {
		return time.Time{}
	}
	return time.Unix(seconds, between(0, parseInt((fraction + "000000000")[:9]), 999_999_999)).UTC()
}
