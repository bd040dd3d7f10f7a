// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"regexp"
	"strings"
)

// ruleParser returns a parser of iptables-save's output.
func ruleParser(section string) func(Snapshot, string) error {
	return func(s Snapshot, text string) error {
		table := ""
		for _, line := range lines(text) {
			switch line[0] {
			case '#':
			case '*':
				table = line[1:]
			case ':':
				chain, policy, _ := strings.Cut(line[1:], " ")
				policy, _, _ = strings.Cut(policy, " ")
				if policy != "ACCEPT" {
					s.add(section, table+" chain "+chain, "policy "+policy)
				}
			case '-':
				s.add(section, table+" "+line, "there")
			default:
				if line != "COMMIT" {
					return fmt.Errorf("line %q: not of iptables-save's form", line)
				}
			}
		}
		return nil
	}
}

// nftCounter is a counter in a rule, or the handle that a counter object has.
var nftCounter = regexp.MustCompile(` packets \d+ bytes \d+`)

// parseNFT reads `nft list ruleset`: tables at no indent, in them objects (chain, set,
// map …) at one tab, in those their content.
func parseNFT(s Snapshot, text string) error {
	var table, object string
	var content []string
	flush := func() {
		if object != "" && !letsAllPass(content) {
			s.add("nft", object, "there")
			for _, line := range content {
				s.add("nft", object+": "+line, "there")
			}
		}
		object, content = "", nil
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(nftCounter.ReplaceAllString(line, ""))
		indent := len(line) - len(strings.TrimLeft(line, "\t"))
		switch {
		case trimmed == "" || trimmed[0] == '#':
		case indent == 0 && trimmed == "}":
			table = ""
		case indent == 0:
			header, ok := strings.CutPrefix(trimmed, "table ")
			if !ok {
				return fmt.Errorf("line %q: want a table", trimmed)
			}
			table = strings.TrimSuffix(header, " {")
		case indent == 1 && trimmed == "}":
			flush()
		case indent == 1:
			object = table + " " + strings.TrimSuffix(trimmed, " {")
			if !strings.HasSuffix(trimmed, "{") {
				flush()
			}
		default:
			content = append(content, trimmed)
		}
	}
	if table != "" {
		return fmt.Errorf("table %q has no end", table)
	}
	return nil
}

// letsAllPass reports whether the content is that of a base chain which has no effect.
func letsAllPass(content []string) bool {
	return len(content) == 1 && strings.HasPrefix(content[0], "type ") && strings.HasSuffix(content[0], "policy accept;")
}
