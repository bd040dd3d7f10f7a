// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

const (
	// apisAgain is for how long it holds what was found out: the metrics of an API server are long.
	apisAgain = time.Minute
	// apisTimeout bounds it: a reconcile waits for that.
	apisTimeout = 20 * time.Second
)

// askedAPIs is what was found out, for which version and when.
type askedAPIs struct {
	version string
	at      time.Time
	found   *snapshot.APIs
}

// askForAPIs finds out which APIs are in use that another version does not serve, while that is declared and has not begun.
func (r *KubexmControlPlaneReconciler) askForAPIs(ctx context.Context, s *scope) {
	id, version := s.Object.UID, s.Object.Spec.Version
	if !s.AsksForAPIs() || s.ControlPlane.Workload.Err != nil {
		r.keepAPIs(id, nil)
		return
	}
	r.mu.Lock()
	last, known := r.asked[id]
	r.mu.Unlock()
	if !known || last.version != version || s.Now.Sub(last.at).Abs() >= apisAgain {
		within, cancel := context.WithTimeout(ctx, apisTimeout)
		defer cancel()
		last = askedAPIs{version: version, at: s.Now, found: r.RemovedAPIs(within, s.kubeconfig, version)}
		r.keepAPIs(id, &last)
	}
	s.APIs = last.found
}

// keepAPIs keeps what was found out, or forgets it.
func (r *KubexmControlPlaneReconciler) keepAPIs(id types.UID, asked *askedAPIs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked == nil {
		delete(r.asked, id)
		return
	}
	if r.asked == nil {
		r.asked = map[types.UID]askedAPIs{}
	}
	r.asked[id] = *asked
}
