// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Files of a pool, in its Dir.
const (
	keyFile        = "id_ed25519"
	knownHostsFile = "known_hosts"
	sshConfigFile  = "ssh_config"
	hostsFile      = "hosts.json"
)

// poolKey returns the private key in dir, which it makes when it is not there. With
// no dir the key is new and lives in memory alone.
func poolKey(dir string) (ssh.Signer, error) {
	path := filepath.Join(dir, keyFile)
	if dir != "" {
		content, err := os.ReadFile(path)
		if err == nil {
			signer, err := ssh.ParsePrivateKey(content)
			if err != nil {
				return nil, fmt.Errorf("read key %s (remove the file to make a new one): %w", path, err)
			}
			return signer, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil || dir == "" {
		return signer, err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, fmt.Errorf("write key %s: %w", path, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return signer, os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// authorizeScript adds the keys on standard input to every account that lacks them
// and prints the host's public key.
const authorizeScript = `set -eu
keys=$(cat)
for home in /root /home/*; do
	file=$home/.ssh/authorized_keys
	touch "$file"
	printf '%s\n' "$keys" | grep -vxFf "$file" >>"$file" || true
	chown --reference="$home" "$file"
	chmod 0600 "$file"
done
cat /etc/ssh/ssh_host_ed25519_key.pub`

// authorize lets keys log in to every account, and records in h the signer and the
// host's own key.
func (h *Host) authorize(ctx context.Context, signer ssh.Signer, keys []ssh.PublicKey) error {
	var authorized bytes.Buffer
	for _, key := range keys {
		authorized.Write(ssh.MarshalAuthorizedKey(key))
	}
	out, err := docker(ctx, &authorized, h.execArgs([]string{"sh", "-c", authorizeScript})...)
	if err != nil {
		return fmt.Errorf("authorise keys: %w", err)
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(out))
	if err != nil {
		return fmt.Errorf("read the host key: %w", err)
	}
	h.Signer, h.HostKey = signer, hostKey
	return nil
}

func (h *Host) setPassword(ctx context.Context, account, password string) error {
	if strings.ContainsAny(password, "\n\r") {
		return fmt.Errorf("set the password of %s: it has a line break", account)
	}
	stdin := strings.NewReader(account + ":" + password + "\n")
	if _, err := docker(ctx, stdin, h.execArgs([]string{"chpasswd"})...); err != nil {
		return fmt.Errorf("set the password of %s: %w", account, err)
	}
	return nil
}

// Inventory is the content of hosts.json.
type Inventory struct {
	Pool   string           `json:"pool"`
	Subnet string           `json:"subnet"`
	Hosts  []InventoryEntry `json:"hosts"`
}

// InventoryEntry says how to reach one host.
type InventoryEntry struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	User    string `json:"user"`
	KeyPath string `json:"keyPath"`
	HostKey string `json:"hostKey"` // as in an authorized_keys line: type, then base64
}

// Write puts into Dir, beside the private key id_ed25519, how to reach the hosts:
// known_hosts and ssh_config for OpenSSH (ssh -F ssh_config <host name>) and
// hosts.json (an Inventory). It sets every host's KeyPath. Without a Dir it does nothing.
func (p *Pool) Write() error {
	if p.Dir == "" {
		return nil
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return err
	}
	var known, config bytes.Buffer
	inventory := Inventory{Pool: p.Name, Subnet: p.Subnet.String()}
	for _, host := range p.Hosts {
		host.KeyPath = filepath.Join(dir, keyFile)
		addresses := []string{net.JoinHostPort(host.Address, strconv.Itoa(host.Port))}
		if host.Address6 != "" {
			addresses = append(addresses, net.JoinHostPort(host.Address6, strconv.Itoa(host.Port)))
		}
		fmt.Fprintln(&known, knownhosts.Line(addresses, host.HostKey))
		fmt.Fprintf(&config, "Host %s\n\tHostName %s\n\tPort %d\n\tUser %s\n\tIdentityFile %q\n\tIdentitiesOnly yes\n\tUserKnownHostsFile %q\n\tStrictHostKeyChecking yes\n\n",
			strings.TrimSpace(host.Name+" "+host.Address+" "+host.Address6), host.Address,
			host.Port, host.User, host.KeyPath, filepath.Join(dir, knownHostsFile))
		inventory.Hosts = append(inventory.Hosts, InventoryEntry{
			Name: host.Name, Address: host.Address, Port: host.Port, User: host.User,
			KeyPath: host.KeyPath,
			HostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.HostKey))),
		})
	}
	list, err := json.MarshalIndent(inventory, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		knownHostsFile: known.Bytes(),
		sshConfigFile:  config.Bytes(),
		hostsFile:      append(list, '\n'),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the files of pool %q: %w", p.Name, err)
		}
	}
	return nil
}
