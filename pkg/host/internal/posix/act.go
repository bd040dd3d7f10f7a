// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const (
	// kindCommand is the kind of a log entry whose undoing is an argument vector.
	kindCommand = "command"
	// kindPackage is the kind of one that says which packages came with it, which no earlier one does.
	kindPackage = "package"
)

// hundredths are a duration in the unit that the library counts in, rounded up.
func hundredths(d time.Duration) string {
	const unit = 10 * time.Millisecond
	return strconv.FormatInt(int64((d+unit-1)/unit), 10)
}

// actScript is the script of one act.
type actScript struct {
	*script
	run, node string
	logs      *logs
	// uses counts how many changes still want each staged digest, so that only the last takes it.
	uses map[string]int
}

// changes adds every change of a, in order.
func (s *actScript) changes(a host.Act) {
	s.uses = map[string]int{}
	for _, c := range a.Changes {
		if f, ok := c.(host.File); ok && f.Blob != "" {
			s.uses[f.Blob]++
		}
	}
	for i, c := range a.Changes {
		switch c := c.(type) {
		case host.File:
			s.begin(i, "file", c.Path)
			s.file(c)
		case host.Directory:
			s.begin(i, "directory", c.Path)
			s.call("c_directory", c.Path, field(c.Path), octal(c.Mode), owner(c.Owner, c.Group))
		case host.Absent:
			s.begin(i, "path", c.Path)
			s.call("c_absent", c.Path, field(c.Path))
		case host.Block:
			s.begin(i, "block", c.Name+" of "+c.Path)
			s.block(c)
		case host.Unit:
			s.begin(i, "unit", c.Name)
			s.call("c_unit", c.Name, field(c.Name), c.Enabled, c.Active, hundredths(c.Settle))
		case host.Sysctl:
			s.begin(i, "sysctl", c.Name)
			s.call("c_sysctl", field(c.Name), sysctlPath(c.Name), c.Value)
		case host.Module:
			name := strings.ReplaceAll(c.Name, "-", "_")
			s.begin(i, "module", c.Name)
			s.call("c_module", c.Name, name, witnesses[name])
		case host.SwapOff:
			s.begin(i, "swap", "")
			s.call("c_swapoff")
		case host.Package:
			s.packages(i, c)
		case host.Claim:
			for _, p := range c.Paths {
				s.begin(i, "claim", p)
				s.call("c_claim", append([]string{p, field(p)}, s.logs.claimed(p)...)...)
			}
		case host.Inherit:
			for _, p := range c.Paths {
				s.begin(i, "claim", p)
				s.call("c_inherit_path", "claim", field(p), p)
			}
			for _, p := range c.Files {
				s.begin(i, "file", p)
				s.call("c_inherit_path", "file", field(p), p)
			}
			for _, u := range c.Units {
				s.begin(i, "unit", u)
				s.call("c_inherit_unit", field(u))
			}
		case host.Command:
			s.command(i, c)
		}
	}
}

// begin starts change i and says whether what it replaces is saved already.
func (s *actScript) begin(i int, word, target string) {
	s.call("c_do", strconv.Itoa(i), strconv.Itoa(s.logs.recorded(s.run, s.node, word, target)))
}

// put defines c_put, which prints content. A process list does not show what a function of the shell prints.
func (s *actScript) put(content []byte) { s.line("c_put()", "{", printf(content)+";", "}") }

func (s *actScript) file(c host.File) {
	mode, own := octal(c.Mode), owner(c.Owner, c.Group)
	if c.Blob != "" {
		use := "take"
		if s.uses[c.Blob]--; s.uses[c.Blob] > 0 {
			use = "keep"
		}
		s.call("c_blob", c.Path, field(c.Path), mode, own, c.Blob, use)
		return
	}
	s.put(c.Content.Reveal())
	// A file of root's without execute bits is born with its mode. Any other gets it before it gets its name.
	umask, chmod := fmt.Sprintf("%04o", 0o666&^uint32(c.Mode.Perm())|0o111), "-"
	if own != "-" || c.Mode&^0o666 != 0 {
		umask, chmod = "0177", mode
	}
	s.call("c_file", c.Path, field(c.Path), mode, own, umask, chmod)
}

func (s *actScript) block(c host.Block) {
	content := ""
	if c.Content != "" {
		content = "# BEGIN kubexm " + c.Name + "\n" + strings.TrimSuffix(c.Content, "\n") + "\n# END kubexm " + c.Name + "\n"
	}
	s.put([]byte(content))
	s.call("c_block", c.Path, field(c.Path), c.Name, field(c.Name), field(c.Name+" of "+c.Path))
}

func (s *actScript) packages(i int, c host.Package) {
	names := slices.Sorted(slices.Values(c.Names))
	target := strings.Join(names, " ")
	s.begin(i, "packages", target)
	s.call("c_package", append([]string{field(target), strings.Join(c.Blobs, " ")}, names...)...)
}

func (s *actScript) command(i int, c host.Command) {
	recorded := 0
	if len(c.Undo) > 0 {
		recorded = s.logs.recorded(s.run, s.node, "command", c.Title)
	}
	s.call("c_do", strconv.Itoa(i), strconv.Itoa(recorded))
	if len(c.Undo) > 0 {
		words := []string{kindCommand, "command", field(c.Title)}
		for _, w := range c.Undo {
			words = append(words, field(w))
		}
		s.line(`[ "$W" -ne 0 ] || {`, "c_record", quoteAll(words)+`; c_try sync "$S/undo.log"; }`)
	}
	if len(c.Argv) == 0 {
		return
	}
	s.line("c_env()", "{", exports(c.Env), "}")
	s.put(c.Stdin.Reveal())
	s.line("STREAM=" + map[bool]string{true: "1", false: ""}[c.StdinStream])
	s.call("c_command", append([]string{hundredths(c.Timeout)}, c.Argv...)...)
}

// exports are the shell commands that set env.
func exports(env []string) string {
	var b strings.Builder
	b.WriteString(":;")
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		b.WriteString(" export " + name + "=" + quote(value) + ";")
	}
	return b.String()
}

// owner is user:group, or "-" for root's.
func owner(user, group string) string {
	if user == "" {
		user = "root"
	}
	if group == "" {
		group = "root"
	}
	if (user == "root" || user == "0") && (group == "root" || group == "0") {
		return "-"
	}
	return user + ":" + group
}

// secrets lists what no output of the act may show.
func secrets(a host.Act) []secret.Value {
	var values []secret.Value
	for _, c := range a.Changes {
		switch c := c.(type) {
		case host.File:
			values = append(values, c.Content)
		case host.Command:
			values = append(values, c.Stdin)
		}
	}
	return values
}

// checkActs refuses acts that cannot be meant.
func checkActs(acts []host.Act) (change string, err error) {
	if len(acts) == 0 {
		return "", fmt.Errorf("there is no act")
	}
	for _, a := range acts {
		if change, err := checkAct(a); err != nil {
			return change, err
		}
		if len(acts) > 1 && streams(a) {
			return "", fmt.Errorf("an act that is streamed to cannot share its exchange")
		}
	}
	return "", nil
}

// checkAct refuses an act that cannot be meant.
func checkAct(a host.Act) (change string, err error) {
	if a.Node == "" {
		return "", fmt.Errorf("the act has no node")
	}
	streams := 0
	for _, c := range a.Changes {
		if err := checkChange(c); err != nil {
			return c.Key(), err
		}
		if f, ok := c.(host.File); ok && f.Mode&^(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			return c.Key(), fmt.Errorf("mode %s is not that of a file", f.Mode)
		}
		if cmd, ok := c.(host.Command); ok && cmd.StdinStream {
			streams++
		}
	}
	if streams > 1 || streams == 1 && a.Stdin == nil {
		return "", fmt.Errorf("%d commands want the act's stream", streams)
	}
	return "", checkQuery(a.Verify)
}

// reach reports whether an act may have changed what the System facts tell.
func reach(a host.Act) bool {
	for _, c := range a.Changes {
		switch c := c.(type) {
		case host.Package, host.Command, host.SwapOff:
			return true
		case host.Unit:
			if slices.Contains(systemUnits, c.Name) {
				return true
			}
		case host.File:
			if slices.Contains(systemFiles, c.Path) {
				return true
			}
		}
	}
	return false
}
