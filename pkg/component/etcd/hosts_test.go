// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/cis"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// machines are hosts with systemd on which the engine runs the steps.
type machines struct {
	t      *testing.T
	pool   *hosts.Pool
	bundle *artifact.Bundle
	ca     pki.KeyPair
	form   etcd.Form
	spec   spec.Etcd
}

func newMachines(t *testing.T, count int, form etcd.Form) *machines {
	t.Helper()
	m := &machines{t: t, form: form, spec: spec.Etcd{DataDir: "/var/lib/etcd", SnapshotCount: 5000}}
	var err error
	if m.bundle, err = artifact.Open(t.Context(), bundleDir(), nil); err != nil {
		t.Fatal(err)
	}
	if m.ca, err = pki.NewCA(pki.CARequest{CommonName: "etcd", Key: pki.ECDSAP256}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if m.pool, err = hosts.Start(ctx, hosts.Options{Name: fmt.Sprintf("etcd-%s-%d", form, os.Getpid()), Count: count}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *machines) engine() *engine.Engine {
	return engine.New(engine.Options{
		Dial: func(ctx context.Context, name string) (host.Host, error) {
			h := m.named(name)
			return ssh.Dial(ctx, lab.SSH(h))
		},
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			switch ref.String() {
			case "etcd/tls.crt":
				return m.ca.Cert, nil
			case "etcd/tls.key":
				return m.ca.Key.Reveal(), nil
			}
			return nil, fmt.Errorf("there is no secret %s", ref)
		},
		Artifacts: step.FromBundle(m.bundle), Holder: "etcd",
		Reader: event.ReaderFunc(func(e event.Event) {
			if e.Err != nil {
				m.t.Logf("%+v", e)
			}
		}),
	})
}

func (m *machines) named(name string) *hosts.Host {
	for _, h := range m.pool.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// programs are those of a component in the bundle.
func (m *machines) programs(component string, names ...string) []step.Artifact {
	m.t.Helper()
	files, err := m.bundle.Binaries(component, "", runtime.GOARCH)
	if err != nil {
		m.t.Fatal(err)
	}
	var all []step.Artifact
	for _, f := range files {
		a, err := step.ArtifactOf(m.bundle, f)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(names) == 0 || slices.Contains(names, f.Name) {
			all = append(all, a)
		}
	}
	return all
}

// steps are those of a member, after what a pod needs to run in.
func (m *machines) steps(s etcd.Settings, done graph.Output[string], after ...string) []step.Step {
	steps, programs := []step.Step{etcd.Claim(s)}, m.programs("etcd")
	if s.Form == etcd.Pod {
		steps, programs = append(steps, m.kubelet()...), m.programs("etcd", "etcdctl", "etcdutl")
	}
	return append(steps,
		etcd.Programs(programs), etcd.Certificates(s), etcd.Member(s, done, after...), etcd.Members(s), etcd.Maintenance(s))
}

// run brings the first n hosts to what they must be as the members of one cluster, all at once.
func (m *machines) run(n int) error {
	m.t.Helper()
	var members, leaving []spec.Member
	for i, h := range m.pool.Hosts {
		member := spec.Member{Name: h.Name, Role: spec.RoleControlPlane, Address: h.Address}
		if i < n {
			members = append(members, member)
		} else {
			leaving = append(leaving, member)
		}
	}
	certificates := spec.Certificates{ValidityDays: 365, RenewBeforeDays: 90}
	begun := graph.Output[string]{Name: "begun"}
	b := plan.New("Etcd", "test")
	for i, member := range members {
		s := etcd.Settings{
			Name: member.Name, Address: member.Address, Cluster: "prod", Spec: m.spec, First: i == 0, Members: members, Leaving: leaving,
			Certificates: certificates, Form: m.form,
		}
		if m.form == etcd.Pod {
			s.Image = m.image("etcd").Ref
		}
		done, after := begun, []string(nil)
		if i > 0 {
			done, after = graph.Output[string]{Name: "joined/" + s.Name}, []string{begun.Name}
		}
		b.Host(s.Name, plan.Module{Name: "etcd", Tasks: []plan.Task{{Name: "etcd", Steps: m.steps(s, done, after...)}}})
	}
	p, err := b.Plan()
	if err != nil {
		m.t.Fatal(err)
	}
	began := time.Now()
	report, err := m.engine().Run(m.t.Context(), p)
	m.t.Logf("%d hosts in %s: %d steps changed", n, time.Since(began).Round(time.Millisecond), report.Total().Changed)
	if err == nil {
		again, err := m.engine().Run(m.t.Context(), p)
		if err != nil || again.Total().Changed != 0 {
			m.t.Errorf("a second run changes %d steps (%v)", again.Total().Changed, err)
		}
	}
	return err
}

func (m *machines) must(n int) {
	m.t.Helper()
	if err := m.run(n); err != nil {
		var e *engine.Error
		if errors.As(err, &e) {
			m.t.Fatalf("%+v", e)
		}
		m.t.Fatal(err)
	}
}

// sh runs a script of a line on a host, as root.
func (m *machines) sh(i int, script string) string {
	m.t.Helper()
	out, err := m.pool.Hosts[i].Command(m.t.Context(), "sh", "-c", script).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %s: %v: %s", m.pool.Hosts[i].Name, script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// ctl is etcdctl at the member of a host.
func (m *machines) ctl(i int, words string) string {
	m.t.Helper()
	name := m.pool.Hosts[i].Name
	return m.sh(i, fmt.Sprintf(
		"cd /etc/kubexm/etcd/ssl; etcdctl --cacert=ca.pem --cert=admin-%s.pem --key=admin-%s-key.pem %s", name, name, words))
}

func (m *machines) wantVoters(want int) {
	m.t.Helper()
	list := m.ctl(0, "member list")
	if got := strings.Count(list, ", started, "); got != want || strings.Contains(list, "true") {
		m.t.Fatalf("want %d voting members, and have\n%s", want, list)
	}
}

func TestOnHosts(t *testing.T) {
	t.Parallel()
	m := newMachines(t, 3, etcd.Unit)
	before, err := m.pool.Hosts[2].Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.must(2)
	m.wantVoters(2)
	for _, h := range m.pool.Hosts[:2] { // the one that began, and one that joined
		t.Run("CIS/"+h.Name, func(t *testing.T) { cis.CheckEtcd(t, cis.Subject{Etcd: cis.EtcdUnit, Run: h.Exec}) })
	}

	// The third is cut while it joins, by what nobody can catch; the step is tried again.
	killed := make(chan error, 1)
	go func() {
		_, err := m.pool.Hosts[2].Exec(t.Context(), "sh", "-c",
			"until [ -e /etc/kubexm/etcd/initial.env ]; do sleep 0.02; done; pkill -KILL -f '[H]ow the data directory is to begin'")
		killed <- err
	}()
	m.must(3)
	if err := <-killed; err != nil {
		t.Errorf("the script was not cut: %v", err)
	}
	m.wantVoters(3)

	// It runs as an account of its own, which its data is of, also when root has put something there.
	if got := m.sh(1, "ps -C etcd -o user= | tr -d ' '; stat -c %U:%G:%a /var/lib/etcd"); got != "etcd\netcd:etcd:700" {
		t.Errorf("etcd runs as, and its data is of, %q", got)
	}
	m.sh(1, "chown -R root:root /var/lib/etcd/member; systemctl restart etcd; [ -z \"$(find /var/lib/etcd ! -user etcd)\" ]")
	m.wantVoters(3)

	// Another unit restarts them all, one after the other: there is a quorum for everyone who asks.
	started := m.sh(1, "systemctl show -p ActiveEnterTimestampMonotonic etcd")
	m.spec.SnapshotCount = 6000
	m.must(3)
	if m.sh(1, "systemctl show -p ActiveEnterTimestampMonotonic etcd") == started {
		t.Error("the unit was changed, and etcd runs as before")
	}
	// It comes back by itself.
	m.sh(1, "systemctl kill -s KILL etcd; until etcdctl --help >/dev/null && systemctl is-active etcd; do sleep 0.1; done")

	// The third is no member any more, and its host is reset.
	m.must(2)
	m.wantVoters(2)
	if _, err := m.engine().Undo(t.Context(), engine.Undo{Hosts: []string{m.pool.Hosts[2].Name}}); err != nil {
		t.Fatal(err)
	}
	after, err := m.pool.Hosts[2].Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := hosts.Diff(before, after); len(left) > 0 {
		t.Errorf("it is not as it was:\n%v", left)
	}
}
