// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/metrics"
)

func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := metrics.New(r)
	if err != nil {
		t.Fatal(err)
	}
	step := event.Event{Module: "os", Task: "sysctl", Step: "sysctl/set", Duration: 2 * time.Second}
	for typ, times := range map[event.Type]int{event.Changed: 3, event.Failed: 1, event.Skipped: 5} {
		for range times {
			step.Type = typ
			m.Read(step)
		}
	}
	m.Read(event.Event{Type: event.Failed, Host: "n1"}) // a host that could not be reached is no step
	for _, err := range []error{nil, nil, errors.New("broken"), fmt.Errorf("stopped: %w", context.Canceled)} {
		m.Read(event.Event{Type: event.RunEnded, Intent: "CreateCluster", Duration: time.Minute, Err: err})
	}
	want := []string{
		"kubexm_pipeline_duration_seconds{pipeline=create_cluster status=canceled} 1 in 60 s",
		"kubexm_pipeline_duration_seconds{pipeline=create_cluster status=failure} 1 in 60 s",
		"kubexm_pipeline_duration_seconds{pipeline=create_cluster status=success} 2 in 120 s",
		"kubexm_pipeline_total{pipeline=create_cluster status=canceled} 1",
		"kubexm_pipeline_total{pipeline=create_cluster status=failure} 1",
		"kubexm_pipeline_total{pipeline=create_cluster status=success} 2",
		"kubexm_step_duration_seconds{status=failure step=sysctl/set} 1 in 2 s",
		"kubexm_step_duration_seconds{status=success step=sysctl/set} 3 in 6 s",
	}
	if diff := cmp.Diff(want, gather(t, r)); diff != "" {
		t.Error(diff)
	}
	if _, err := metrics.New(r); err == nil {
		t.Error("the same metrics were registered twice")
	}
}

func gather(t *testing.T, r prometheus.Gatherer) []string {
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			text := fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, " "))
			if h := s.GetHistogram(); h != nil {
				all = append(all, fmt.Sprintf("%s %d in %.0f s", text, h.GetSampleCount(), h.GetSampleSum()))
			} else {
				all = append(all, fmt.Sprintf("%s %.0f", text, s.GetCounter().GetValue()))
			}
		}
	}
	slices.Sort(all)
	return all
}
