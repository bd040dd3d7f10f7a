// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonlog_test

import (
	"errors"
	"os"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
)

func Example() {
	log := jsonlog.New(os.Stdout)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log.Read(event.Event{
		Time: at, Type: event.Changed, Pipeline: "p1", Intent: "CreateCluster", Module: "kubernetes", Task: "kubelet",
		Step: "kubelet/start", Node: "n1/kubernetes/kubelet/kubelet/start", Host: "n1",
		Message: "unit kubelet.service: inactive → active", Duration: 1500 * time.Millisecond, Attempt: 1, Attempts: 3,
	})
	log.Read(event.Event{
		Time: at, Type: event.Waiting, Pipeline: "p1", Intent: "CreateCluster", Module: "cluster", Task: "api",
		Step: "await", Message: "api: connection refused",
	})
	log.Read(event.Event{
		Time: at, Type: event.RunEnded, Pipeline: "p1", Intent: "CreateCluster", Message: "1 host, 1 failed",
		Err: errors.New("CreateCluster of prod failed\nhost n1:\n  no route"),
	})
	// Output:
	// {"timestamp":"2026-01-02T03:04:05Z","level":"info","pipeline_id":"p1","module":"kubernetes","task":"kubelet","step":"kubelet/start","node":"n1","message":"unit kubelet.service: inactive → active","duration_ms":1500,"event":"Changed","pipeline":"CreateCluster","attempt":1,"attempts":3}
	// {"timestamp":"2026-01-02T03:04:05Z","level":"info","pipeline_id":"p1","module":"cluster","task":"api","step":"await","node":"controller","message":"api: connection refused","duration_ms":0,"event":"Waiting","pipeline":"CreateCluster"}
	// {"timestamp":"2026-01-02T03:04:05Z","level":"error","pipeline_id":"p1","message":"1 host, 1 failed","duration_ms":0,"event":"RunEnded","pipeline":"CreateCluster","error":"CreateCluster of prod failed\nhost n1:\n  no route"}
}
