// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

var (
	unitName    = regexp.MustCompile(`^[A-Za-z0-9:_.\\@-]+$`)
	sysctlName  = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_:@.-]+)+$`)
	packageName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+:~-]*(=[A-Za-z0-9_.+:~^-]+)?$`)
	plainName   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+:~-]*$`)
	blockName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 _./-]*$`)
	digestName  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	accountName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// protected are the directories that no claim and no removal may name, whatever else is true.
var protected = map[string]bool{
	"/": true, "/bin": true, "/boot": true, "/dev": true, "/etc": true, "/home": true, "/lib": true, "/lib64": true,
	"/media": true, "/mnt": true, "/opt": true, "/proc": true, "/root": true, "/run": true, "/sbin": true, "/srv": true,
	"/sys": true, "/tmp": true, "/usr": true, "/var": true, "/etc/systemd": true, "/etc/systemd/system": true,
	"/usr/bin": true, "/usr/lib": true, "/usr/local": true, "/usr/local/bin": true, "/usr/sbin": true, "/var/lib": true,
	"/var/log": true,
}

func checkPath(p string) error {
	switch {
	case !path.IsAbs(p):
		return fmt.Errorf("path %q is not absolute", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %q is not in its shortest form %q", p, path.Clean(p))
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("path %q has a control character", p)
	}
	return nil
}

func checkMade(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if p == "/" {
		return fmt.Errorf("path %q cannot be made", p)
	}
	return nil
}

func checkRemovable(p string) error {
	if err := checkPath(p); err != nil {
		return err
	}
	if protected[p] {
		return fmt.Errorf("path %q belongs to the system and must not be removed", p)
	}
	return nil
}

func match(what string, re *regexp.Regexp, values ...string) error {
	for _, v := range values {
		if !re.MatchString(v) {
			return fmt.Errorf("%s %q is not valid", what, v)
		}
	}
	return nil
}

// checkSysctls refuses names that are none, and those that would lead out of /proc/sys.
func checkSysctls(names ...string) error {
	for _, name := range names {
		if p := sysctlPath(name); path.Clean(p) != p {
			return fmt.Errorf("sysctl %q is not valid", name)
		}
	}
	return match("sysctl", sysctlName, names...)
}

func checkArgv(argv []string) error {
	for i, a := range argv {
		if strings.ContainsRune(a, 0) || i == 0 && a == "" {
			return fmt.Errorf("argument %d of command %q is not valid", i, argv[0])
		}
	}
	return nil
}

func checkQuery(q host.Query) error {
	for i, p := range q.Paths {
		if err := checkPath(p.Path); err != nil {
			return fmt.Errorf("paths[%d]: %w", i, err)
		}
		if p.Block != "" {
			if err := match("block", blockName, p.Block); err != nil {
				return fmt.Errorf("paths[%d]: %w", i, err)
			}
		}
	}
	for i, p := range q.Ports {
		if p < 1 || p > 65535 {
			return fmt.Errorf("ports[%d]: %d is not a port", i, p)
		}
	}
	for i, c := range q.Commands {
		if len(c.Argv) == 0 {
			return fmt.Errorf("commands[%d] (%s): no argv", i, c.ID)
		}
		if c.Timeout < 0 {
			return fmt.Errorf("commands[%d] (%s): a timeout of %s", i, c.ID, c.Timeout)
		}
		if err := checkArgv(c.Argv); err != nil {
			return fmt.Errorf("commands[%d] (%s): %w", i, c.ID, err)
		}
	}
	for _, err := range []error{
		match("unit", unitName, q.Units...), checkSysctls(q.Sysctls...),
		match("module", plainName, q.Modules...), match("package", plainName, q.Packages...),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkChange(c host.Change) error {
	switch c := c.(type) {
	case host.File:
		if c.Blob != "" {
			if err := match("blob", digestName, c.Blob); err != nil {
				return err
			}
			if !c.Content.IsZero() {
				return fmt.Errorf("both content and blob are given")
			}
		}
		if err := match("owner", accountName, c.Owner, c.Group); err != nil {
			return err
		}
		return checkMade(c.Path)
	case host.Directory:
		if err := match("owner", accountName, c.Owner, c.Group); err != nil {
			return err
		}
		return checkMade(c.Path)
	case host.Absent:
		return checkRemovable(c.Path)
	case host.Block:
		if strings.ContainsRune(c.Content, 0) {
			return fmt.Errorf("content has a NUL byte")
		}
		if err := match("block", blockName, c.Name); err != nil {
			return err
		}
		return checkMade(c.Path)
	case host.Unit:
		return checkUnit(c)
	case host.Sysctl:
		if strings.ContainsAny(c.Value, "\x00\n") {
			return fmt.Errorf("value %q is not valid", c.Value)
		}
		return checkSysctls(c.Name)
	case host.Module:
		return match("module", plainName, c.Name)
	case host.SwapOff:
		return nil
	case host.Package:
		if len(c.Names) == 0 {
			return fmt.Errorf("no package is named")
		}
		if err := match("blob", digestName, c.Blobs...); err != nil {
			return err
		}
		return match("package", packageName, c.Names...)
	case host.Claim:
		for _, p := range c.Paths {
			if err := checkRemovable(p); err != nil {
				return err
			}
		}
		return nil
	case host.Inherit:
		for _, p := range slices.Concat(c.Paths, c.Files) {
			if err := checkRemovable(p); err != nil {
				return err
			}
		}
		return match("unit", unitName, c.Units...)
	case host.Command:
		return checkCommand(c)
	}
	return fmt.Errorf("%T is not a change that this host knows", c)
}

func checkUnit(c host.Unit) error {
	switch c.Enabled {
	case "", "enabled", "disabled", "masked":
	default:
		return fmt.Errorf("enabled %q is none of enabled, disabled, masked", c.Enabled)
	}
	switch c.Active {
	case "", "started", "restarted", "reloaded", "stopped":
	case "left":
		if c.Enabled != "" {
			return fmt.Errorf("a unit that is left is not made %s", c.Enabled)
		}
	default:
		return fmt.Errorf("active %q is none of started, restarted, reloaded, stopped, left", c.Active)
	}
	return match("unit", unitName, c.Name)
}

func checkCommand(c host.Command) error {
	if len(c.Argv) == 0 && len(c.Undo) == 0 {
		return fmt.Errorf("neither argv nor undo is given")
	}
	if len(c.Argv) > 0 {
		if err := checkArgv(c.Argv); err != nil {
			return err
		}
	}
	if len(c.Undo) > 0 {
		if err := checkArgv(c.Undo); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
	}
	for _, e := range c.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("env %s is not NAME=value", strconv.Quote(name))
		}
	}
	return nil
}
