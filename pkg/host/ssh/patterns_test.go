// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestPatternsAndPorts: a pattern with * is for any port, and what is known of port 22 is not known of others. A host that nobody knows is
// unknown then, and has no other key: all of this for addresses of either family.
func TestPatternsAndPorts(t *testing.T) {
	key := func() ssh.PublicKey {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	shown, other := key(), key()
	line := func(hosts string, key ssh.PublicKey) string {
		return hosts + " " + string(ssh.MarshalAuthorizedKey(key))
	}
	const right, unknown, another = "", "the host is not in known_hosts", "known_hosts has another"
	for name, test := range map[string]struct{ known, want string }{
		"a pattern for others":          {line("*.example.org", other), unknown},
		"a pattern with the key":        {line("*", shown), right},
		"a pattern with another key":    {line("*", other), another},
		"port 22 has another key":       {line("*.example.org", other) + line("2001:db8::2,172.16.0.2", other), unknown},
		"the port itself is known":      {line("*", other) + line("[2001:db8::2]:2222,[172.16.0.2]:2222", shown), right},
		"the port itself is another's":  {line("*", shown) + line("[2001:db8::2]:2222,[172.16.0.2]:2222", other), another},
		"a pattern of addresses":        {line("2001:db8::*,172.16.*", shown), right},
		"a pattern of another port":     {line("[*]:22", other) + line("*.example.org", other), unknown},
		"an authority for all hosts":    {"@cert-authority " + line("*", other), another},
		"revoked, whatever has pattern": {line("*", shown) + "@revoked " + line("*", shown), another},
	} {
		for _, address := range []string{"172.16.0.2", "2001:db8::2"} {
			t.Run(name+"/"+address, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "known_hosts")
				if err := os.WriteFile(file, []byte(test.known), 0o600); err != nil {
					t.Fatal(err)
				}
				c := Config{Address: address, Port: 2222}
				check, err := HostKey{KnownHosts: []string{file}}.checker(c.endpoint(), address, address)
				if err != nil {
					t.Fatal(err)
				}
				err = check.verify(c.endpoint(), &net.TCPAddr{IP: net.ParseIP(address), Port: 2222}, shown)
				if (err == nil) != (test.want == right) || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		}
	}
}
