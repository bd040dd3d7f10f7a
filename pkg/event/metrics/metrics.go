// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts events for Prometheus.
package metrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// Results, as the label of that name.
const (
	success  = "success"
	failure  = "failure"
	canceled = "canceled"
)

// Metrics is the reader. It may be given to several engines.
//
//	kubexm_pipeline_total{intent,result}                     runs that ended
//	kubexm_pipeline_duration_seconds{intent,result}          from start to end
//	kubexm_step_duration_seconds{module,task,step,result}    of steps that were run, attempts and their delays included
//
// The result of a pipeline is success, failure or canceled, that of a step success or failure. Hosts are no label: there
// may be thousands.
type Metrics struct {
	pipelines         *prometheus.CounterVec
	pipelineDurations *prometheus.HistogramVec
	stepDurations     *prometheus.HistogramVec
}

// New returns a reader whose metrics are registered with r.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		pipelines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubexm_pipeline_total", Help: "Pipelines that were run, by intent and result.",
		}, []string{"intent", "result"}),
		pipelineDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubexm_pipeline_duration_seconds", Help: "How long pipelines took.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 15), // to 27 minutes
		}, []string{"intent", "result"}),
		stepDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubexm_step_duration_seconds", Help: "How long steps that were run took, attempts and delays included.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 16), // to 5 minutes
		}, []string{"module", "task", "step", "result"}),
	}
	for _, c := range []prometheus.Collector{m.pipelines, m.pipelineDurations, m.stepDurations} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Read counts e.
func (m *Metrics) Read(e event.Event) {
	switch e.Type {
	case event.Changed:
		m.step(e, success)
	case event.Failed:
		if e.Step != "" {
			m.step(e, failure)
		}
	case event.RunEnded:
		result := success
		switch {
		case errors.Is(e.Err, context.Canceled):
			result = canceled
		case e.Err != nil:
			result = failure
		}
		m.pipelines.WithLabelValues(e.Intent, result).Inc()
		m.pipelineDurations.WithLabelValues(e.Intent, result).Observe(e.Duration.Seconds())
	case event.RunStarted, event.HostObserved, event.Started, event.Progress, event.Waiting, event.Skipped,
		event.Retrying, event.Blocked, event.Undone:
	}
}

func (m *Metrics) step(e event.Event, result string) {
	m.stepDurations.WithLabelValues(e.Module, e.Task, e.Step, result).Observe(e.Duration.Seconds())
}
