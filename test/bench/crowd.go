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
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	hostssh "github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/bench/replay"
)

// The crowd is played hosts (package replay) in a process of their own, and the engine in another, so that the engine's
// time and memory are its alone.
const (
	childCrowd    = "crowd"    // plays the hosts
	childConverge = "converge" // converges and observes them

	crowdSize = 100
	// crowdFile is what each host of the crowd is sent besides the sixty settings, in bytes. It can be compressed to about a
	// half, and is, because a hundred transfers at once make every link a slow one.
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
				name: "crowd/memory", unit: "MiB", goal: goal{of: "ours", bound: 200},
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
			c, err := l.newCrowd(ctx, hosts[0])
			if err != nil {
				return err
			}
			defer c.close()
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

// crowdScene is what the children are told: how to reach the host to record, or those that are played.
type crowdScene struct {
	// Original is the host to record.
	Original crowdHost
	// Hosts are those that are played, the recording one first.
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

// newCrowd starts a crowd and lets it learn from the host.
func (l *lab) newCrowd(ctx context.Context, original string) (*crowd, error) {
	h, err := l.host(original)
	if err != nil {
		return nil, err
	}
	c := &crowd{scene: crowdScene{
		Original: crowdHost{Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, HostKey: authorizedKey(h.HostKey)},
		KeyPath:  h.KeyPath, Payload: filepath.Join(l.dir, "crowd-payload"),
	}}
	if err := writeCompressible(c.scene.Payload, crowdFile); err != nil {
		return nil, err
	}
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
	l.log("recording %s", original)
	if _, err := c.scene.cost(ctx, 0, 1); err != nil {
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
	original, err := scene.dialOriginal()
	if err != nil {
		return err
	}
	defer original.Close()
	key, err := replay.Key()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	memory := replay.NewMemory()
	var played []crowdHost
	for i := range crowdSize + 1 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		h := &replay.Host{
			Name: fmt.Sprintf("host-%03d", i), Key: key, Memory: memory,
			Failed: func(err error) { fmt.Fprintln(os.Stderr, err) },
		}
		if i == 0 {
			h.Start = original.start
		}
		port := listener.Addr().(*net.TCPAddr).Port
		played = append(played, crowdHost{Name: h.Name, Address: "127.0.0.1", Port: port, User: scene.Original.User, HostKey: authorizedKey(key.PublicKey())})
		all.Go(func() { h.Serve(ctx, listener) })
	}
	if err := json.NewEncoder(out).Encode(played); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, input) // its end is all that is waited for
	return nil
}

// original is the connection to the host that is recorded.
type original struct{ *ssh.Client }

func (s crowdScene) dialOriginal() (original, error) {
	key, err := os.ReadFile(s.KeyPath)
	if err != nil {
		return original{}, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return original{}, err
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.Original.HostKey))
	if err != nil {
		return original{}, err
	}
	client, err := ssh.Dial("tcp", net.JoinHostPort(s.Original.Address, strconv.Itoa(s.Original.Port)), &ssh.ClientConfig{
		User: s.Original.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(hostKey),
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
		// Played hosts must be asked what the recorded one was asked.
		NewID: func() string { return "bench" },
	})
	if cost.Converge, err = timed(func() error { _, err := e.Run(ctx, p); return err }); err != nil {
		return cost, err
	}
	if cost.Memory, err = peakMemory(); err != nil {
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

// peakMemory is the most resident memory that this process had, in MiB. (What getrusage(2) tells is inherited.)
func peakMemory() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kibi float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kibi); n == 1 {
			return kibi / 1024, nil
		}
	}
	return 0, errors.New("the kernel does not tell this process's peak memory")
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
