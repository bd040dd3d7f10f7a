// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Phase says what an entry is about.
type Phase string

// The phases of an act, in order.
const (
	Started Phase = "Started"
	Ran     Phase = "Ran"
	Ended   Phase = "Ended"
)

// Outcome is what an act or a pipeline came to.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "Succeeded"
	Failed    Outcome = "Failed"
	Canceled  Outcome = "Canceled"
)

// Entry is one line of the record.
type Entry struct {
	Timestamp time.Time `json:"timestamp"`
	Phase     Phase     `json:"phase"`
	// Act is the same in all entries of one act.
	Act string `json:"act"`

	// User, Origin (process and machine), Action ("create cluster") and Arguments are those of the act; of Started alone.
	User      string   `json:"user,omitempty"`
	Origin    string   `json:"origin,omitempty"`
	Action    string   `json:"action,omitempty"`
	Arguments []string `json:"arguments,omitempty"`

	// Cluster to Changed are of Ran: Pipeline is the intent ("JoinWorker"), PipelineID the id that the JSON log and the hosts'
	// journals have, Plan the plan's digest.
	Cluster    string   `json:"cluster,omitempty"`
	Pipeline   string   `json:"pipeline,omitempty"`
	PipelineID string   `json:"pipeline_id,omitempty"`
	Plan       string   `json:"plan,omitempty"`
	Hosts      []string `json:"hosts,omitempty"`
	Changed    int64    `json:"changed,omitempty"`

	// Outcome, DurationMS and Message (why it failed) are of Ran and Ended.
	Outcome    Outcome `json:"outcome,omitempty"`
	DurationMS int64   `json:"duration_ms,omitempty"`
	Message    string  `json:"message,omitempty"`

	// Previous is the digest of the line before, "" in the first line of all.
	Previous string `json:"previous,omitempty"`
}

const (
	// current is the file that is appended to; a full one is renamed to audit-<time>.log.
	current = "audit.log"
	// rotateAt is the size in bytes at which a file is full, keepFiles how many full ones are kept.
	rotateAt, keepFiles = 10 << 20, 10
)

// Log is a record in a directory. Several processes may append to it.
type Log struct {
	dir string
	// rotateAt is rotateAt, but in tests.
	rotateAt int64
}

// Open returns the record in dir, which is made by the first Append.
func Open(dir string) *Log { return &Log{dir: dir, rotateAt: rotateAt} }

// Append writes e, with the digest of the entry before it, and returns when it is on the disk.
func (l *Log) Append(e Entry) error {
	if err := l.append(e); err != nil {
		return fmt.Errorf("audit record in %s: %w", l.dir, err)
	}
	return nil
}

func (l *Log) append(e Entry) (err error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	// The lock is a file of its own: the record is renamed when it is full.
	lock, err := os.OpenFile(filepath.Join(l.dir, ".audit.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	files, err := l.files()
	if err != nil {
		return err
	}
	if len(files) > 0 {
		last, err := lastLine(files[len(files)-1])
		if err != nil {
			return err
		}
		e.Previous = digestOf(last)
	}
	if err := l.rotate(files, e.Timestamp); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(l.dir, current), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// rotate renames the current file if it is full, and removes the oldest of too many.
func (l *Log) rotate(files []string, now time.Time) error {
	path := filepath.Join(l.dir, current)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() < l.rotateAt {
		return err
	}
	if err := os.Rename(path, filepath.Join(l.dir, "audit-"+now.UTC().Format("20060102T150405.000000000")+".log")); err != nil {
		return err
	}
	for _, old := range files[:max(0, len(files)-keepFiles)] {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return nil
}

// files are those of the record, the oldest first.
func (l *Log) files() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.dir, "audit-*.log"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	path := filepath.Join(l.dir, current)
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// TamperedError says where the record is not what was written.
type TamperedError struct {
	// File and Line (from 1) name the first line that does not follow from the one before.
	File string
	Line int
	Why  string
}

func (e *TamperedError) Error() string {
	return fmt.Sprintf("%s line %d: %s: the record was changed after it was written", e.File, e.Line, e.Why)
}

// Read returns all entries, the oldest first, with nil if there is no record. If a line is no entry, or does not follow from the one
// before it, the error is a *TamperedError of the first such line. The entries are all that can be read, those after it as well: where a
// disk was full, half a line is left, and the record goes on.
func (l *Log) Read() ([]Entry, error) {
	files, err := l.files()
	if err != nil {
		return nil, err
	}
	var all []Entry
	var tampered error
	previous, first := "", true
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return all, err
		}
		number := 0
		lines := bufio.NewScanner(bytes.NewReader(content))
		lines.Buffer(nil, len(content)+1)
		for lines.Scan() {
			number++
			var e Entry
			var why string
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				why = "no entry"
			} else if all = append(all, e); !first && e.Previous != previous {
				// The files before the first one that is left may have been rotated away.
				why = "it does not follow from the line before"
			}
			if why != "" && tampered == nil {
				tampered = &TamperedError{File: path, Line: number, Why: why}
			}
			previous, first = digestOf(lines.Bytes()), false
		}
	}
	return all, tampered
}

func digestOf(line []byte) string {
	if len(line) == 0 {
		return ""
	}
	sum := sha256.Sum256(line)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// lastLine is the last line of a file, without its end. A line that was cut when the machine went down is ended by it.
func lastLine(path string) (_ []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return nil, err
	}
	const most = 1 << 20 // of a line
	tail := make([]byte, min(size, most))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	if tail[len(tail)-1] != '\n' {
		if _, err := f.WriteAt([]byte{'\n'}, size); err != nil {
			return nil, err
		}
	}
	tail = bytes.TrimSuffix(tail, []byte{'\n'})
	return tail[bytes.LastIndexByte(tail, '\n')+1:], nil
}
