// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"os"
	"path/filepath"
	"testing"
)

const someKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// FuzzHostKeys: pins and known_hosts files are what users and other programs have written.
func FuzzHostKeys(f *testing.F) {
	f.Add(someKey, "node-1,10.0.0.1 "+someKey+"\n@cert-authority * "+someKey+"\n[h]:22 x\n")
	f.Add("SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", "|1|AAAA|BBBB "+someKey)
	f.Add("SHA256:", "@revoked * "+someKey)
	f.Fuzz(func(t *testing.T, pin, known string) {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, k := range []HostKey{
			{Pinned: []string{pin}}, {KnownHosts: []string{file}}, {Authorities: []string{pin}, Revoked: []string{pin}},
		} {
			check, err := k.checker("node-1:22", "node-1", "node-1")
			if err == nil && len(check.algorithms()) == 0 && !check.pinned() {
				t.Error("a host of which nothing is known may show no key at all")
			}
		}
		read, err := ReadKnown(file)
		if err == nil {
			_ = read.Pin(Config{Address: "node-1", Port: 22})
		}
	})
}
