// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// cluster is a cluster's API in memory.
type cluster struct {
	mu sync.Mutex
	// unhealthy is how often the API does not answer yet; below zero, never.
	unhealthy int
	// applyErr is what the next applies return.
	applyErr []error
	applied  map[string]bool
	tokens   int
	calls    []string
	asked    chan struct{} // closed when Healthy was asked for the first time
	absent   bool          // it cannot be reached
	// turn is whose it is, and version how often it was taken. Silent is how often nobody answers who is asked for it; passes, after how
	// many questions it ends, and lost, after how many it is n3's.
	turn                          string
	version, passes, lost, silent int
	renewed                       func(version int)
}

const tokenValue = "abcdef.0123456789abcdef"

func (c *cluster) Healthy(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked != nil {
		close(c.asked)
		c.asked = nil
	}
	if c.unhealthy == 0 {
		return nil
	}
	c.unhealthy--
	return errors.New("connection refused")
}

func (c *cluster) NodeReady(context.Context, string) error { return nil }

func (c *cluster) NetworkReady(context.Context, string, string, string) error { return nil }

func (c *cluster) NodeVersion(context.Context, string, string) error { return nil }

func (c *cluster) NodeRegistered(context.Context, string, string) error { return nil }

func (c *cluster) DrainNode(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "drain "+name)
	return c.fails()
}

func (c *cluster) TakeTurn(_ context.Context, group string, want, over step.Turn) (step.Turn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent != 0 {
		c.silent--
		return step.Turn{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if c.passes--; c.passes == 0 {
		c.turn = ""
	}
	if c.lost--; c.lost == 0 {
		c.turn = "n3"
	}
	if c.turn == "" || c.turn == want.Holder || over.Version == fmt.Sprint(c.version) {
		if c.turn != want.Holder {
			c.calls = append(c.calls, "turn "+group+" of "+want.Holder)
		}
		c.turn = want.Holder
		c.version++
		if c.renewed != nil {
			c.renewed(c.version)
		}
	}
	return step.Turn{Holder: c.turn, Term: want.Term, Version: fmt.Sprint(c.version)}, nil
}

func (c *cluster) HasTurn(_ context.Context, _, holder string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn == holder, nil
}

func (c *cluster) EndTurn(_ context.Context, group, holder string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "end turn "+group+" of "+holder)
	if c.turn == holder {
		c.turn = ""
	}
	return nil
}

func (c *cluster) NodeInMaintenance(context.Context, string) (bool, error) { return false, nil }

func (c *cluster) EndMaintenance(_ context.Context, name string, _ []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "release "+name)
	return c.fails()
}

func (c *cluster) NodeMetadataDiffers(context.Context, string, map[string]string, []corev1.Taint) (step.Diff, error) {
	return nil, nil
}

func (c *cluster) SetNodeMetadata(context.Context, string, map[string]string, []corev1.Taint) error {
	return nil
}

// fails is what the next change of the cluster comes to.
func (c *cluster) fails() error {
	if len(c.applyErr) == 0 {
		return nil
	}
	err := c.applyErr[0]
	c.applyErr = c.applyErr[1:]
	return err
}

func (c *cluster) Differs(_ context.Context, manifest []byte) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied[string(manifest)] {
		return nil, nil
	}
	return []string{"ConfigMap " + string(manifest)}, nil
}

func (c *cluster) Apply(_ context.Context, manifest []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "apply "+string(manifest))
	if len(c.applyErr) > 0 {
		err := c.applyErr[0]
		c.applyErr = c.applyErr[1:]
		if err == errPanic {
			panic("the applier is broken")
		}
		return err
	}
	if c.applied == nil {
		c.applied = map[string]bool{}
	}
	c.applied[string(manifest)] = true
	return nil
}

var errPanic = errors.New("panic")

func (c *cluster) Token(context.Context, time.Duration) (secret.Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	return secret.New(tokenValue), nil
}

func (c *cluster) ReleaseDiffers(context.Context, step.HelmRelease) (string, error) { return "", nil }

func (c *cluster) InstallRelease(context.Context, step.HelmRelease) error { return nil }

func (c *cluster) DeploymentRolledOut(context.Context, string, string) error { return nil }

func (c *cluster) AddonsBeside(context.Context, []string) ([]string, error) { return nil, nil }

func (c *cluster) UninstallAddons(context.Context, []string) error { return nil }
