// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Cost is what a manager's process has cost so far.
type Cost struct {
	// Calls of the API, by verb and kind of object, such as "get secrets".
	Calls map[string]int
	// Exchanges with hosts.
	Exchanges int64
	// Reconciles of all controllers.
	Reconciles float64
	// Processors is processor time.
	Processors time.Duration
	// Heap is what lives, if garbage was collected before; Resident is memory as the kernel has it now, Peak the most that it was.
	// All in MiB.
	Heap, Resident, Peak float64
	Goroutines           int
}

// Since is what was added since an earlier time. Memory is as it is now.
func (c Cost) Since(before Cost) Cost {
	c.Exchanges -= before.Exchanges
	c.Reconciles -= before.Reconciles
	c.Processors -= before.Processors
	c.Calls = maps.Clone(c.Calls)
	for call, n := range before.Calls {
		if c.Calls[call] -= n; c.Calls[call] == 0 {
			delete(c.Calls, call)
		}
	}
	return c
}

// CallsOf counts calls with one of these verbs.
func (c Cost) CallsOf(verbs ...string) int {
	total := 0
	for call, n := range c.Calls {
		if verb, _, _ := strings.Cut(call, " "); slices.Contains(verbs, verb) {
			total += n
		}
	}
	return total
}

// meter counts.
type meter struct {
	calls     calls
	exchanges atomic.Int64
	// reconciles has controller-runtime's counter of them alone: to gather all of its metrics costs more than many a reconcile.
	reconciles *prometheus.Registry
}

func newMeter() (*meter, error) {
	// Who registers a second counter of that name is given the first: the package that has it is internal.
	var known prometheus.AlreadyRegisteredError
	err := metrics.Registry.Register(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "controller_runtime_reconcile_total", Help: "Total number of reconciliations per controller",
	}, []string{"controller", "result"}))
	if !errors.As(err, &known) {
		return nil, fmt.Errorf("controller-runtime does not count reconciles as it did: %w", err)
	}
	m := &meter{reconciles: prometheus.NewRegistry()}
	return m, m.reconciles.Register(known.ExistingCollector)
}

// count is what can be counted at no cost: Reconciles and Exchanges.
func (m *meter) count() (Cost, error) {
	c := Cost{Exchanges: m.exchanges.Load()}
	families, err := m.reconciles.Gather()
	if err != nil {
		return c, err
	}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			c.Reconciles += series.GetCounter().GetValue()
		}
	}
	return c, nil
}

// read is all. If garbage is collected before, what is returned to the kernel does not count any more.
func (m *meter) read(collect bool) (Cost, error) {
	if collect {
		debug.FreeOSMemory()
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return Cost{}, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	c, err := m.count()
	if err != nil {
		return c, err
	}
	c.Calls, c.Goroutines = m.calls.read(), runtime.NumGoroutine()
	c.Processors = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	c.Heap = float64(memory.HeapAlloc) / (1 << 20)
	if c.Resident, err = Memory("VmRSS"); err != nil {
		return Cost{}, err
	}
	c.Peak, err = Memory("VmHWM")
	return c, err
}

// Memory is a line of this process's status (proc(5)), in MiB. (What getrusage(2) tells of its peak is inherited.)
func Memory(line string) (float64, error) {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kibi float64
		if n, _ := fmt.Sscanf(lines.Text(), line+": %f kB", &kibi); n == 1 {
			return kibi / 1024, nil
		}
	}
	return 0, errors.New("the kernel does not tell this process's " + line)
}

// calls are counted by verb and kind of object.
type calls struct {
	mu   sync.Mutex
	made map[string]int
}

func (c *calls) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]int{}
	}
	c.made[call]++
}

func (c *calls) read() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

// counted counts requests to an API server.
type counted struct {
	next  http.RoundTripper
	calls *calls
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.add(callOf(r.Method, r.URL))
	return c.next.RoundTrip(r)
}

// callOf is a request's verb, as audit logs and roles have it, and the kind of object.
func callOf(method string, u *url.URL) string {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return "discover " + parts[0]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	kind := parts[0]
	if len(parts) > 2 {
		kind += "/" + parts[2]
	}
	switch {
	case method != http.MethodGet:
		return map[string]string{
			http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		}[method] + " " + kind
	case u.Query().Get("watch") == "true":
		return "watch " + kind
	case len(parts) > 1:
		return "get " + kind
	}
	return "list " + kind
}
