// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/replay"
)

// The crowd is played hosts (package replay) in a process of their own, and the engine in another, so that the engine's
// time and memory are its alone.
const (
	childCrowd    = "crowd"    // plays the hosts
	childConverge = "converge" // converges and observes them

	crowdSize = 100
	// crowdFile is what each host of the crowd is sent besides the sixty settings, in bytes. It could be compressed to about a half, but
	// is so small that no link is measured for it: it is sent as it is.
	crowdFile = 16 << 20
)

func crowds() experiment {
	return experiment{
		measurements: []measurement{
			{
				name: "crowd/observe", unit: "s", goal: goal{of: "ours", bound: 2},
				about: "100 played hosts with 60 settings and a file that are all so already: dial, observe, decide",
			},
			{
				name: "crowd/memory", unit: "MiB", goal: goal{of: "ours", bound: 160},
				about: "peak resident memory of the engine's process while it makes 60 settings so and sends 16 MiB on 100 played hosts, all at once",
			},
			{
				name: "crowd/converge", unit: "s",
				about: "how long that takes",
			},
		},
		hosts: always(1),
		round: func(ctx context.Context, l *lab, hosts []string, _ int, take note) error {
			if err := l.clean(ctx, hosts, cleanSettings+cleanSent); err != nil {
				return err
			}
			c, err := l.newCrowd(ctx, crowdSize, hosts[0])
			if err != nil {
				return err
			}
			defer c.close()
			if err := writeCompressible(c.scene.Payload, crowdFile); err != nil {
				return err
			}
			l.log("recording %s", hosts[0])
			if _, err := c.scene.cost(ctx, 0, 1); err != nil {
				return err
			}
			cost, err := c.measure(ctx)
			if err != nil {
				return err
			}
			take("crowd/observe", ours, cost.Observe)
			take("crowd/memory", ours, cost.Memory)
			take("crowd/converge", ours, cost.Converge)
			return nil
		},
	}
}

// crowdScene is what the children are given: how to reach the hosts to record, or those that are played.
type crowdScene struct {
	// Originals are the hosts to record. So many others as Size says do as the last of them did.
	Originals []crowdHost
	Size      int
	// Hosts are those that are played, the recording ones first.
	Hosts   []crowdHost
	KeyPath string
	// Payload is the path of the file that is sent.
	Payload string
}

type crowdHost struct {
	Name, Address, User, HostKey string
	Port                         int
}

// crowdCost is what the engine's process has found out.
type crowdCost struct {
	// Converge and Observe are in seconds, Memory is in MiB.
	Converge, Observe, Memory float64
}

// crowd is the process that plays.
type crowd struct {
	scene crowdScene
	cmd   *exec.Cmd
	stdin io.Closer
}

// newCrowd starts a crowd. What is done to the originals through it is what the others know.
func (l *lab) newCrowd(ctx context.Context, size int, originals ...string) (*crowd, error) {
	c := &crowd{scene: crowdScene{Size: size, Payload: filepath.Join(l.dir, "crowd-payload")}}
	for _, name := range originals {
		h, err := l.host(name)
		if err != nil {
			return nil, err
		}
		c.scene.KeyPath = h.KeyPath
		c.scene.Originals = append(c.scene.Originals, crowdHost{
			Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, HostKey: authorizedKey(h.HostKey),
		})
	}
	var err error
	var out io.ReadCloser
	var in io.WriteCloser
	if c.cmd, in, out, err = child(ctx, childCrowd); err != nil {
		return nil, err
	}
	c.stdin = in
	if err := json.NewEncoder(in).Encode(c.scene); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&c.scene.Hosts); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// close ends the process, which does so when its input ends.
func (c *crowd) close() error {
	_ = c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", childCrowd, err)
	}
	return nil
}

// measure runs the engine's process on all that are played.
func (c *crowd) measure(ctx context.Context) (cost crowdCost, err error) {
	cmd, in, out, err := child(ctx, childConverge)
	if err != nil {
		return cost, err
	}
	err = json.NewEncoder(in).Encode(c.scene)
	if err = errors.Join(err, in.Close()); err == nil {
		err = json.NewDecoder(out).Decode(&cost)
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return cost, fmt.Errorf("%s: %w", childConverge, err)
	}
	return cost, nil
}

// child starts this program as another part of itself. What it complains of goes where our complaints go.
func child(ctx context.Context, part string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.CommandContext(ctx, program, part)
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, nil, err
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, nil, err
	}
	return cmd, in, out, cmd.Start()
}

// playCrowd is the process that plays: it reads the scene, prints how to reach its hosts, and serves them until its
// input ends.
func playCrowd(ctx context.Context, in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	var scene crowdScene
	decoder := json.NewDecoder(input)
	if err := decoder.Decode(&scene); err != nil {
		return err
	}
	key, err := replay.Key()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var memory *replay.Memory
	var played []crowdHost
	for i := range len(scene.Originals) + scene.Size {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		h := &replay.Host{
			Name: fmt.Sprintf("host-%04d", i), Key: key,
			Failed: func(err error) { fmt.Fprintln(os.Stderr, err) },
		}
		if i < len(scene.Originals) {
			original, err := scene.dial(scene.Originals[i])
			if err != nil {
				return err
			}
			defer original.Close()
			memory, h.Start = replay.NewMemory(), original.start
		}
		h.Memory = memory
		port := listener.Addr().(*net.TCPAddr).Port
		played = append(played, crowdHost{
			Name: h.Name, Address: "127.0.0.1", Port: port, User: scene.Originals[0].User, HostKey: authorizedKey(key.PublicKey()),
		})
		all.Go(func() { h.Serve(ctx, listener) })
	}
	if err := json.NewEncoder(out).Encode(played); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, input) // its end is all that is waited for
	return nil
}

// original is the connection to a host that is recorded.
type original struct{ *ssh.Client }

func (s crowdScene) dial(h crowdHost) (original, error) {
	key, err := os.ReadFile(s.KeyPath)
	if err != nil {
		return original{}, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return original{}, err
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.HostKey))
	if err != nil {
		return original{}, err
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(h.Address, strconv.Itoa(h.Port)), &ssh.ClientConfig{
		User: h.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{hostKey.Type()},
	})
	return original{client}, err
}

// start implements replay.Start.
func (o original) start(command string) (*replay.Process, error) {
	session, err := o.NewSession()
	if err != nil {
		return nil, err
	}
	p := &replay.Process{Wait: func() (int, error) {
		var status *ssh.ExitError
		err := session.Wait()
		if errors.As(err, &status) {
			return status.ExitStatus(), nil
		}
		return 0, err
	}}
	if p.Stdin, err = session.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Stdout, err = session.StdoutPipe(); err != nil {
		return nil, err
	}
	if p.Stderr, err = session.StderrPipe(); err != nil {
		return nil, err
	}
	return p, session.Start(command)
}

// convergeCrowd is the engine's process: it reads the scene and prints the cost.
func convergeCrowd(ctx context.Context, in io.Reader, out io.Writer) error {
	var scene crowdScene
	if err := json.NewDecoder(in).Decode(&scene); err != nil {
		return err
	}
	cost, err := scene.cost(ctx, 1, len(scene.Hosts))
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(cost)
}

// cost converges and observes the hosts from the first up to, not including, end.
func (s crowdScene) cost(ctx context.Context, first, end int) (cost crowdCost, err error) {
	key, err := os.ReadFile(s.KeyPath)
	if err != nil {
		return cost, err
	}
	file, err := newPayload(s.Payload, crowdFile)
	if err != nil {
		return cost, err
	}
	var names []string
	configs := map[string]hostssh.Config{}
	for _, h := range s.Hosts[first:end] {
		names = append(names, h.Name)
		configs[h.Name] = hostssh.Config{
			Name: h.Name, Address: h.Address, Port: int32(h.Port), User: h.User,
			Auth: hostssh.Auth{PrivateKeys: []secret.Value{secret.New(key)}}, HostKey: hostssh.HostKey{Pinned: []string{h.HostKey}},
		}
	}
	p, err := settingsPlan(names, file.module())
	if err != nil {
		return cost, err
	}
	e := engine.New(engine.Options{
		Dial:        func(ctx context.Context, name string) (host.Host, error) { return hostssh.Dial(ctx, configs[name]) },
		HostsAtOnce: len(names), Artifacts: file, Holder: "bench",
	})
	if cost.Converge, err = timed(func() error { _, err := e.Run(ctx, p); return err }); err != nil {
		return cost, err
	}
	if cost.Memory, err = fleet.Memory("VmHWM"); err != nil {
		return cost, err
	}
	cost.Observe, err = timed(func() error {
		report, err := e.Check(ctx, p)
		if err == nil && !report.Converged() {
			err = fmt.Errorf("%d nodes differ after they were made so", report.Total().Changed)
		}
		return err
	})
	return cost, err
}

// writeCompressible writes a file of hexadecimal digits.
func writeCompressible(path string, size int64) error {
	random, err := newPayload(path+"-random", size/2)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(random.path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%x", content), 0o644)
}

func authorizedKey(key ssh.PublicKey) string {
	return string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))
}
