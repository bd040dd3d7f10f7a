// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/progress"
)

// showing runs do with a reader that shows what happens, as the flags say, and then prints the line that do returns.
func (a *app) showing(about func(host string) string, do func(event.Reader) (line string, err error)) error {
	reader, end := a.show(about)
	line, err := do(reader)
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, line)
	return err
}

// show returns a reader that shows what happens, and a function to be called when no more will. about says what a host is.
func (a *app) show(about func(host string) string) (event.Reader, func() error) {
	var readers []event.Reader
	if a.counted != nil {
		readers = append(readers, a.counted)
	}
	if a.act != nil {
		readers = append(readers, a.act)
	}
	end := func() error { return nil }
	if a.log != nil {
		log := jsonlog.New(a.log)
		readers, end = append(readers, log), log.Err
	}
	if a.logFormat == formatJSON {
		return event.Readers(append(readers, jsonlog.New(a.Err))...), end
	}
	mode := progress.Lines
	switch {
	case a.quiet:
		mode = progress.Quiet
	case a.Bars:
		mode = progress.Bars
	}
	shown := progress.New(a.Err, progress.Options{Mode: mode, About: about})
	return event.Readers(append(readers, shown)...), func() error { shown.Close(); return end() }
}

// Levels of what is said beside a run, as the JSON log has them.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// note writes a line for a person, unless nothing is to be said; the log file has it always.
func (a *app) note(line string) {
	if a.quiet {
		a.logSaid(levelInfo, line)
		return
	}
	a.say(levelInfo, line)
}

// warn is note for a warning.
func (a *app) warn(text string) {
	if a.quiet {
		a.logSaid(levelWarn, text)
		return
	}
	a.say(levelWarn, "Warning: "+text)
}

// said is what is said beside a run, as a line of the JSON log: with the fields that every line of it has where they apply.
type said struct {
	Timestamp string `json:"timestamp"`
	Level     string `json:"level"`
	Message   string `json:"message"`
}

// say writes a text to standard error, as --log-format has it, and to the log file.
func (a *app) say(level, text string) {
	a.logSaid(level, text)
	if a.logFormat != formatJSON {
		_, _ = io.WriteString(a.Err, text+"\n") // a terminal that is gone is no reason to stop
		return
	}
	_, _ = a.Err.Write(lineOf(level, text)) // as above
}

// logSaid writes a text to the log file alone.
func (a *app) logSaid(level, text string) {
	if a.log == nil {
		return
	}
	if _, err := a.log.Write(lineOf(level, text)); err != nil {
		a.logErr = err
	}
}

// lineOf is what is said as a line of the JSON log.
func lineOf(level, text string) []byte {
	text = strings.TrimPrefix(strings.TrimSpace(text), map[string]string{levelWarn: "Warning: ", levelError: "Error: "}[level])
	var line bytes.Buffer
	log := json.NewEncoder(&line)
	log.SetEscapeHTML(false)
	if err := log.Encode(said{Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Level: level, Message: text}); err != nil {
		return nil // of strings, to memory: it cannot be
	}
	return line.Bytes()
}
