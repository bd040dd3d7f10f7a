// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/fleet"
)

// The processes of a fleet, besides the one that plays its hosts.
const (
	childPlane   = "plane"   // the management cluster
	childManager = "manager" // our reconcilers
)

// scenery is a fleet in its plane, and the hosts of it.
type scenery struct {
	*lab
	*fleet.Fleet
	crowd *crowd
	hosts []fleet.Host
	// machines are on the first of them.
	machines int
	dir      string
	// manager is the one that runs, if any.
	manager *manager
	rounds  int
}

// withFleet starts a plane and plays so many hosts, of which there are no Machines yet.
func (l *lab) withFleet(ctx context.Context, originals []string, size int, use func(*scenery) error) (err error) {
	if err := l.clean(ctx, originals, cleanSettings); err != nil {
		return err
	}
	bundle, err := artifact.Open(ctx, l.options.bundle, nil)
	if err != nil {
		return fmt.Errorf("%w; make artifacts makes it", err)
	}
	s := &scenery{lab: l}
	if s.dir, err = os.MkdirTemp(l.dir, "fleet-"); err != nil {
		return err
	}
	plane := fleet.Plane{Dir: filepath.Join(s.dir, "plane"), Hosts: size}
	for _, p := range []struct {
		component, name string
		path            *string
	}{
		{"etcd", "etcd", &plane.Etcd}, {artifact.Kubernetes, "kube-apiserver", &plane.APIServer},
		{artifact.Kubernetes, "kube-controller-manager", &plane.ControllerManager},
	} {
		found, err := bundle.Binary(p.component, "", runtime.GOARCH, p.name)
		if err != nil {
			return err
		}
		*p.path = found.Path
	}
	ended, err := startPlane(ctx, plane)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended()) }()
	// One that is recorded is the control plane's, the other a worker.
	if s.crowd, err = l.newCrowd(ctx, size-len(originals), originals...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.crowd.close()) }()
	key, err := os.ReadFile(s.crowd.scene.KeyPath)
	if err != nil {
		return err
	}
	for i, h := range s.crowd.scene.Hosts {
		s.hosts = append(s.hosts, fleet.Host{
			Name: h.Name, Address: fmt.Sprintf("10.99.%d.%d", i/250, i%250+1), User: h.User, Key: string(key), HostKey: h.HostKey,
			Internal: s.crowd.scene.Originals[min(i, len(originals)-1)].Address,
		})
	}
	if s.Fleet, err = fleet.New(plane.Dir, bundle.Version(artifact.Kubernetes)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stopManager()) }()
	return use(s)
}

// startPlane returns when the plane is ready, with what ends it.
func startPlane(ctx context.Context, p fleet.Plane) (end func() error, err error) {
	cmd, in, out, err := child(ctx, childPlane)
	if err != nil {
		return nil, err
	}
	end = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	var ready string
	if err := errors.Join(json.NewEncoder(in).Encode(p), json.NewDecoder(out).Decode(&ready)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// quietFor is for how long nothing must have been reconciled for a manager to be at rest.
const quietFor = 10 * time.Second

// managerScene is what a manager's process is given.
type managerScene struct {
	fleet.Manager
	// Hosts are how the played hosts are reached, by the addresses that KubexmHosts have.
	Hosts map[string]crowdHost
}

// serveManager is the process of a manager.
func serveManager(ctx context.Context, in io.Reader, out io.Writer) error {
	input := json.NewDecoder(in)
	var scene managerScene
	if err := input.Decode(&scene); err != nil {
		return err
	}
	return scene.Serve(ctx, fleet.Hosts{
		Dial: func(ctx context.Context, c hostssh.Config) (host.Host, error) {
			h := scene.Hosts[c.Address]
			c.Address, c.Port = h.Address, int32(h.Port)
			return reconcilers.DialSSH(ctx, c)
		},
		Plan: func(n pipeline.Node, _ *artifact.Bundle) (*plan.Plan, error) {
			return settingsPlan([]string{n.Target.Host.Name})
		},
	}, input, out)
}

// manager is a process with a manager.
type manager struct {
	in     io.WriteCloser
	answer *json.Decoder
	wait   func() error
}

// startManager replaces the manager that runs.
func (s *scenery) startManager(ctx context.Context, m fleet.Manager) error {
	if err := s.stopManager(); err != nil {
		return err
	}
	s.rounds++
	m.Kubeconfig, m.Log = filepath.Join(s.dir, "plane", "kubeconfig"), filepath.Join(s.dir, fmt.Sprintf("manager-%d.log", s.rounds))
	scene := managerScene{Manager: m, Hosts: map[string]crowdHost{}}
	for i, h := range s.hosts {
		scene.Hosts[h.Address] = s.crowd.scene.Hosts[i]
	}
	cmd, in, out, err := child(ctx, childManager)
	if err != nil {
		return err
	}
	s.manager = &manager{in: in, answer: json.NewDecoder(out), wait: cmd.Wait}
	return json.NewEncoder(in).Encode(scene)
}

func (s *scenery) stopManager() error {
	if s.manager == nil {
		return nil
	}
	m := s.manager
	s.manager = nil
	return errors.Join(m.in.Close(), m.wait())
}

// cost is what the manager has cost so far, as far as it is asked for.
func (m *manager) cost(what fleet.Question) (c fleet.Cost, err error) {
	if err := json.NewEncoder(m.in).Encode(what); err != nil {
		return c, err
	}
	return c, m.answer.Decode(&c)
}

// until returns all of the cost when its counts are enough.
func (s *scenery) until(ctx context.Context, enough func(fleet.Cost) bool) (fleet.Cost, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := s.manager.cost(fleet.Count); err != nil {
			return c, err
		} else if enough(c) {
			return s.manager.cost(fleet.All)
		}
		select {
		case <-ctx.Done():
			return fleet.Cost{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// quiet waits until nothing is reconciled any more, and says how long ago that was.
func (s *scenery) quiet(ctx context.Context) (cost fleet.Cost, ago time.Duration, err error) {
	reconciles, since := -1.0, time.Now()
	cost, err = s.until(ctx, func(c fleet.Cost) bool {
		if c.Reconciles != reconciles {
			reconciles, since = c.Reconciles, time.Now()
		}
		return reconciles > 0 && time.Since(since) >= quietFor
	})
	return cost, time.Since(since), err
}
