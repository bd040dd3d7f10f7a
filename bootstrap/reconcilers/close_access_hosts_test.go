// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestAccessIsClosedOnHost: what the bootstrap data made is gone, nobody gets in by it again, and a manager that was cut in the middle goes
// on until it knows that. The host is as it was before.
func TestAccessIsClosedOnHost(t *testing.T) {
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("closeaccess-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	t.Run("at once", func(t *testing.T) { closes(t, h, nil) })
	// The manager ends when it is written down that the access is being closed.
	t.Run("cut in the middle", func(t *testing.T) {
		closes(t, h, func(_ context.Context, cut context.CancelCauseFunc, j *closing) {
			keep := j.keep
			j.keep = func(ctx context.Context, record accessRecord) error {
				defer cut(hostrun.ErrStopped)
				return keep(ctx, record)
			}
		})
	})
	// It ends when the host is closed, and it is not written down.
	t.Run("cut at the end", func(t *testing.T) {
		closes(t, h, func(_ context.Context, cut context.CancelCauseFunc, j *closing) {
			connect := j.connect
			j.connect = func(ctx context.Context, access ssh.Config) (host.Host, error) {
				c, err := connect(ctx, access)
				return &endsAfter{c, cut}, err
			}
		})
	})
}

// closes opens a host by its bootstrap data, and has its access closed; cut has the first attempt end early.
func closes(t *testing.T, h *hosts.Host, cut func(context.Context, context.CancelCauseFunc, *closing)) {
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := newForeigner(t)
	f.r.Dial, f.r.Events, f.r.Holder = DialSSH, events.NewFakeRecorder(50), "test"
	f.r.Runner = NewRunner(t.Context(), 1, 0)
	f.makeAuthority()
	config := f.scope().config
	config.Spec.AccessPolicy, config.Spec.Reset.Policy = spec.AccessClosed, spec.ResetNever
	begin := func() *scope {
		t.Helper()
		s := f.scope()
		s.config, s.clusterConfig = config, testScope().clusterConfig
		s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443}
		s.machine.Spec.ClusterName, s.machine.Spec.Version, s.machine.Status.NodeRef.Name = "prod", "v1.36.3", "w1"
		f.publish(s)
		s.adapter = &anywhere{candidates: []string{h.Address}}
		if err := f.r.locate(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	runData := func() {
		t.Helper()
		var data map[string][]string
		if err := yaml.Unmarshal(f.secret("w1").Data["value"], &data); err != nil {
			t.Fatal(err)
		}
		if out, err := h.Command(t.Context(), "bash", "-c", data["runcmd"][0]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	begin()
	runData()
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		s := begin()
		due, err := f.r.enrollIsDue(ctx, s)
		if err != nil || due == nil {
			return due == nil, err
		}
		s.job = &hostrun.State[outcome]{What: enrolling, Started: time.Now(), Result: due.Do(ctx, nobody), Ended: time.Now()}
		_, err = f.r.settleEnroll(ctx, s)
		return false, err
	}); err != nil {
		t.Fatalf("it is not enrolled: %v: %+v", err, config.Status)
	}
	open := begin()

	// attempt makes one, as the reconciler would, and returns how it ended. A manager that is cut takes nothing in of that.
	attempt := func(cut func(context.Context, context.CancelCauseFunc, *closing)) outcome {
		t.Helper()
		s := begin()
		target, err := targetOf(s)
		if err != nil {
			t.Fatal(err)
		}
		s.planned, s.needed = &job{input: "a", target: target}, need{act: rest}
		f.r.store(config.UID, hostCache{input: "a", converged: true})
		setTrue(config, bootstrapv1.HostConvergedCondition, bootstrapv1.HostConvergedReason, "")
		setTrue(config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeJoinedReason, "")
		config.Status.Operations = nil
		j, err := f.r.closingOf(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		if cut != nil {
			cut(ctx, stop, j)
		}
		out := j.do(ctx, nobody)
		if cut == nil {
			s.job = &hostrun.State[outcome]{What: closingAccess, Started: time.Now(), Ended: time.Now(), Result: out}
			if _, err := f.r.settleClose(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	if cut != nil {
		if out := attempt(cut); out.err != nil && !interrupted(out.err) {
			t.Errorf("it failed before it was cut: %v", out.err)
		}
		if got := string(f.secret("w1-host-key").Data[accessKey]); got != string(accessClosing) {
			t.Errorf("it is written down as %q", got)
		}
	}
	// What was cut may go on there for a moment, and sshd takes its configuration in.
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(context.Context) (bool, error) {
		out := attempt(nil)
		t.Logf("%v, %s", out.err, out.note)
		return out.err == nil, nil
	}); err != nil {
		t.Fatalf("%v: %+v", err, config.Status)
	}
	if keys := f.secret("w1-host-key").Data; string(keys[accessKey]) != string(accessClosed) || len(keys[closedForKey]) != 71 ||
		string(keys[closedAtKey]) != h.Address || len(keys[hostPublicKey]) == 0 {
		t.Errorf("the Secret has %q", keys)
	}
	var diff []string
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		after, err := h.Snapshot(ctx)
		diff = hosts.Diff(before, after)
		return err == nil && len(diff) == 0, err
	}); err != nil {
		t.Errorf("%v: the host differs:\n%s", err, strings.Join(diff, "\n"))
	}
	// The infrastructure runs the bootstrap data again.
	begin()
	runData()
	c, err := f.r.optionsFor(open).Dial(t.Context(), "w1")
	if err == nil {
		err = errors.Join(errors.New("it lets us in"), c.Close())
	}
	if kind := host.KindOf(err); kind != host.KindHostKey && kind != host.KindAuth {
		t.Errorf("got %v", err)
	}
	if out, err := h.Command(t.Context(), "rm", "-r", "/run/cluster-api").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// endsAfter cuts the manager when a command has ended on the host.
type endsAfter struct {
	host.Host
	cut context.CancelCauseFunc
}

func (e *endsAfter) Exec(ctx context.Context, c host.Command) (*host.Result, error) {
	defer e.cut(hostrun.ErrStopped)
	return e.Host.Exec(ctx, c)
}

// Address is that of the connection.
func (e *endsAfter) Address() string { return e.Host.(interface{ Address() string }).Address() }
