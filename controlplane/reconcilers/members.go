// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import "context"

// members publishes which hosts the control plane consists of, and which are to leave it. All of its hosts follow.
func (r *ControlPlane) members(_ context.Context, s *scope) error {
	s.Object.Status.Members, s.Object.Status.Leaving = s.Members(), s.Leaving()
	return nil
}

// leave lets those hosts go that nobody counts on any more.
func (r *ControlPlane) leave(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		if m.DeletionTimestamp.IsZero() || !s.MayTerminate(&m) {
			continue
		}
		if err := r.release(ctx, &m); err != nil {
			return err
		}
	}
	for i := range s.Configs {
		if config := &s.Configs[i]; config.Spec.HostRef.Name != "" && !config.DeletionTimestamp.IsZero() && s.MayLeave(config) {
			if err := r.release(ctx, config); err != nil {
				return err
			}
		}
	}
	return nil
}
