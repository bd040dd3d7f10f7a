// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

func TestString(t *testing.T) {
	for _, tt := range []struct {
		e    event.Event
		want string
	}{
		{event.Event{Type: event.RunStarted, Intent: "CreateCluster", Message: "3 hosts"}, "CreateCluster RunStarted: 3 hosts"},
		{event.Event{Type: event.HostObserved, Host: "n1", Duration: 12 * time.Millisecond}, "n1 HostObserved 12ms"},
		{event.Event{
			Type: event.Failed, Host: "n1", Task: "kubelet", Step: "kubelet/start", Attempt: 3, Attempts: 3, Message: "exited 1",
		}, "n1 kubelet kubelet/start Failed (attempt 3 of 3): exited 1"},
		{event.Event{Type: event.Waiting, Task: "api", Step: "await", Message: "refused"}, "controller api await Waiting: refused"},
	} {
		if got := tt.e.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestReaders(t *testing.T) {
	var got []string
	reader := func(name string) event.Reader {
		return event.ReaderFunc(func(e event.Event) { got = append(got, name+e.Message) })
	}
	r := event.Readers(nil, reader("a"), nil, reader("b"))
	r.Read(event.Event{Message: "1"})
	r.Read(event.Event{Message: "2"})
	if len(got) != 4 || got[0] != "a1" || got[1] != "b1" || got[2] != "a2" || got[3] != "b2" {
		t.Errorf("got %v", got)
	}
}
