// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package reconcilers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// anywhere is an infrastructure that knows where a host may be, and nothing of how it is entered.
type anywhere struct {
	adapter
	candidates []string
}

func (a *anywhere) Host(context.Context, infra.Subject) (*infra.Host, error) {
	return &infra.Host{
		Host:       spec.Host{Name: "w1", Address: a.candidates[0], InternalAddresses: a.candidates},
		Candidates: slices.Clone(a.candidates),
	}, nil
}

func (*anywhere) HasDoor() bool { return true }

func (*anywhere) Refuses(bootstrapv1.BootstrapFormat) string { return "" }

// TestEnrollmentOnHost: of two machines, the one that has run the bootstrap data is the host, known by a key that was made there, and it
// is left as it was. It may be reached by IPv6 alone.
func TestEnrollmentOnHost(t *testing.T) {
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("enroll-%d", os.Getpid()), Count: 2, DualStack: true})
	other, h := pool.Hosts[0], pool.Hosts[1]
	if out, err := h.Command(t.Context(), "ip", "address", "add", "198.51.100.7/24", "dev", "eth0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Run("among others", func(t *testing.T) { enrolls(t, h, h.Address, other.Address, h.Address) })
	t.Run("by IPv6 alone", func(t *testing.T) { enrolls(t, h, h.Address6, h.Address6) })
}

// enrolls enrolls the host, which answers at one of the candidates, and leaves it as it was.
func enrolls(t *testing.T, h *hosts.Host, at string, candidates ...string) {
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := newForeigner(t)
	f.r.Dial, f.r.Events = DialSSH, events.NewFakeRecorder(10)
	f.r.Runner = NewRunner(t.Context(), 1, 0)
	infrastructure := &anywhere{candidates: candidates}
	config := f.scope().config
	var declared *bootstrapv1.KubexmClusterConfig
	begin := func() *scope {
		t.Helper()
		s := f.scope()
		s.config, s.adapter, s.clusterConfig = config, infrastructure, declared
		f.publish(s)
		if err := f.r.locate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	// enroll makes one attempt, if one is due.
	enroll := func() bool {
		t.Helper()
		s := begin()
		due, err := f.r.enrollIsDue(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if due == nil {
			return false
		}
		s.job = &hostrun.State[outcome]{What: enrolling, Started: time.Now(), Result: due.Do(t.Context(), nobody), Ended: time.Now()}
		if _, err := f.r.settleEnroll(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return true
	}

	if !enroll() || conditions.GetReason(config, bootstrapv1.HostReachableCondition) != bootstrapv1.WaitingForBootstrapDataReason {
		t.Errorf("before the bootstrap data was run: %+v", conditions.Get(config, bootstrapv1.HostReachableCondition))
	}
	var data map[string][]string
	if err := yaml.Unmarshal(f.secret("w1").Data["value"], &data); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Command(t.Context(), "bash", "-c", data["runcmd"][0]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// While sshd takes its configuration in, it refuses.
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return !enroll() || config.Status.Host.HostKey != "", nil
	}); err != nil {
		t.Fatalf("%v: %+v", err, conditions.Get(config, bootstrapv1.HostReachableCondition))
	}
	if !enroll() || enroll() {
		t.Error("one more attempt was to take the first key away, and be the last")
	}
	status, keys := config.Status.Host, f.secret("w1-host-key").Data
	if status.Address != at || !strings.HasPrefix(status.HostKey, "ecdsa-sha2-nistp521 ") ||
		!slices.Contains(status.ObservedAddresses, at) || string(keys[hostPublicKey]) != status.HostKey || len(keys[birthKey]) > 0 {
		t.Errorf("the Secret has %d keys, the status: %+v", len(keys), status)
	}
	s := begin()
	if !slices.Equal(s.host.InternalAddresses, []string{at}) ||
		!slices.Equal(s.host.Access.HostKeys.Pinned, []string{status.HostKey}) {
		t.Errorf("it is entered as %+v, its Node's addresses are %v", s.host.Access, s.host.InternalAddresses)
	}
	for first, network := range map[string]spec.Network{h.Address: {}, h.Address6: dualStack} {
		declared = &bootstrapv1.KubexmClusterConfig{}
		declared.Spec.Version, declared.Spec.Cluster.Network = "v1.36.3", network
		if target, err := targetOf(begin()); err != nil || target.Host.Address != at || target.Host.NodeAddress() != first {
			t.Errorf("%v: the host is %+v, and its Node is to be at %s", err, target.Host, first)
		}
	}
	// The infrastructure knows none of the addresses in the network that is declared.
	for network, want := range map[string]string{"198.51.100.0/24": "198.51.100.7", "192.0.2.0/24": ""} {
		declared = &bootstrapv1.KubexmClusterConfig{}
		declared.Spec.Cluster.Network.HostCIDRs = []string{network}
		if begin(); config.Status.Host.InternalAddress != want {
			t.Errorf("in the network %s, others reach the host at %q, want %q", network, config.Status.Host.InternalAddress, want)
		}
	}
	j := &job{options: f.r.optionsFor(s)}
	j.target.Host.Name = "w1"
	if err := j.closeDoor(t.Context()); err != nil {
		t.Fatal(err)
	}
	var diff []string
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		after, err := h.Snapshot(ctx)
		diff = hosts.Diff(before, after)
		return err == nil && len(diff) == 0, err
	}); err != nil {
		t.Errorf("%v: the host differs:\n%s", err, strings.Join(diff, "\n"))
	}
}
