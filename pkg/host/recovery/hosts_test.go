// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package recovery_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

func TestRealHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("rescue-%d", os.Getpid()), Count: 1})
	machine := pool.Hosts[0]
	dial := func(ctx context.Context) (host.Host, error) {
		h, err := ssh.Dial(ctx, lab.SSH(machine))
		if err != nil {
			return nil, err
		}
		return h, nil
	}
	if _, err := machine.Exec(ctx, "sh", "-euc", `mkdir -p /var/log/pods/kube-system_etcd-x_1/etcd
		echo 'the last words of etcd' >/var/log/pods/kube-system_etcd-x_1/etcd/0.log
		systemd-run --unit kubelet-x echo 'the last words of the kubelet'
		systemd-run --unit etcd-x false
		touch /run/gone-after-boot`); err != nil {
		t.Fatal(err)
	}

	said := ""
	reboot := recovery.Reboot{Host: machine.Name, Dial: dial, Asked: time.Now(), Before: func(ctx context.Context, h host.Host) {
		content, err := recovery.Logs(ctx, h)
		if err != nil {
			t.Fatal(err)
		}
		in, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		said = string(text)
	}}
	for range 2 { // the second finds it done
		began := time.Now()
		if err := reboot.Do(ctx); err != nil {
			t.Fatal(err)
		}
		t.Logf("%.1f s", time.Since(began).Seconds())
	}
	for _, want := range []string{"==> host <==", "the last words of etcd", "==> journal of etcd-x.service <==", "==> journal of the kernel <=="} {
		if !strings.Contains(said, want) {
			t.Errorf("the logs have no %q:\n%s", want, said)
		}
	}
	if _, err := machine.Exec(ctx, "test", "!", "-e", "/run/gone-after-boot"); err != nil {
		t.Errorf("the host has not booted: %v", err)
	}
	if err := machine.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	// What is killed stays off, as after a power cut.
	if err := machine.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Exec(ctx, "true"); err == nil {
		t.Error("a host that was killed runs")
	}
}
