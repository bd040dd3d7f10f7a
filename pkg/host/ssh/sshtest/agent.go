// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package sshtest

import (
	"net"
	"testing"

	"golang.org/x/crypto/ssh/agent"
)

// RunAgent has an SSH agent with these private keys listen at a socket, a path that is not there yet, until the test ends. A key is what
// agent.AddedKey takes, such as an ed25519.PrivateKey.
func RunAgent(t testing.TB, socket string, keys ...any) {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }() // it ends with the connection
		}
	}()
}
