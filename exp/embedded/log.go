// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"io"
	stdlog "log"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

// verbosity of what the manager and its reconcilers log: what Cluster API's own manifests set.
const verbosity = 2

// newLogger returns a logger in klog's text format.
func newLogger(w io.Writer) logr.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w), textlogger.Verbosity(verbosity)))
}

// process is where the loggers write that klog, controller-runtime and net/http (package log) have for the whole
// process. The first two are to be set once, before anything logs; what they write to is exchanged instead.
var process struct {
	set    sync.Once
	output sharedLog
}

// captureProcessLogs sends what libraries log without a logger of their own to log rather than to the terminal, until
// release. Of several planes in one process the last one has it. Afterwards such lines are dropped.
func captureProcessLogs(log *child.Log) (release func()) {
	process.output.current.Store(log)
	process.set.Do(func() {
		klog.SetLogger(newLogger(&process.output))
		ctrl.SetLogger(klog.NewKlogr())
		if stdlog.Writer() == os.Stderr { // else the program has decided
			stdlog.SetOutput(&process.output)
		}
	})
	return func() { process.output.current.CompareAndSwap(log, nil) }
}

// sharedLog is a writer whose target can be exchanged while it is written to.
type sharedLog struct {
	current atomic.Pointer[child.Log]
}

func (s *sharedLog) Write(p []byte) (int, error) {
	if log := s.current.Load(); log != nil {
		return log.Write(p)
	}
	return len(p), nil
}
