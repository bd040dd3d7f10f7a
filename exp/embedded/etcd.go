// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

const (
	// etcdSocket is both a URL's host, which to etcd must have a port, and the name of the socket in the plane's
	// directory. Anyone who may not enter that directory cannot reach etcd, and no port is needed.
	etcdSocket = "etcd.sock:0"
	peerSocket = "etcd-peer.sock:0"

	// socketPathLimit is how long the path of a Unix socket may be everywhere: sun_path on BSD has 104 bytes, with the
	// 0 at its end.
	socketPathLimit = 103
)

func startEtcd(ctx context.Context, o Options) (*child.Process, error) {
	return child.Start(ctx, child.Spec{
		Name: "etcd", Path: o.Etcd, Dir: o.Dir,
		Args: []string{
			"--name=kubexm",
			"--data-dir=etcd",
			"--listen-client-urls=unix://" + etcdSocket,
			"--advertise-client-urls=unix://" + etcdSocket,
			"--listen-peer-urls=unix://" + peerSocket,
			"--initial-advertise-peer-urls=unix://" + peerSocket,
			"--initial-cluster=kubexm=unix://" + peerSocket,
			// A single member needs no log of thousands of entries in memory for slow followers.
			"--snapshot-count=1000",
			"--snapshot-catchup-entries=100",
		},
	})
}

// waitEtcd returns when etcd serves.
func waitEtcd(ctx context.Context, etcd *child.Process, dir string) error {
	socket := filepath.Join(dir, etcdSocket)
	if len(socket) > socketPathLimit {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		socket = fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), etcdSocket)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	return waitReady(ctx, etcd, &http.Client{Transport: transport, Timeout: time.Second}, "http://etcd/readyz")
}
