// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/metrics"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
)

func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := metrics.New(r)
	if err != nil {
		t.Fatal(err)
	}
	ran := event.Event{Module: "os", Task: "sysctl", Step: "sysctl/set", Duration: 2 * time.Second}
	for typ, times := range map[event.Type]int{event.Changed: 3, event.Failed: 1, event.Skipped: 5} {
		for range times {
			ran.Type = typ
			m.Read(ran)
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

// TestHostsAreNoLabel: of steps that are one for each host, hosts with other names come to one series.
func TestHostsAreNoLabel(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := metrics.New(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n1", "b.example-2"} {
		for _, s := range []step.Step{
			gate.NodeReady(name), gate.NodeRegistered(name, "v1.36.3"), gate.Network(name, "kube-flannel", "kube-flannel-ds"),
		} {
			m.Read(event.Event{Type: event.Changed, Step: s.Meta().Name, Duration: time.Second})
		}
	}
	want := []string{
		"kubexm_step_duration_seconds{status=success step=gate/network} 2 in 2 s",
		"kubexm_step_duration_seconds{status=success step=gate/node} 4 in 4 s",
	}
	if diff := cmp.Diff(want, gather(t, r)); diff != "" {
		t.Error(diff)
	}
}

var (
	// stepLine is a step in a plan, and hostLine a host, as plans are printed.
	stepLine = regexp.MustCompile(`(?m)^  [a-z-]+/\S+ (\S+/\S+)`)
	hostLine = regexp.MustCompile(`(?m)^(\S+): \d+ nodes`)
)

// TestNoStepOfAPlanHasAHostsName: whatever step comes to have a host's name, its series has not.
func TestNoStepOfAPlanHasAHostsName(t *testing.T) {
	plans, err := filepath.Glob("../../pipeline/testdata/*.golden")
	if err != nil || len(plans) < 10 {
		t.Fatalf("the plans of the pipelines are not there: %v %v", plans, err)
	}
	named := 0
	for _, file := range plans {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := prometheus.NewPedanticRegistry()
		m, err := metrics.New(r)
		if err != nil {
			t.Fatal(err)
		}
		steps := stepLine.FindAllStringSubmatch(string(text), -1)
		for _, s := range steps {
			m.Read(event.Event{Type: event.Changed, Step: s[1]})
		}
		series := strings.Join(gather(t, r), "\n")
		for _, host := range hostLine.FindAllStringSubmatch(string(text), -1) {
			if host[1] == "controller" {
				continue
			}
			word := regexp.MustCompile(`\S*[/-]` + regexp.QuoteMeta(host[1]) + `(\}|-)`)
			if found := word.FindString(series); found != "" {
				t.Errorf("%s: a series has the name of the host %s: %s", file, host[1], found)
			}
			for _, s := range steps {
				if word.MatchString(s[1] + "}") {
					named++
				}
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d steps with a host's name were found in plans: this test does not see them", named)
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
