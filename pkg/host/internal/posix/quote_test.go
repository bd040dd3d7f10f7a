// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"os/exec"
	"strings"
	"testing"
)

// shell is what sh prints for script.
func shell(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sh: %v\n%s", err, script)
	}
	return string(out)
}

// FuzzQuote has a real shell read back what was quoted.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "it's", "$(id) `id` \\ \" \n\t", "-n", "\xff\xfe", "a'b'c''", "~/*?[x]", "\x00\x01", "%s%%\\n", "-\x00", "\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := shell(t, printf([]byte(s))); got != s {
			t.Errorf("content %q came back as %q", s, got)
		}
		if strings.ContainsRune(s, 0) {
			return // no word can hold it
		}
		if got := shell(t, "set -- "+quoteAll([]string{s, "end"})+"\nprintf '%s.%s.%s' \"$#\" \"$1\" \"$2\""); got != "2."+s+".end" {
			t.Errorf("word %q came back as %q", s, got)
		}
		back, err := unfield(field(s))
		if err != nil || back != s {
			t.Errorf("field %q came back as %q, %v", s, back, err)
		}
		if strings.ContainsAny(field(s), " \t\r\n;") {
			t.Errorf("field of %q is %q", s, field(s))
		}
	})
}
