// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
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
	reader, end, err := a.show(about)
	if err != nil {
		return err
	}
	line, err := do(reader)
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, line)
	return err
}

// show returns a reader that shows what happens, and a function to be called when no more will. about says what a host is.
func (a *app) show(about func(host string) string) (event.Reader, func() error, error) {
	file, err := a.openLog()
	if err != nil {
		return nil, nil, err
	}
	counted, end, err := a.metricsReader()
	if err != nil {
		return nil, nil, err
	}
	var readers []event.Reader
	if counted != nil {
		readers = append(readers, counted)
	}
	if a.act != nil {
		readers = append(readers, a.act)
	}
	if file != nil {
		log, metered := jsonlog.New(file), end
		readers = append(readers, log)
		end = func() error { return errors.Join(metered(), log.Err(), file.Close()) }
	}
	if a.logFormat == formatJSON {
		return event.Readers(append(readers, jsonlog.New(a.Err))...), end, nil
	}
	mode := progress.Lines
	switch {
	case a.quiet:
		mode = progress.Quiet
	case a.Bars:
		mode = progress.Bars
	}
	shown := progress.New(a.Err, progress.Options{Mode: mode, About: about})
	return event.Readers(append(readers, shown)...), func() error { shown.Close(); return end() }, nil
}

// Levels of what is said beside a run, as the JSON log has them.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// note writes a line for a person, unless nothing is to be said.
func (a *app) note(line string) {
	if !a.quiet {
		a.say(levelInfo, line)
	}
}

// warn is note for a warning.
func (a *app) warn(text string) {
	if !a.quiet {
		a.say(levelWarn, "Warning: "+text)
	}
}

// said is what is said beside a run, as a line of the JSON log: with the fields that every line of it has where they apply.
type said struct {
	Timestamp string `json:"timestamp"`
	Level     string `json:"level"`
	Message   string `json:"message"`
}

// say writes a text to standard error, as --log-format has it.
func (a *app) say(level, text string) {
	if a.logFormat != formatJSON {
		_, _ = io.WriteString(a.Err, text+"\n") // a terminal that is gone is no reason to stop
		return
	}
	text = strings.TrimPrefix(strings.TrimSpace(text), map[string]string{levelWarn: "Warning: ", levelError: "Error: "}[level])
	log := json.NewEncoder(a.Err)
	log.SetEscapeHTML(false)
	if err := log.Encode(said{Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Level: level, Message: text}); err != nil {
		return // as above
	}
}
