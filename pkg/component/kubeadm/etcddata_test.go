// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// The place of etcd's data is made once. Where it was made and is gone, the step fails, and makes none in its place.
func TestEtcdData(t *testing.T) {
	p := newControlPlane(t)
	c, n := of(90)
	parts := kubeadm.EtcdData(c, n, true, p.path("restoring")).(step.Sequence).Parts
	command := parts[slices.IndexFunc(parts, func(s step.Step) bool { return step.KindOf(s) == "command" })].(step.Command)
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

	p.write("restoring", "id")
	if said, ok := run(); ok || check() || !strings.Contains(said, "is being restored") {
		t.Errorf("while a restore is under way: %t, %s", ok, said)
	}
	_ = os.Remove(p.path("restoring"))

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

// Only the host that begins the cluster gives it a token. The patch for the pod is YAML.
func TestEtcdDataOfOneThatJoins(t *testing.T) {
	c, n := of(90)
	for _, part := range kubeadm.EtcdData(c, n, false, "/none").(step.Sequence).Parts {
		switch part := part.(type) {
		case step.Command:
			if !slices.Contains(part.Argv, "token=") {
				t.Errorf("it gives a token: %v", part.Argv)
			}
		case step.File:
			var pod map[string]any
			if err := yaml.UnmarshalStrict([]byte(part.Content.String()), &pod); err != nil {
				t.Error(err)
			}
		}
	}
}
