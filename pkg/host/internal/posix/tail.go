// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"bytes"
	"strings"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// tail is an io.Writer that keeps the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	bytes []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - t.limit; over > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.bytes))
}

// redact removes from output whatever of the secrets appears in it: each as a whole and each of its lines that is long
// enough to be more than a common word.
func redact(output string, secrets []secret.Value) string {
	const telling = 6
	for _, s := range secrets {
		content := s.Reveal()
		for _, part := range append([][]byte{content}, bytes.Split(content, []byte("\n"))...) {
			if part = bytes.TrimSpace(part); len(part) >= telling {
				output = strings.ReplaceAll(output, string(part), secret.Redacted)
			}
		}
	}
	return output
}
