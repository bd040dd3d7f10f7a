// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/delay"
)

// oneWay is the delay in each direction; the two make the added delay of a round trip.
const oneWay = 5 * time.Millisecond

// sent is where the file arrives, ours and the reference's.
const sent = "/var/tmp/bench-payload"

const cleanSent = "rm -rf " + sent + " /var/lib/kubexm\nsync\n"

// sending measures a file's way to hosts, next door.
func sending() experiment {
	const about = "a file of 200 MiB that cannot be compressed to %s: dial, send, verify its digest, sync, put in place; reference: ssh host 'cat > file', which does not verify or sync"
	return experiment{
		measurements: []measurement{
			{name: "send/1-host", unit: "s", goal: goal{of: "ratio", bound: 1.25}, about: fmt.Sprintf(about, "1 host")},
			{name: "send/4-hosts", unit: "s", goal: goal{of: "ratio", bound: 1.25}, about: fmt.Sprintf(about, "4 hosts at once")},
			{name: "send/1-host" + processors, unit: "s", about: "the processor time of send/1-host, at both ends"},
			{name: "send/4-hosts" + processors, unit: "s", about: "the processor time of send/4-hosts, at all ends"},
		},
		hosts: always(4),
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			p, err := l.payload()
			if err != nil {
				return err
			}
			for name, to := range map[string][]string{"send/1-host": hosts[:1], "send/4-hosts": hosts} {
				err := inTurn(round,
					func() error { return l.send(ctx, name, ours, take, to, l.sendOurs(p, l.dial)) },
					func() error { return l.send(ctx, name, reference, take, to, l.sendBySSH(p)) },
				)
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// sendingDelayed measures the same over a long link.
func sendingDelayed() experiment {
	const name = "send/delayed"
	return experiment{
		measurements: []measurement{{
			name: name, unit: "MB/s", goal: goal{of: "ours", least: true, bound: 100},
			about: "the same file to one host through a delay line that adds 10 ms to each round trip; reference: ssh host 'cat > file' through the same line",
		}},
		hosts: always(1),
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) (err error) {
			p, err := l.payload()
			if err != nil {
				return err
			}
			h, err := l.host(hosts[0])
			if err != nil {
				return err
			}
			line, err := delay.Listen(net.JoinHostPort(h.Address, strconv.Itoa(h.Port)), oneWay)
			if err != nil {
				return err
			}
			defer line.Close()
			dial := func(ctx context.Context, name string) (host.Host, error) {
				config, err := l.access(name)
				if err != nil {
					return nil, err
				}
				config.Address, config.Port = "127.0.0.1", int32(line.Port())
				return hostssh.Dial(ctx, config)
			}
			perSecond := func(of string, by side, took float64) {
				if of == name {
					take(name, by, float64(p.size)/1e6/took)
				}
			}
			return inTurn(round,
				func() error { return l.send(ctx, name, ours, perSecond, hosts, l.sendOurs(p, dial)) },
				func() error {
					return l.send(ctx, name, reference, perSecond, hosts, l.sendBySSH(p,
						"-o", "HostName=127.0.0.1", "-o", "Port="+strconv.Itoa(line.Port()), "-o", "HostKeyAlias="+h.Address))
				},
			)
		},
	}
}

// send measures how long act takes on clean hosts, and sees that all arrived.
func (l *lab) send(ctx context.Context, name string, of side, take note, to []string, act func(context.Context, []string) error) error {
	if err := l.clean(ctx, to, cleanSent); err != nil {
		return err
	}
	var took float64
	used, err := l.processorTime(ctx, to, func() (err error) {
		took, err = timed(func() error { return act(ctx, to) })
		return err
	})
	if err != nil {
		return err
	}
	take(name, of, took)
	take(name+processors, of, used)
	return l.clean(ctx, to, fmt.Sprintf("[ $(stat -c %%s %s) -eq %d ]\n", sent, l.options.mebi<<20)+cleanSent)
}

// sendOurs sends by a plan of one node for each host.
func (l *lab) sendOurs(p payload, dial func(context.Context, string) (host.Host, error)) func(context.Context, []string) error {
	return func(ctx context.Context, to []string) error {
		b := plan.New("Send", "bench")
		for _, name := range to {
			b.Host(name, p.module())
		}
		work, err := b.Plan()
		if err != nil {
			return err
		}
		_, err = engine.New(engine.Options{Dial: dial, Holder: "bench", Artifacts: p}).Run(ctx, work)
		return err
	}
}

func (l *lab) sendBySSH(p payload, more ...string) func(context.Context, []string) error {
	return func(ctx context.Context, to []string) error {
		return atOnce(ctx, to, func(ctx context.Context, name string) error {
			file, err := os.Open(p.path)
			if err != nil {
				return err
			}
			defer file.Close()
			return l.ssh(ctx, name, file, "cat > "+sent, more...)
		})
	}
}

// payload is a file of random bytes on this machine. It implements step.Artifacts for itself.
type payload struct {
	path, digest string
	size         int64
}

// payload makes the file once.
func (l *lab) payload() (payload, error) {
	return newPayload(filepath.Join(l.dir, "payload"), l.options.mebi<<20)
}

func newPayload(path string, size int64) (payload, error) {
	p := payload{path: path, size: size}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	if info.Size() != size {
		if _, err := io.CopyN(file, rand.Reader, size); err != nil {
			return p, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return p, err
		}
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return p, err
	}
	p.digest = "sha256:" + hex.EncodeToString(hash.Sum(nil))
	return p, nil
}

// Open implements step.Artifacts.
func (p payload) Open(context.Context, step.Artifact) (io.ReadCloser, error) { return os.Open(p.path) }

func (p payload) module() plan.Module {
	file := step.File{Path: sent, Mode: 0o644, From: &step.Artifact{Path: "payload", Digest: p.digest, Size: p.size}}
	return plan.Module{Name: "payload", Tasks: []plan.Task{{Name: "payload", Steps: []step.Step{
		step.New(step.Meta{Name: "payload"}, file),
	}}}}
}
