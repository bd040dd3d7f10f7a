// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"
)

func TestOptionsValidate(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		names   string // what the error must name; empty: valid
	}{
		"least":              {Options{Name: "a", Count: 1}, ""},
		"most":               {Options{Name: strings.Repeat("a", 40), Count: 200, Subnet: netip.MustParsePrefix("10.77.0.0/16")}, ""},
		"no name":            {Options{Count: 1}, "name"},
		"name too long":      {Options{Name: strings.Repeat("a", 41), Count: 1}, "name"},
		"name is a path":     {Options{Name: "../a", Count: 1}, "name"},
		"name ends in dash":  {Options{Name: "a-", Count: 1}, "name"},
		"no hosts":           {Options{Name: "a"}, "count"},
		"too many hosts":     {Options{Name: "a", Count: 201}, "count"},
		"subnet too small":   {Options{Name: "a", Count: 1, Subnet: netip.MustParsePrefix("10.77.0.0/25")}, "subnet"},
		"subnet not of IPv4": {Options{Name: "a", Count: 1, Subnet: netip.MustParsePrefix("fd00::/16")}, "subnet"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.options.validate()
			switch {
			case test.names == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.names != "" && err == nil:
				t.Error("no error")
			case test.names != "" && !strings.HasPrefix(err.Error(), test.names):
				t.Errorf("error %q does not name the %s", err, test.names)
			}
		})
	}
}

func TestSubnets(t *testing.T) {
	reserved := []netip.Prefix{
		netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.233.0.0/16"),
		netip.MustParsePrefix("10.77.0.0/24"),
	}
	for _, subnet := range candidates() {
		if slices.ContainsFunc(reserved, subnet.Overlaps) {
			t.Errorf("%s overlaps a reserved network", subnet)
		}
		if last := hostAddress(subnet, maxHosts-1); !subnet.Contains(last) {
			t.Errorf("%s has no room for %d hosts: the last is %s", subnet, maxHosts, last)
		}
	}
	if first := hostAddress(netip.MustParsePrefix("10.77.3.0/24"), 0); first.String() != "10.77.3.11" {
		t.Errorf("first host at %s", first)
	}
	dual := Pool{Name: "a", Subnet: netip.MustParsePrefix("10.77.3.0/24"), Subnet6: subnet6(netip.MustParsePrefix("10.77.3.0/24"))}
	dual.addHosts(2)
	if got := dual.Hosts[1]; got.Address != "10.77.3.12" || got.Address6 != "fd77:a4d:300::c" {
		t.Errorf("the second of a dual stack pool is at %s and %s", got.Address, got.Address6)
	}
}

func TestRecipe(t *testing.T) {
	for system, want := range map[System]string{Debian: "kubexm-testhost", SimulatedRPM: "kubexm-testhost-rpm"} {
		image, err := system.Image()
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile("^" + want + ":[0-9a-f]{12}$").MatchString(image) {
			t.Errorf("image %q", image)
		}
	}
	if image, err := System("plan9").Image(); err == nil {
		t.Errorf("hosts of a system without a recipe have the image %s", image)
	}
	dir := t.TempDir()
	packages, err := unpackRecipe("image", dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(packages, "openssh-server") || slices.ContainsFunc(packages, func(p string) bool { return strings.ContainsAny(p, "# ") }) {
		t.Errorf("packages %q", packages)
	}
	for _, script := range []string{"customize.sh", "testhost-init"} {
		info, err := os.Stat(filepath.Join(dir, "image", script))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: mode %v, error %v", script, info.Mode(), err)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	signer, err := poolKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := poolKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(again.PublicKey().Marshal()) != string(signer.PublicKey().Marshal()) {
		t.Error("the key in the directory is not used again")
	}
	if info, err := os.Stat(filepath.Join(dir, "id_ed25519")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private key: mode %v, error %v", info.Mode(), err)
	}

	subnet := netip.MustParsePrefix("10.77.3.0/24")
	pool := &Pool{Name: "a", Subnet: subnet, Dir: dir}
	for i := range 2 {
		host := newHost("a", i+1, hostAddress(subnet, i))
		host.HostKey, host.Address6 = signer.PublicKey(), hostAddress(subnet6(subnet), i).String()
		pool.Hosts = append(pool.Hosts, host)
	}
	if err := pool.Write(); err != nil {
		t.Fatal(err)
	}

	known, err := knownhosts.New(filepath.Join(dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"10.77.3.12:22", "[fd77:a4d:300::c]:22"} {
		if err := known(at, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at)), signer.PublicKey()); err != nil {
			t.Errorf("known_hosts: %v", err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "hosts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var inventory Inventory
	if err := json.Unmarshal(content, &inventory); err != nil {
		t.Fatal(err)
	}
	if len(inventory.Hosts) != 2 || inventory.Hosts[1].Name != "a-2" || inventory.Hosts[1].Address != "10.77.3.12" {
		t.Errorf("inventory %+v", inventory)
	}
}
