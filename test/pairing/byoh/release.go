// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

const (
	// agentProgram is what a release calls its agent, and agentDir where it is on a host: nothing of it is left after a restart.
	agentProgram, agentDir = "byoh-hostagent", "/tmp/byoh"
	stopping               = time.Minute
)

// OpenRelease reads a release of the provider: its kinds, manager and byoh-hostagent.
func OpenRelease(dir string) (*provider.Release, error) {
	return provider.OpenRelease(dir, "manager", agentProgram)
}

// released is the provider's own programs.
type released struct {
	options Options
	manager *child.Process
	// relay lets hosts reach the management cluster, which listens on this machine alone.
	relay net.Listener
	to    string
}

func startReleased(ctx context.Context, o Options) (*released, error) {
	at, err := url.Parse(o.Config.Host)
	if err != nil {
		return nil, err
	}
	r := &released{options: o, to: at.Host}
	if r.relay, err = new(net.ListenConfig).Listen(ctx, "tcp", "0.0.0.0:0"); err != nil {
		return nil, err
	}
	go r.serve()
	if r.manager, err = o.Release.Run(ctx, o.Dir, o.Kubeconfig); err != nil {
		return nil, errors.Join(err, r.relay.Close())
	}
	return r, nil
}

func (r *released) serve() {
	for {
		in, err := r.relay.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", r.to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() { _, _ = io.Copy(out, in) }()
			_, _ = io.Copy(in, out)
		}()
	}
}

// register starts a host's agent, again if it runs.
func (r *released) register(ctx context.Context, on *hosts.Host) error {
	gateway, err := on.Exec(ctx, "sh", "-c", "ip route show default | sed -n 's/.* via \\([^ ]*\\).*/\\1/p;q'")
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(r.options.Kubeconfig)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(r.relay.Addr().String())
	name, _, _ := net.SplitHostPort(r.to)
	for _, c := range config.Clusters {
		c.Server, c.TLSServerName = "https://"+net.JoinHostPort(strings.TrimSpace(gateway), port), name
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(r.options.Release.Program(agentProgram))
	if err != nil {
		return err
	}
	if err := r.withdraw(ctx, on); err != nil {
		return err
	}
	for path, content := range map[string][]byte{"/" + agentProgram: program, "/.byoh/config": kubeconfig} {
		write := on.Command(ctx, "sh", "-ec", `umask 077; mkdir -p "${1%/*}"; cat >"$1"; chmod 700 "$1"`, "sh", agentDir+path)
		write.Stdin = bytes.NewReader(content)
		if out, err := write.CombinedOutput(); err != nil {
			return fmt.Errorf("write %s on %s: %w: %s", path, on.Name, err, out)
		}
	}
	run := []string{
		"systemd-run", "--unit=" + agentProgram, "--collect", "--setenv=HOME=" + agentDir,
		agentDir + "/" + agentProgram, "--kubeconfig=" + agentDir + "/.byoh/config", "--namespace=" + r.options.Namespace, "--skip-installation",
	}
	for key, value := range r.options.Labels[on.Name] {
		run = append(run, "--label="+key+"="+value)
	}
	_, err = on.Exec(ctx, run...)
	return err
}

// withdraw ends a host's agent, and removes what was put there for it.
func (r *released) withdraw(ctx context.Context, on *hosts.Host) error {
	_, err := on.Exec(ctx, "sh", "-c", "systemctl stop "+agentProgram+" 2>/dev/null; rm -rf "+agentDir)
	return err
}

func (r *released) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	return errors.Join(r.manager.Stop(ctx), r.relay.Close())
}
