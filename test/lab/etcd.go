// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// EtcdDir is where hosts have the files by which an etcd of others is run and reached.
const EtcdDir = "/etc/their-etcd"

// EtcdFiles writes into a directory what an etcd of others at an address serves with (server.crt, server.key), and what it is reached with
// (ca.crt, client.crt, client.key).
func EtcdFiles(t testing.TB, dir string, address netip.Addr) {
	t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "others-etcd", Key: pki.ECDSAP256})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "ca.crt"), ca.Cert, 0o600))
	for name, request := range map[string]pki.LeafRequest{
		"server": {CommonName: "etcd", IPs: []netip.Addr{address}, Usages: []pki.Usage{pki.Server, pki.Client}},
		"client": {CommonName: "kubernetes", Usages: []pki.Usage{pki.Client}},
	} {
		pair, err := ca.Sign(request)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name+".crt"), pair.Cert, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, name+".key"), pair.Key.Reveal(), 0o600))
	}
}

// EtcdFlags are those of an etcd of others, alone, whose EtcdFiles are in dir.
func EtcdFlags(url, data, dir string) []string {
	return []string{
		"--data-dir", data, "--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:0",
		"--client-cert-auth", "--trusted-ca-file", filepath.Join(dir, "ca.crt"),
		"--cert-file", filepath.Join(dir, "server.crt"), "--key-file", filepath.Join(dir, "server.key"),
	}
}

// Etcd makes a host an etcd that is none of the cluster's own, as its administrator would: etcd.service, of the bundle's programs. Its
// EtcdFiles are in dir here, and those that it is reached with in EtcdDir of its host and of clients.
func Etcd(t testing.TB, h *hosts.Host, bundle *artifact.Bundle, dir string, clients ...*hosts.Host) (url string) {
	t.Helper()
	address, err := netip.ParseAddr(h.Address)
	must(t, err)
	url = "https://" + h.Address + ":2379"
	EtcdFiles(t, dir, address)
	for _, name := range []string{"ca.crt", "client.crt", "client.key", "server.crt", "server.key"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		to := []*hosts.Host{h}
		if !strings.HasPrefix(name, "server") {
			to = append(to, clients...)
		}
		for _, one := range to {
			put(t, one, EtcdDir+"/"+name, "0600", bytes.NewReader(content))
		}
	}
	for _, name := range []string{"etcd", "etcdctl"} {
		program, err := bundle.Binary("etcd", "", "amd64", name)
		must(t, err)
		content, err := os.Open(program.Path)
		must(t, err)
		put(t, h, "/usr/local/bin/"+name, "0755", content)
		must(t, content.Close())
	}
	put(t, h, "/etc/systemd/system/etcd.service", "0644", strings.NewReader("[Service]\nType=notify\nExecStart=/usr/local/bin/etcd "+
		strings.Join(EtcdFlags(url, "/var/lib/etcd", EtcdDir), " ")+"\n\n[Install]\nWantedBy=multi-user.target\n"))
	if out, err := h.Exec(t.Context(), "systemctl", "enable", "--now", "--quiet", "etcd.service"); err != nil {
		t.Fatalf("etcd is not started on %s: %v\n%s", h.Name, err, out)
	}
	return url
}

// put writes a file on a host.
func put(t testing.TB, h *hosts.Host, path, mode string, content io.Reader) {
	t.Helper()
	cmd := h.Command(t.Context(), "sh", "-c", `mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"`, "sh", path, mode)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s on %s: %v\n%s", path, h.Name, err, out)
	}
}
