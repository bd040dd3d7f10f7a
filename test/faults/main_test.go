// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// sudoPassword is that of the account sudopw. A shell would trip over it.
const sudoPassword = "c0rrect horse's \"$battery\" staple"

// What all tests share. They run one after the other.
var (
	pool *hosts.Pool
	// all has every host, and is not to be made as it is: see cluster.of. subject is the one that most tests make.
	all, subject *cluster
	chosen       settings
)

// settings are the environment's.
type settings struct {
	seed   uint64
	budget time.Duration // 0: everything
	subnet netip.Prefix
	bundle string
}

// share is how much of a budget each of the tests that kill may spend; what is left is for the others.
func (s settings) share() time.Duration { return s.budget / 3 }

func readSettings() (s settings, err error) {
	s.seed = rand.Uint64()
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return s, fmt.Errorf("FAULTS_SEED: %w", err)
		}
	}
	if text := os.Getenv("FAULTS_BUDGET"); text != "" {
		if s.budget, err = time.ParseDuration(text); err != nil {
			return s, fmt.Errorf("FAULTS_BUDGET: %w", err)
		}
	}
	if text := os.Getenv("FAULTS_SUBNET"); text != "" {
		if s.subnet, err = netip.ParsePrefix(text); err != nil {
			return s, fmt.Errorf("FAULTS_SUBNET: %w", err)
		}
	}
	s.bundle, err = filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")))
	return s, err
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run makes the hosts, runs the tests and removes the hosts.
func run(m *testing.M) (code int, err error) {
	if chosen, err = readSettings(); err != nil {
		return 1, err
	}
	fmt.Printf("FAULTS_SEED=%d\n", chosen.seed)
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	const name = "faults"
	// What an earlier run that was stopped has left.
	if err := hosts.Remove(ctx, name); err != nil {
		return 1, err
	}
	pool, err = hosts.Start(ctx, hosts.Options{
		Name: name, Count: 3, Subnet: chosen.subnet, Dir: dir, SudoPassword: sudoPassword,
		Log: func(format string, args ...any) { fmt.Printf(format+"\n", args...) },
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := pool.Stop(context.Background()); err == nil {
			err = stopErr
		}
	}()
	authorities, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		return 1, err
	}
	if err := writeAuthorities(dir, &authorities); err != nil {
		return 1, err
	}
	if all, err = openCluster(ctx, dir, chosen.bundle); err != nil {
		return 1, err
	}
	subject = all.of(spec.Cluster{}, spec.RoleControlPlane, spec.RoleWorker)
	return m.Run(), nil
}
