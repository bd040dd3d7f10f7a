// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// section reads the text of one section of snapshot.sh's output into a snapshot.
type section struct {
	name  string
	parse func(s Snapshot, text string) error
}

// sections are in the order of parsing: sums complete what files found.
func sections() []section {
	return []section{
		{"files", parseFiles},
		{"sums", parseSums},
		{"units", parseUnits},
		{"sysctls", parseSysctls},
		{"mounts", parseMounts},
		{"iptables", ruleParser("iptables")},
		{"ip6tables", ruleParser("ip6tables")},
		{"nft", parseNFT},
		{"ipsets", nameParser("ipset")},
		{"links", parseLinks},
		{"addresses", parseAddresses},
		{"routes", objectParser("route")},
		{"rules", objectParser("rule")},
		{"accounts", accountParser("account")},
		{"groups", accountParser("group")},
		{"processes", nameParser("process")},
		{"cgroups", nameParser("cgroup")},
	}
}

// parseFiles reads find's lines: path, type, mode, owner, size, link target.
func parseFiles(s Snapshot, text string) error {
	kinds := map[string]string{
		"f": "file", "d": "directory", "l": "link", "s": "socket", "p": "pipe", "c": "device", "b": "device",
	}
	for _, line := range lines(text) {
		fields := strings.Split(line, "\t")
		if len(fields) == 5 { // lines loses the tab before an empty target
			fields = append(fields, "")
		}
		if len(fields) != 6 || kinds[fields[1]] == "" {
			return fmt.Errorf("line %q: want path, type, mode, owner, size and target", line)
		}
		path, kind, mode, owner, size, target := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
		value := fmt.Sprintf("%s %s %s", kinds[kind], mode, owner)
		switch {
		case kind == "f" && size != "-":
			value += " " + size + " bytes"
		case kind == "l":
			value = "link to " + target
		}
		if _, again := s["file"][path]; again {
			return fmt.Errorf("%s: %w", path, errTorn)
		}
		s.add("file", path, value)
	}
	return nil
}

// parseSums reads sha256sum's lines. A file that came after find's first pass has a
// sum and nothing else; the sum alone is recorded then.
func parseSums(s Snapshot, text string) error {
	summed := map[string]bool{}
	for _, line := range lines(text) {
		sum, path, ok := strings.Cut(line, "  ")
		if !ok || len(strings.TrimPrefix(sum, `\`)) != 64 {
			return fmt.Errorf("line %q: want a SHA-256 sum and a path", line)
		}
		if summed[path] {
			return fmt.Errorf("%s: %w", path, errTorn)
		}
		summed[path] = true
		value := "sha256 " + strings.TrimPrefix(sum, `\`)[:16]
		if s["file"][path] != "" {
			value = s["file"][path] + " " + value
		}
		if s["file"] == nil {
			s["file"] = map[string]string{}
		}
		s["file"][path] = value
	}
	return nil
}

// parseUnits reads systemctl's lines: unit, load, active and sub state, description.
func parseUnits(s Snapshot, text string) error {
	for _, line := range lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			return fmt.Errorf("line %q: want a unit and three states", line)
		}
		s.add("unit", fields[0], strings.Join(fields[1:4], " "))
	}
	return nil
}

// parseSysctls reads grep's lines: path, colon, one line of the value.
func parseSysctls(s Snapshot, text string) error {
	for _, line := range lines(text) {
		path, value, ok := strings.Cut(line, ":")
		name, below := strings.CutPrefix(path, "/proc/sys/")
		if !ok || !below {
			return fmt.Errorf("line %q: want a path in /proc/sys and a value", line)
		}
		s.add("sysctl", name, value)
	}
	return nil
}

// parseMounts reads /proc/PID/mountinfo (proc_pid_mountinfo(5)), leaving out the
// numbers of mounts, devices and peer groups, which differ from boot to boot.
func parseMounts(s Snapshot, text string) error {
	for _, line := range lines(text) {
		head, tail, ok := strings.Cut(line, " - ")
		fields := strings.Fields(head)
		if !ok || len(fields) < 6 {
			return fmt.Errorf("line %q: not of mountinfo's form", line)
		}
		value := []string{tail, "root " + fields[3], fields[5]}
		for _, propagation := range fields[6:] {
			kind, _, _ := strings.Cut(propagation, ":")
			value = append(value, kind)
		}
		s.add("mount", fields[4], strings.Join(value, ", "))
	}
	return nil
}

// link, and the fields of other objects below, are those of ip's JSON that tell what
// an administrator would have to change; the rest are counters and numbers.
type link struct {
	Name      string   `json:"ifname"`
	Flags     []string `json:"flags"`
	MTU       int      `json:"mtu"`
	Master    string   `json:"master"`
	Address   string   `json:"address"`
	Info      linkInfo `json:"linkinfo"`
	Addresses []struct {
		Family string `json:"family"`
		Local  string `json:"local"`
		Bits   int    `json:"prefixlen"`
		Scope  string `json:"scope"`
	} `json:"addr_info"`
}

type linkInfo struct {
	Kind string `json:"info_kind"`
}

func parseLinks(s Snapshot, text string) error {
	links, err := decodeLists[link](text)
	for _, link := range links {
		value := fmt.Sprintf("%s mtu %d address %s %s", link.Info.Kind, link.MTU, link.Address, strings.Join(link.Flags, ","))
		if link.Master != "" {
			value += " master " + link.Master
		}
		s.add("link", link.Name, strings.TrimSpace(value))
	}
	return err
}

func parseAddresses(s Snapshot, text string) error {
	links, err := decodeLists[link](text)
	for _, link := range links {
		for _, address := range link.Addresses {
			s.add("address", fmt.Sprintf("%s %s/%d", link.Name, address.Local, address.Bits), address.Family+" "+address.Scope)
		}
	}
	return err
}

// objectParser returns a parser of ip's JSON lists of which every object is a key.
func objectParser(section string) func(Snapshot, string) error {
	return func(s Snapshot, text string) error {
		objects, err := decodeLists[map[string]any](text)
		for _, object := range objects {
			for _, counter := range []string{"flags", "expires", "age", "used"} {
				delete(object, counter)
			}
			key, err := json.Marshal(object) // which sorts the names
			if err != nil {
				return err
			}
			s.add(section, string(key), "there")
		}
		return err
	}
}

// decodeLists reads any number of JSON lists, as several commands print them.
func decodeLists[T any](text string) ([]T, error) {
	var all []T
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		var list []T
		err := decoder.Decode(&list)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, list...)
	}
}

// accountParser returns a parser of passwd(5) and group(5).
func accountParser(section string) func(Snapshot, string) error {
	return func(s Snapshot, text string) error {
		for _, line := range lines(text) {
			name, rest, _ := strings.Cut(line, ":")
			s.add(section, name, rest)
		}
		return nil
	}
}

// nameParser returns a parser of lines that are a name each. How often a name
// occurs does not matter: servers keep as many processes as they like.
func nameParser(section string) func(Snapshot, string) error {
	return func(s Snapshot, text string) error {
		for _, name := range lines(text) {
			if s[section][name] == "" {
				s.add(section, name, "there")
			}
		}
		return nil
	}
}
