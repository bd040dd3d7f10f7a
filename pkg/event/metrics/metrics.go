// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts events for Prometheus.
package metrics

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// The values of the label status.
const (
	success  = "success"
	failure  = "failure"
	canceled = "canceled"
)

// Metrics is the reader. It may be given to several engines.
//
//	kubexm_pipeline_total{pipeline,status}               runs that ended
//	kubexm_pipeline_duration_seconds{pipeline,status}    from start to end
//	kubexm_step_duration_seconds{step,status}            of steps that were run, attempts and their delays included
//
// A pipeline is named by its intent in snake case ("create_cluster"), a step as in plans ("containerd/config"), without a host's name. The
// status of a pipeline is success, failure or canceled, that of a step success or failure. Hosts are no label: there may be thousands.
type Metrics struct {
	pipelines         *prometheus.CounterVec
	pipelineDurations *prometheus.HistogramVec
	stepDurations     *prometheus.HistogramVec
}

// New returns a reader whose metrics are registered with r.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		pipelines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubexm_pipeline_total", Help: "Pipelines that were run, by name and status.",
		}, []string{"pipeline", "status"}),
		pipelineDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubexm_pipeline_duration_seconds", Help: "How long pipelines took.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 15), // to 27 minutes
		}, []string{"pipeline", "status"}),
		stepDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubexm_step_duration_seconds", Help: "How long steps that were run took, attempts and delays included.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 16), // to 5 minutes
		}, []string{"step", "status"}),
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
		status := success
		switch {
		case errors.Is(e.Err, context.Canceled):
			status = canceled
		case e.Err != nil:
			status = failure
		}
		m.pipelines.WithLabelValues(snake(e.Intent), status).Inc()
		m.pipelineDurations.WithLabelValues(snake(e.Intent), status).Observe(e.Duration.Seconds())
	case event.RunStarted, event.HostObserved, event.Started, event.Progress, event.Waiting, event.Skipped,
		event.Retrying, event.Blocked, event.Undone:
	}
}

func (m *Metrics) step(e event.Event, status string) {
	m.stepDurations.WithLabelValues(general(e.Step), status).Observe(e.Duration.Seconds())
}

// ofHosts are steps of which plans have one for each host, with its name behind a dash.
var ofHosts = []string{"gate/network", "gate/node"}

// general is a step's name without the host's.
func general(step string) string {
	for _, name := range ofHosts {
		if strings.HasPrefix(step, name+"-") {
			return name
		}
	}
	return step
}

// word is where a word begins within a name in camel case; acronyms are one word.
var word = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// snake is a name in camel case in snake case: CreateCluster is create_cluster, WithdrawAPIServer withdraw_api_server.
func snake(name string) string {
	return strings.ToLower(word.ReplaceAllString(name, "${1}${3}_${2}${4}"))
}
