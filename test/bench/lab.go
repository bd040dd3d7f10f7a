// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// lab is where experiments find their hosts.
type lab struct {
	options options
	pool    *hosts.Pool
	// dir is of temporary files, the pool's among them.
	dir string
	// cluster is brought up when the first experiment asks for it.
	cluster *cluster
	began   time.Time
}

// openLab starts the hosts of all experiments.
func openLab(ctx context.Context, o options, chosen []experiment) (*lab, error) {
	if _, err := exec.LookPath("ssh"); err != nil {
		return nil, fmt.Errorf("the references need OpenSSH's client: %w", err)
	}
	l := &lab{options: o, began: time.Now()}
	count := 0
	for _, e := range chosen {
		count += e.hosts(o.repeat)
	}
	var err error
	if l.dir, err = os.MkdirTemp("", "kubexm-bench-"); err != nil {
		return nil, err
	}
	// One that was interrupted may have left its hosts.
	if err = hosts.Remove(ctx, o.pool); err == nil {
		l.pool, err = hosts.Start(ctx, hosts.Options{Name: o.pool, Count: count, Subnet: o.subnet, Dir: l.dir, Log: l.log})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	return l, nil
}

func (l *lab) close(ctx context.Context) error {
	return errors.Join(l.pool.Stop(ctx), os.RemoveAll(l.dir))
}

// log tells how far the bench is.
func (l *lab) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  "+format+"\n", append([]any{time.Since(l.began).Seconds()}, args...)...)
}

// names of count hosts from the first on.
func (l *lab) names(first, count int) []string {
	var names []string
	for _, h := range l.pool.Hosts[first : first+count] {
		names = append(names, h.Name)
	}
	return names
}

// host returns a host of the pool by its name.
func (l *lab) host(name string) (*hosts.Host, error) {
	for _, h := range l.pool.Hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("the pool has no host %q", name)
}

// switchOff takes hosts that were measured off the power, so that they cost the next nothing.
func (l *lab) switchOff(ctx context.Context, names ...string) {
	err := atOnce(ctx, names, func(ctx context.Context, name string) error {
		h, err := l.host(name)
		if err != nil {
			return err
		}
		return h.Kill(ctx)
	})
	if err != nil {
		l.log("cannot switch off: %v", err)
	}
}

// access is how our side reaches a host.
func (l *lab) access(name string) (hostssh.Config, error) {
	h, err := l.host(name)
	if err != nil {
		return hostssh.Config{}, err
	}
	key, err := os.ReadFile(h.KeyPath)
	if err != nil {
		return hostssh.Config{}, err
	}
	return hostssh.Config{
		Name: h.Name, Address: h.Address, User: h.User,
		Auth:    hostssh.Auth{PrivateKeys: []secret.Value{secret.New(key)}},
		HostKey: hostssh.HostKey{Pinned: []string{authorizedKey(h.HostKey)}},
	}, nil
}

func (l *lab) dial(ctx context.Context, name string) (host.Host, error) {
	config, err := l.access(name)
	if err != nil {
		return nil, err
	}
	return hostssh.Dial(ctx, config)
}

// engine is an engine on the lab's hosts.
func (l *lab) engine() *engine.Engine {
	return engine.New(engine.Options{Dial: l.dial, Holder: "bench"})
}

// ssh runs a command on a host by OpenSSH, with more of its options if any.
func (l *lab) ssh(ctx context.Context, name string, stdin io.Reader, command string, more ...string) error {
	args := append(append([]string{"-F", filepath.Join(l.dir, "ssh_config")}, more...), name, command)
	return run(exec.CommandContext(ctx, "ssh", args...), stdin)
}

// run runs a command and tells what it said when it fails.
func run(cmd *exec.Cmd, stdin io.Reader) error {
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// clean runs a script on hosts as root and by Docker, between measurements.
func (l *lab) clean(ctx context.Context, names []string, script string) error {
	return atOnce(ctx, names, func(ctx context.Context, name string) error {
		h, err := l.host(name)
		if err != nil {
			return err
		}
		return run(h.Command(ctx, "sh", "-s"), strings.NewReader(script))
	})
}

// atOnce calls f for all hosts at once.
func atOnce(ctx context.Context, names []string, f func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			if err := f(ctx, name); err != nil {
				return fmt.Errorf("host %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
