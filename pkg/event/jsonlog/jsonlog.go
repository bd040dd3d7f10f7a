// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonlog writes events as a log: one JSON object per line.
package jsonlog

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// entry is one line. Timestamp to DurationMS are the fields that every line of the log has where they apply.
type entry struct {
	// Timestamp in RFC 3339, UTC.
	Timestamp string `json:"timestamp"`
	// Level is debug, info, warn or error.
	Level string `json:"level"`
	// PipelineID is the run's.
	PipelineID string `json:"pipeline_id"`
	Module     string `json:"module,omitempty"`
	Task       string `json:"task,omitempty"`
	Step       string `json:"step,omitempty"`
	// Node is the machine: its host name in the plan, or "controller".
	Node       string `json:"node,omitempty"`
	Message    string `json:"message"`
	DurationMS int64  `json:"duration_ms"`

	Event    event.Type `json:"event"`
	Pipeline string     `json:"pipeline"`
	// Cluster is the cluster's name, Holder who runs the pipeline. Plan and Hosts are of RunStarted and RunEnded: they make the log
	// a record of what was run where.
	Cluster  string   `json:"cluster,omitempty"`
	Holder   string   `json:"holder,omitempty"`
	Plan     string   `json:"plan,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	Attempt  int      `json:"attempt,omitempty"`
	Attempts int      `json:"attempts,omitempty"`
	DelayMS  int64    `json:"delay_ms,omitempty"`
	Done     int64    `json:"done,omitempty"`
	Total    int64    `json:"total,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Log is the reader. It may be given to several engines.
type Log struct {
	mu  sync.Mutex
	enc *json.Encoder
	err error
}

// New returns a reader that writes to w.
func New(w io.Writer) *Log {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &Log{enc: enc}
}

// Read writes e.
func (l *Log) Read(e event.Event) {
	line := entry{
		Timestamp: e.Time.UTC().Format(time.RFC3339Nano), Level: level(e), PipelineID: e.Pipeline,
		Module: e.Module, Task: e.Task, Step: e.Step, Node: e.Host, Message: e.Message,
		DurationMS: e.Duration.Milliseconds(), Event: e.Type, Pipeline: e.Intent,
		Cluster: e.Cluster, Holder: e.Holder, Plan: e.Plan, Hosts: e.Hosts,
		Attempt: e.Attempt, Attempts: e.Attempts, DelayMS: e.Delay.Milliseconds(), Done: e.Done, Total: e.Total,
	}
	if line.Node == "" && e.Step != "" {
		line.Node = "controller"
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	if line.Message == "" {
		line.Message = string(e.Type)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.enc.Encode(line); err != nil && l.err == nil {
		l.err = err
	}
}

// Err is the first error of the writer; a run does not fail because its log cannot be written.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func level(e event.Event) string {
	switch e.Type {
	case event.Failed:
		return "error"
	case event.Retrying, event.Blocked:
		return "warn"
	case event.Started, event.Progress, event.Skipped:
		return "debug"
	}
	if e.Err != nil {
		return "error"
	}
	return "info"
}
