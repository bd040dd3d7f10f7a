// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// silentHosts do not answer: nothing listens where their jump host is to be.
const silentHosts = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  proxyJump: {host: 127.0.0.1, port: 1, user: jump, password: secret, hostKey: "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"}
  hosts:
  - {name: cp1, address: 192.0.2.1, password: secret, hostKey: "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"}
  - {name: w1, address: 192.0.2.2, password: secret, hostKey: "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"}
  roleGroups: {master: [cp1], worker: [w1]}
  kubernetes: {version: v1.36.3}
`

func configFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func stateOf(t *testing.T, root string) clusterdir.Dir {
	t.Helper()
	dir, err := clusterdir.Of(root, "prod")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDeletedOfALostInventory: what is left of a state is not taken for nothing. The config file takes the place of the inventory.
func TestDeletedOfALostInventory(t *testing.T) {
	root := t.TempDir()
	dir := stateOf(t, root)
	if _, err := dir.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, false); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runIn(t, root, "delete", "cluster", "prod", "--yes")
	if code != exitUsage || !strings.Contains(stderr, "the inventory of cluster prod is missing") || !strings.Contains(stderr, "-f config.yaml") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if !dir.HasAuthorities() {
		t.Fatal("the key pairs are gone")
	}
	a := &app{Streams: Streams{Err: &bytes.Buffer{}}}
	known, err := a.deletable(t.Context(), &source{file: configFile(t, silentHosts)}, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cp1", "w1"}
	if got := (inventory{known}).names(); !slices.Equal(got, want) || !slices.Equal(known.Applied(), want) ||
		known.Hosts[0].Role != spec.RoleControlPlane || known.Hosts[1].Address != "192.0.2.2" {
		t.Errorf("the hosts are %+v", known.Hosts)
	}
	if err := os.RemoveAll(dir.Path("secrets")); err != nil {
		t.Fatal(err)
	}
	if err := dir.Write([]byte("{}"), "kubeconfig"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.deletable(t.Context(), &source{file: configFile(t, silentHosts)}, dir); err == nil ||
		!strings.Contains(err.Error(), "kubexm certs recover prod -f config.yaml") {
		t.Errorf("without key pairs: %v", err)
	}
}

// TestDeletedWithoutAState: hosts of the config file that say that they are the cluster's are not left behind.
func TestDeletedWithoutAState(t *testing.T) {
	root := t.TempDir()
	code, stdout, stderr := runIn(t, root, "delete", "cluster", "-f", configFile(t, silentHosts), "--yes")
	if code != exitOK || !strings.Contains(stdout, "nothing to delete") || !strings.Contains(stderr, "Warning: host cp1 does not say") {
		t.Errorf("hosts that do not answer: exit code %d: %s%s", code, stdout, stderr)
	}
	if stateOf(t, root).Exists() {
		t.Error("a state was made")
	}
	d := &declared{Cluster: &config.Cluster{Name: "prod"}}
	got := d.strays(map[string]*host.Facts{
		"fresh": {}, "silent": nil, "ours": {Owner: &host.Owner{Cluster: "prod"}}, "managed": {Owner: &host.Owner{Cluster: "default/prod"}},
		"other": {Owner: &host.Owner{Cluster: "fleet/prod"}},
	})
	if diff := cmp.Diff([]string{"managed", "ours"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestKnownHostsAreThere: a file of keys that is named and not there is refused, before any key is accepted.
func TestKnownHostsAreThere(t *testing.T) {
	for _, command := range [][]string{{"plan"}, {"create", "cluster"}, {"certs", "check"}} {
		code, _, stderr := runIn(t, t.TempDir(), append(command, "-f", configFile(t, silentHosts), "--known-hosts", "mistyped", "--accept-new-host-keys")...)
		if code != exitUsage || !strings.Contains(stderr, "--known-hosts: stat mistyped") {
			t.Errorf("%s: exit code %d: %s", command, code, stderr)
		}
	}
}

// TestCredentialsAreDeclared: a cluster is not up to date when its hosts are logged in to with another password than before. The digest
// tells nobody what that is.
func TestCredentialsAreDeclared(t *testing.T) {
	digest := func(dir clusterdir.Dir, content string) string {
		t.Helper()
		c, _, err := config.Parse([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		d := &declared{Cluster: c, dir: dir, bundle: &artifact.Bundle{}}
		if d.hosts, err = access.New(c.Hosts, access.Options{}); err != nil {
			t.Fatal(err)
		}
		sum, err := d.digest()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	dirs := []clusterdir.Dir{stateOf(t, t.TempDir()), stateOf(t, t.TempDir())}
	for i, dir := range dirs {
		for _, file := range []string{"sa.key", "sa.crt"} {
			if err := dir.Write([]byte{byte('0' + i)}, "secrets", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	was := digest(dirs[0], silentHosts)
	if again := digest(dirs[0], silentHosts); again != was {
		t.Errorf("the same is %s and %s", was, again)
	}
	if elsewhere := digest(dirs[1], silentHosts); elsewhere == was {
		t.Error("without a key of the cluster's the digest can be guessed")
	}
	for _, old := range []string{"user: jump, password: secret", "192.0.2.2, password: secret"} {
		if now := digest(dirs[0], strings.Replace(silentHosts, old, strings.Replace(old, "secret", "new", 1), 1)); now == was {
			t.Errorf("another than %q is the same", old)
		}
	}
}

// TestDeletedByNameAndFile: who gives both means one cluster.
func TestDeletedByNameAndFile(t *testing.T) {
	file := configFile(t, silentHosts)
	for _, c := range []struct {
		args []string
		file string
		want string // in the error; else the name is prod
	}{
		{[]string{"prod"}, "", ""}, {nil, file, ""}, {[]string{"prod"}, file, ""},
		{[]string{"dev"}, file, "metadata.name: it declares the cluster prod, not dev"}, {nil, "", "give the cluster's name"},
	} {
		name, err := clusterName(c.args, c.file)
		if c.want == "" && (err != nil || name != "prod") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, %q: %q, %v", c.args, c.file, name, err)
		}
	}
}

// TestReachedByTheFile: what the config file says of a host comes before what is remembered, which is for hosts that it does not have.
func TestReachedByTheFile(t *testing.T) {
	dir := stateOf(t, t.TempDir())
	known := &clusterdir.Inventory{Cluster: "prod", Hosts: []clusterdir.Host{
		{Name: "cp1", Address: "192.0.2.8", NeedsPassword: true}, {Name: "old", Address: "192.0.2.9"}, {Name: "older", NeedsPassword: true},
	}}
	hosts, err := (&app{}).reachKnown(&source{file: configFile(t, silentHosts)}, dir, known)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"cp1": "192.0.2.1", "w1": "192.0.2.2", "old": "192.0.2.9", "older": ""} {
		if got := hosts.Address(name); got != want {
			t.Errorf("%s is reached at %q, want %q", name, got, want)
		}
	}
}

// TestHostsOfPlansAreRemembered: a host that a plan was applied to stays in the inventory until somebody has reset it or a management plane
// has it, whatever is declared; the plane resets its own, and a deletion the others.
func TestHostsOfPlansAreRemembered(t *testing.T) {
	dir := stateOf(t, t.TempDir())
	was := &clusterdir.Inventory{Cluster: "prod", Hosts: []clusterdir.Host{
		{Name: "cp1", Applied: true}, {Name: "w1"}, {Name: "dropped", Role: spec.RoleWorker, Applied: true}, {Name: "never"},
	}}
	if err := dir.WriteInventory(was); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse([]byte(silentHosts))
	if err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: c, dir: dir, bundle: &artifact.Bundle{}}
	if d.hosts, err = access.New(c.Hosts, access.Options{}); err != nil {
		t.Fatal(err)
	}
	known := d.inventory()
	if got, want := (inventory{known}).names(), []string{"cp1", "w1", "dropped"}; !slices.Equal(got, want) {
		t.Errorf("hosts %v, want %v", got, want)
	}
	if diff := cmp.Diff([]string{"cp1", "dropped"}, known.Applied()); diff != "" {
		t.Error(diff)
	}
	c.Spec.OnFailure = spec.FailureUndoRun // for plans, which are applied without the config file
	if got := d.inventory().OnFailure; got != spec.FailureUndoRun {
		t.Errorf("on failure: %q", got)
	}
	d.managed = true
	if got, want := (inventory{d.inventory()}).names(), []string{"cp1", "w1", "dropped", "never"}; !slices.Equal(got, want) {
		t.Errorf("a management plane has it, and hosts are %v, want %v", got, want)
	}
	plane := &rollout.Snapshot{Hosts: []infrav1.KubexmHost{
		{ObjectMeta: metav1.ObjectMeta{Name: "cp1"}, Spec: infrav1.KubexmHostSpec{ClaimRef: infrav1.MachineReference{Name: "m"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "dropped"}},
	}}
	if got := d.forgotten(known, plane); !slices.Equal(got, []string{"dropped"}) {
		t.Errorf("forgotten: %v", got)
	}
	known.SetApplied(plane.InUse(), false)
	if got := known.Applied(); !slices.Equal(got, []string{"dropped"}) {
		t.Errorf("reset beside what the plane resets: %v", got)
	}
}
