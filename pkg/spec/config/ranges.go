// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxRange is how many hosts one range may name: more is a slip of the finger.
const maxRange = 5000

var rangeSyntax = regexp.MustCompile(`^([^\[\]]*)\[([0-9]{1,9}):([0-9]{1,9})\]([^\[\]]*)$`)

// expandRange lists the names that a role group's entry stands for: a plain name for itself, node[5:7] for node5, node6
// and node7, and node[08:10] for node08, node09 and node10. Both ends are included.
func expandRange(entry string) ([]string, error) {
	if entry == "" {
		return nil, errors.New("is empty: use a host's name, or a range of names such as node[5:6]")
	}
	if !strings.ContainsAny(entry, "[]") {
		return []string{entry}, nil
	}
	parts := rangeSyntax.FindStringSubmatch(entry)
	if parts == nil {
		return nil, errors.New("is not a range of names: write name[first:last] with numbers, such as node[5:6]")
	}
	prefix, from, to, suffix := parts[1], parts[2], parts[3], parts[4]
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	if err := errors.Join(errFirst, errLast); err != nil {
		return nil, fmt.Errorf("is not a range of names: %w", err)
	}
	width := 0
	if padded(from) || padded(to) {
		if width = len(from); len(to) != width {
			return nil, fmt.Errorf("pads only one end with zeros: write both with the same number of digits, such as node[%0*d:%0*d]",
				max(len(from), len(to)), first, max(len(from), len(to)), last)
		}
	}
	switch {
	case first > last:
		return nil, fmt.Errorf("runs backwards: write %s[%s:%s]%s", prefix, to, from, suffix)
	case last-first >= maxRange:
		return nil, fmt.Errorf("names %d hosts: use at most %d in one range", last-first+1, maxRange)
	}
	names := make([]string, 0, last-first+1)
	for number := first; number <= last; number++ {
		names = append(names, fmt.Sprintf("%s%0*d%s", prefix, width, number, suffix))
	}
	return names, nil
}

func padded(number string) bool { return len(number) > 1 && number[0] == '0' }
