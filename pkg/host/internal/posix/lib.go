// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	_ "embed"
	"strings"
)

//go:embed lib/core.sh
var coreLib string

//go:embed lib/observe.sh
var observeLib string

//go:embed lib/session.sh
var sessionLib string

//go:embed lib/change.sh
var changeLib string

//go:embed lib/unit.sh
var unitLib string

//go:embed lib/package.sh
var packageLib string

//go:embed lib/undo.sh
var undoLib string

//go:embed lib/stage.sh
var stageLib string

// compact drops what the shell would skip anyway, so that it is not sent: comment lines and indentation. The library
// has no here-documents and no multi-line strings beside NL, which compact leaves alone.
func compact(lib string) string {
	var b strings.Builder
	for line := range strings.Lines(lib) {
		text := strings.TrimLeft(line, "\t")
		if strings.HasPrefix(text, "#") || text == "\n" {
			continue
		}
		b.WriteString(text)
	}
	return b.String()
}

// script is one sh script in the making.
type script struct{ strings.Builder }

// newScript starts a script that answers under mark and keeps its state in dir.
func newScript(mark, dir string, libs ...string) *script {
	s := &script{}
	s.line("N="+quote(mark), "S="+quote(dir))
	for _, lib := range libs {
		s.WriteString(compact(lib))
	}
	return s
}

// line adds one line of words, which must be quoted where they need it.
func (s *script) line(words ...string) {
	s.WriteString(strings.Join(words, " "))
	s.WriteByte('\n')
}

// call adds a call of a function of the library, whose arguments it quotes.
func (s *script) call(function string, args ...string) {
	s.WriteString(function)
	for _, a := range args {
		s.WriteByte(' ')
		s.WriteString(quote(a))
	}
	s.WriteByte('\n')
}
