// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

const (
	// logLimit is the size in bytes at which a log is put aside as <path>.1, over the one that lay there.
	logLimit = 8 << 20
	// tailLines and tailBytes bound what an error quotes of a log.
	tailLines = 12
	tailBytes = 8 << 10
)

// Log is a file for text that grows, kept below twice logLimit. It may be written to by many at once.
type Log struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenLog opens path for appending, or creates it.
func OpenLog(path string) (*Log, error) {
	l := &Log{path: path}
	return l, l.open()
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p. After Close it drops p: who logs late must not fail for it.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	if l.size > 0 && l.size+int64(len(p)) > logLimit {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *Log) rotate() error {
	err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"))
	l.file = nil
	if err != nil {
		return err
	}
	return l.open()
}

// Close closes the file; a second time it does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Tail returns the last lines of a log, indented and with a heading, to be put after an error's text; "" if there are
// none.
func Tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	content, _ := io.ReadAll(f)
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return ""
	}
	lines := strings.Split(string(content), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("; the last lines of %s:\n\t%s", path, strings.Join(lines, "\n\t"))
}
