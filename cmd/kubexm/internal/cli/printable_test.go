// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"
)

// TestHostsDoNotControlTerminals: what a command has printed on a host goes to a terminal without control characters, and to a file
// or a pipe as it is.
func TestHostsDoNotControlTerminals(t *testing.T) {
	printed := ran{Host: "node1", Stdout: "\x1b]52;c;ZXZpbA==\aok\tfine\n", Stderr: "\x1b[2Jgone\n"}
	for plain, want := range map[bool][2]string{
		true:  {"node1: ]52;c;ZXZpbA==ok\tfine\n", "node1: [2Jgone\n"},
		false: {"node1: \x1b]52;c;ZXZpbA==\aok\tfine\n", "node1: \x1b[2Jgone\n"},
	} {
		var out, err bytes.Buffer
		(&app{Streams: Streams{Out: &out, Err: &err, Plain: plain}}).showRan(printed)
		if out.String() != want[0] || err.String() != want[1] {
			t.Errorf("a terminal %v: %q and %q", plain, out.String(), err.String())
		}
	}
}
