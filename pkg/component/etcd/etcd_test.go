// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var done = graph.Output[string]{Name: "etcd-begun"}

// settings are those of the first of three members.
func settings(form etcd.Form, change ...func(*etcd.Settings)) etcd.Settings {
	s := etcd.Settings{
		Name: "n1", Address: "192.168.0.11", Cluster: "prod", First: true, Form: form, Spec: spec.Etcd{DataDir: "/var/lib/etcd"},
		Members: []spec.Member{
			{Name: "n1", Role: spec.RoleControlPlane, Address: "192.168.0.11"},
			{Name: "n2", Role: spec.RoleControlPlane, Address: "192.168.0.12"},
			{Name: "n3", Role: spec.RoleControlPlane, Address: "192.168.0.13"},
		},
		Certificates: spec.Certificates{ValidityDays: 365, RenewBeforeDays: 90},
	}
	if form == etcd.Pod {
		s.Image = "registry.k8s.io/etcd:3.6.14-0"
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// tuned sets all that a user may say, with what a unit file would take for something else.
func tuned(s *etcd.Settings) {
	s.Spec = spec.Etcd{
		DataDir: "/data/100% etcd", HeartbeatIntervalMilliseconds: 250, ElectionTimeoutMilliseconds: 2500, SnapshotCount: 50000,
		AutoCompactionRetentionHours: 8, Metrics: spec.EtcdMetricsExtensive, QuotaBackendBytes: 8 << 30, MaxRequestBytes: 10 << 20,
		MaxSnapshots: 3, MaxWALs: 4, LogLevel: "warn",
		ExtraArgs: []spec.Arg{
			{Name: "wal-dir", Value: "/fast/etcd/wal"}, {Name: "max-txn-ops", Value: "$HOME \"\\"}, {Name: "snapshot-count", Value: "7"},
		},
	}
}

// used is used by a unit of its host.
func used(s *etcd.Settings) { s.Clients = []string{"kube-apiserver.service"} }

// v6 has addresses of IPv6.
func v6(s *etcd.Settings) {
	s.Address, s.First = "fd00::11", false
	s.Members = []spec.Member{{Name: "n1", Address: "fd00::11"}, {Name: "n2", Address: "fd00::12"}}
}

// text is a step as a person reads it: what each part makes, without the texts of scripts.
func text(s step.Step) string {
	var b strings.Builder
	m := s.Meta()
	fmt.Fprintf(&b, "%s: %s\n", m.Name, m.Description)
	if len(m.Takes)+len(m.Makes) > 0 {
		fmt.Fprintf(&b, "  takes %v makes %v\n", m.Takes, m.Makes)
	}
	for _, p := range s.(step.Sequence).Parts {
		switch p := p.(type) {
		case step.File:
			content := p.Content.String()
			if p.From != nil {
				content = "artifact " + p.From.Path
			}
			fmt.Fprintf(&b, "  file %s %04o: %s\n", p.Path, p.Mode, strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n    "))
		case step.Directory:
			fmt.Fprintf(&b, "  directory %s %04o\n", p.Path, p.Mode)
		case step.Claim:
			fmt.Fprintf(&b, "  claim %s\n", strings.Join(p.Paths, ", "))
		case step.Service:
			fmt.Fprintf(&b, "  service %s %s\n", p.Name, p.State)
		case step.Certificate:
			fmt.Fprintf(&b, "  certificate %s, key %s\n    of %s: CN %s O %v, names %v addresses %v, %v, for %s, renewed %s before\n",
				p.Path, p.KeyPath, p.Authority, p.CommonName, p.Organizations, p.DNSNames, p.Addresses, p.Usages,
				time.Duration(p.Validity), time.Duration(p.RenewBefore))
		case step.Command:
			fmt.Fprintf(&b, "  command %s\n", p.Title)
			for _, word := range p.Argv[1:slices.Index(p.Argv, "/bin/sh")] {
				if !strings.Contains(word, "\n") && !strings.HasPrefix(word, "digest=") {
					fmt.Fprintf(&b, "    %s\n", word)
				}
			}
		}
	}
	return b.String()
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings etcd.Settings
	}{
		{"unit", settings(etcd.Unit, used)}, {"unit-tuned", settings(etcd.Unit, tuned)}, {"unit-ipv6", settings(etcd.Unit, v6)},
		{"pod", settings(etcd.Pod)}, {"pod-tuned", settings(etcd.Pod, tuned)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.settings
			programs := []step.Artifact{{Path: "etcd/v3.6.14/amd64/etcdctl"}, {Path: "etcd/v3.6.14/amd64/etcdutl"}}
			var b strings.Builder
			for _, x := range []step.Step{
				etcd.Claim(s), etcd.Programs(programs), etcd.Certificates(s), etcd.Member(s, done, "before"),
				etcd.Members(s), etcd.Maintenance(s),
				etcd.ClientCertificates(s.Certificates, s.Name), etcd.ExternalClient("my-etcd"),
			} {
				b.WriteString(text(x) + "\n")
			}
			golden.File(t, filepath.Join("testdata", tt.name+".txt"), b.String())
		})
	}
}

// What the host puts into the pod has its place there, once.
func TestPodIsYAML(t *testing.T) {
	file := etcd.Member(settings(etcd.Pod, tuned), done).(step.Sequence).Parts[0].(step.File)
	content := file.Content.String()
	if strings.HasPrefix(file.Path, "/etc/kubernetes/manifests/") {
		t.Errorf("the kubelet would take the template %s for a pod", file.Path)
	}
	for _, word := range []string{`'@CONFIG@'`, `'@INITIAL_CLUSTER@'`, `'@INITIAL_CLUSTER_STATE@'`, `'@INITIAL_CLUSTER_TOKEN@'`} {
		if strings.Count(content, word) != 1 {
			t.Errorf("%s is in the pod %d times", word, strings.Count(content, word))
		}
	}
	var pod map[string]any
	if err := yaml.UnmarshalStrict([]byte(content), &pod); err != nil {
		t.Error(err)
	}
}

// A plan with these steps is data.
func TestStepsAreData(t *testing.T) {
	s := settings(etcd.Unit, tuned)
	for _, x := range []step.Step{etcd.Claim(s), etcd.Certificates(s), etcd.Member(s, done), etcd.Members(s), etcd.Maintenance(s)} {
		first, err := step.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		read, err := step.Unmarshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := step.Marshal(read); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is another after it was written and read (%v)", x.Meta().Name, err)
		}
	}
}

// The unit that is about to change and the restart for it are one act: the check tells of it before the file is written.
func TestMemberRestartsForAnotherUnit(t *testing.T) {
	plain, changed := settings(etcd.Unit), settings(etcd.Unit, tuned)
	check := func(s etcd.Settings) []string {
		parts := etcd.Member(s, done).(step.Sequence).Parts
		return parts[len(parts)-1].(step.Command).Done.Check
	}
	if cmp.Equal(check(plain), check(changed)) {
		t.Error("the check does not know which unit there must be")
	}
	facts := &host.Facts{Commands: map[string]host.Result{}}
	member := etcd.Member(plain, done)
	q := member.Observe().Commands
	if len(q) != 1 {
		t.Fatalf("it asks %d questions", len(q))
	}
	facts.Commands[q[0].ID] = host.Result{ExitCode: 1, Stdout: []byte("older than /etc/systemd/system/etcd.service\n")}
	parts := member.(step.Sequence).Parts
	d, err := parts[len(parts)-1].Precheck(step.View{Facts: facts})
	if err != nil || len(d) != 1 || d[0].From != "older than /etc/systemd/system/etcd.service" {
		t.Errorf("%v %v", d, err)
	}
}
