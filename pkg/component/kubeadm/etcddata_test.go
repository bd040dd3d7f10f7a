// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nulltest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// The place of etcd's data is made once. Where it was made and is gone, the step fails, and makes none in its place.
func TestEtcdData(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	data := kubeadm.EtcdData(c, n, true, nil, p.path("restoring"), p.path("halted"))
	command := etcdDataCommand(data)
	run := func() (string, bool) {
		return p.run(t.Context(), command.Argv, "data="+p.path("data"), "begun="+p.path("begun"), "patch="+p.path("token"))
	}
	check := func() bool {
		argv := slices.Clone(command.Done.Check)
		argv[len(argv)-1] = p.path("begun")
		_, ok := p.run(t.Context(), append([]string{"/usr/bin/env"}, argv...))
		return ok
	}
	p.write("data/.keep", "")
	if check() {
		t.Fatal("it is there before it is made")
	}
	if said, ok := run(); !ok {
		t.Fatal(said)
	}
	token := p.read("token")
	if !regexp.MustCompile(`"--initial-cluster-token=prod-[0-9a-f]{16}"`).MatchString(token) || !check() {
		t.Errorf("the token is given by %q", token)
	}
	// Cut before the link was made: the token stays.
	_ = os.Remove(p.path("begun"))
	if said, ok := run(); !ok || p.read("token") != token {
		t.Errorf("%s: the token is %q, and was %q", said, p.read("token"), token)
	}

	// The whole step waits while a restore is under way.
	free := data.(step.Sequence).Parts[0].(step.Command)
	if said, ok := p.run(t.Context(), free.Done.Check); !ok {
		t.Errorf("no restore is under way, and it says %q", said)
	}
	for _, mark := range []string{"restoring", "halted"} {
		p.write(mark, "id")
		for _, argv := range [][]string{free.Done.Check, free.Argv} {
			if said, ok := p.run(t.Context(), argv); ok || !strings.Contains(said, "etcd is being restored ("+p.path(mark)+")") {
				t.Errorf("while a restore is under way: %t, %s", ok, said)
			}
		}
		_ = os.Remove(p.path(mark))
	}

	if err := os.Rename(p.path("data"), p.path("elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.path("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if check() {
		t.Error("the data is gone, and nobody sees it")
	}
	said, ok := run()
	if left, _ := os.ReadDir(p.path("data")); ok || !strings.Contains(said, "has begun before and finds no data") || len(left) > 0 {
		t.Errorf("it says %q, and leaves %v", said, left)
	}
	_ = os.Remove(p.path("data"))
	if err := os.Rename(p.path("elsewhere"), p.path("data")); err != nil || !check() {
		t.Errorf("it is back, and not seen: %v", err)
	}
}

// A host that is to begin the cluster, and has no data, begins none beside one that is there: as where the first of three was reset.
func TestEtcdDataBesideOthers(t *testing.T) {
	other := func(name string, at int) spec.Member {
		return spec.Member{Name: name, Address: fmt.Sprintf("127.78.%d.%d", os.Getpid()%250, at)}
	}
	c, n := of(90)
	n2, n3 := other("n2", 2), other("n3", 3)
	p := newControlPlane(t)
	p.write("data/.keep", "")
	run := func() (string, bool) {
		argv := etcdDataCommand(kubeadm.EtcdData(c, n, true, []spec.Member{n2, n3})).Argv
		return p.run(t.Context(), argv, "data="+p.path("data"), "begun="+p.path("begun"), "patch="+p.path("token"))
	}
	etcd, err := net.Listen("tcp", net.JoinHostPort(n3.Address, "2379"))
	if err != nil {
		t.Fatal(err)
	}
	said, ok := run()
	if want := "etcd listens on port 2379 of n3 (" + n3.Address + "). n1 was to begin one"; ok || !strings.Contains(said, want) {
		t.Errorf("%t, it says %q, want %q", ok, said, want)
	}
	for _, name := range []string{"data/member", "token", "begun"} {
		if _, err := os.Lstat(p.path(name)); err == nil {
			t.Errorf("it made %s", name)
		}
	}
	// What has data is of that cluster.
	p.write("data/member/wal/0.wal", "")
	if said, ok := run(); !ok {
		t.Error(said)
	}
	for _, name := range []string{"data/member", "token", "begun"} {
		if err := os.RemoveAll(p.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	if said, ok := run(); !ok || p.read("token") == "" {
		t.Errorf("nobody listens, and it says %q", said)
	}
}

// podsOfKubeadm are members that kubeadm makes.
type podsOfKubeadm struct{ nulltest.Etcd }

func (podsOfKubeadm) IsPod() bool { return true }

// The host that begins the cluster is given the others, and no other host is.
func TestEtcdDataKnowsOthers(t *testing.T) {
	for mode, want := range map[spec.BootstrapMode]string{spec.BootstrapInit: "others=n0=10.0.0.9", spec.BootstrapJoin: "others="} {
		in := component.Inputs{Target: *target(spec.RoleControlPlane)}
		in.Etcd, in.Runtime, in.Network = podsOfKubeadm{}, nulltest.Runtime{}, nulltest.Network{}
		in.Target.BootstrapMode = mode
		in.Target.Members = append(in.Target.Members, spec.Member{Name: "n0", Role: spec.RoleControlPlane, Address: "10.0.0.9"},
			spec.Member{Name: "lb", Role: spec.RoleLoadBalancer, Address: "10.0.0.7"})
		steps := kubeadm.Kubernetes{}.ControlPlane(in)[0].Steps
		at := slices.IndexFunc(steps, func(s step.Step) bool { return s.Meta().Name == "kubeadm/etcd-data" })
		if argv := etcdDataCommand(steps[at]).Argv; !slices.Contains(argv, want) {
			t.Errorf("%s: %q lacks %s", mode, argv[:8], want)
		}
	}
}

// etcdDataCommand is the part of the step that makes the directory.
func etcdDataCommand(s step.Step) step.Command {
	for _, part := range s.(step.Sequence).Parts {
		if c, ok := part.(step.Command); ok && strings.HasPrefix(c.Title, "make the directory") {
			return c
		}
	}
	return step.Command{}
}

// Only the host that begins the cluster gives it a token. The patch for the pod is YAML.
func TestEtcdDataOfOneThatJoins(t *testing.T) {
	c, n := of(90)
	for _, part := range kubeadm.EtcdData(c, n, false, []spec.Member{{Name: "n0", Address: "10.0.0.9"}}).(step.Sequence).Parts[1:] {
		switch part := part.(type) {
		case step.Command:
			if !slices.Contains(part.Argv, "token=") || !slices.Contains(part.Argv, "others=") {
				t.Errorf("it gives a token, or asks others whether there is a cluster: %v", part.Argv)
			}
		case step.File:
			var pod map[string]any
			if err := yaml.UnmarshalStrict([]byte(part.Content.String()), &pod); err != nil {
				t.Error(err)
			}
		}
	}
}
