// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// closable is a worker of another infrastructure that was enrolled, is what it must be, and is a Node. Only tests that say so have it
// dialled.
type closable struct {
	*foreigner
	config *bootstrapv1.KubexmConfig
	shared *bootstrapv1.KubexmClusterConfig
	node   metav1.ConditionStatus
	said   *events.FakeRecorder
}

func newClosable(t *testing.T) *closable {
	t.Helper()
	c := &closable{
		foreigner: newForeigner(t), shared: testScope().clusterConfig, node: metav1.ConditionTrue, said: events.NewFakeRecorder(20),
	}
	c.r.Events, c.r.Runner, c.r.Holder = c.said, NewRunner(t.Context(), 1, time.Second), "test"
	c.r.DriftCheckInterval = time.Hour
	c.r.Dial = func(context.Context, ssh.Config) (host.Host, error) {
		t.Error("the host is dialled")
		return nil, errors.New("dialled")
	}
	c.makeAuthority()
	c.config = c.foreigner.scope().config
	c.config.Generation = 3
	c.config.Spec.AccessPolicy, c.config.Spec.Reset.Policy = spec.AccessClosed, spec.ResetNever
	s := c.begin()
	for _, e := range []enrolled{{hostKey: "ecdsa-sha2-nistp521 AAAA"}, {retired: true}} {
		if err := c.r.keepHostKey(t.Context(), s, &e); err != nil {
			t.Fatal(err)
		}
	}
	c.wasOpen()
	return c
}

// makeAuthority gives the Cluster its certificate authority.
func (f *foreigner) makeAuthority() {
	f.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	if err != nil {
		f.Fatal(err)
	}
	if err := f.Create(f.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-ca"},
		Data:       map[string][]byte{"tls.crt": ca.Cert, "tls.key": ca.Key.Reveal()},
	}); err != nil {
		f.Fatal(err)
	}
}

// wasOpen has the status as it is before the access is closed.
func (c *closable) wasOpen() {
	c.config.Status.Host.HostKey, c.config.Status.KubernetesVersion = "ecdsa-sha2-nistp521 AAAA", "v1.36.3"
	for kind, reason := range map[string]string{
		bootstrapv1.HostReachableCondition:   bootstrapv1.HostReachableReason,
		bootstrapv1.PreflightPassedCondition: bootstrapv1.PreflightPassedReason,
		bootstrapv1.HostConvergedCondition:   bootstrapv1.HostConvergedReason,
		bootstrapv1.NodeJoinedCondition:      bootstrapv1.NodeJoinedReason,
	} {
		setTrue(c.config, kind, reason, "")
	}
}

// begin is a reconcile that has published and located.
func (c *closable) begin() *scope {
	c.Helper()
	s := c.foreigner.scope()
	s.config, s.clusterConfig = c.config, c.shared
	s.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443}
	s.machine.Spec.ClusterName, s.machine.Spec.Version = "prod", "v1.36.3"
	s.machine.Status.NodeRef.Name = "w1"
	conditions.Set(s.machine, metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: c.node, Reason: "R", Message: "the kubelet is gone",
	})
	c.publish(s)
	s.adapter = &located{host: infra.Host{Host: spec.Host{Name: "w1", Address: "10.1.0.2", InternalAddresses: []string{"10.1.0.2"}}}}
	if err := c.r.locate(c.Context(), s); err != nil {
		c.Fatal(err)
	}
	return s
}

// rest is a reconcile of a host that is closed.
func (c *closable) rest() *scope {
	c.Helper()
	s := c.begin()
	if goOn, _, err := c.r.restClosed(c.Context(), s); goOn || err != nil {
		c.Fatalf("goes on %v, %v", goOn, err)
	}
	summarise(c.config)
	return s
}

// closed has the access closed for what the host must be now.
func (c *closable) closed() {
	c.Helper()
	s := c.begin()
	target, err := targetOf(s)
	if err != nil {
		c.Fatal(err)
	}
	must, err := c.r.mustBe(c.Context(), s, &target)
	if err != nil {
		c.Fatal(err)
	}
	if err := c.r.keepAccess(c.Context(), c.config, accessRecord{state: accessClosing, closedFor: must, at: "10.1.0.2"}); err != nil {
		c.Fatal(err)
	}
	s.job = &hostrun.State[outcome]{What: closingAccess, Started: time.Now(), Ended: time.Now(), Result: outcome{note: "closed"}}
	if goOn, _, err := c.r.collectResult(c.Context(), s); goOn || err != nil || !s.ended {
		c.Fatalf("goes on %v, %v", goOn, err)
	}
}

// wants wants a condition to be so, and part of its message.
func (c *closable) wants(kind string, status metav1.ConditionStatus, reason, says string) {
	c.Helper()
	got := conditions.Get(c.config, kind)
	if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, says) {
		c.Errorf("%s: %+v, want %s %s with %q", kind, got, status, reason, says)
	}
}

// TestCloseIsDue: once the host is what it must be now, and its Node is known to Cluster API; not while something else goes on.
func TestCloseIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope, *hostCache)
		due    bool
		after  bool // it is tried again later
	}{
		"all is so":                    {due: true},
		"it is open":                   {change: func(s *scope, _ *hostCache) { s.config.Spec.AccessPolicy = spec.AccessOpen }},
		"nothing is said":              {change: func(s *scope, _ *hostCache) { s.config.Spec.AccessPolicy = "" }},
		"no bootstrap data opened it":  {change: func(s *scope, _ *hostCache) { s.door = nil }},
		"it is to become another":      {change: func(_ *scope, m *hostCache) { m.input = "b" }},
		"it has drifted":               {change: func(_ *scope, m *hostCache) { m.drifted = true }},
		"this process knows it not":    {change: func(_ *scope, m *hostCache) { *m = hostCache{} }},
		"something else is to be done": {change: func(s *scope, _ *hostCache) { s.needed.act = look }},
		"it has not settled":           {change: func(_ *scope, m *hostCache) { m.turn = true }},
		"it has a turn": {change: func(s *scope, _ *hostCache) {
			s.clusterConfig.Status.Turns = []bootstrapv1.Turn{{ConfigName: s.config.Name}}
		}},
		"no Node has joined": {change: func(s *scope, _ *hostCache) {
			setFalse(s.config, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeNotReadyReason, "")
		}},
		"nobody knows the Node": {change: func(s *scope, _ *hostCache) { s.machine.Status.NodeRef = clusterv1.MachineNodeReference{} }},
		"it was closed":         {change: func(s *scope, _ *hostCache) { s.door.closed.state = accessClosed }},
		"it was begun": {due: true, change: func(s *scope, m *hostCache) {
			s.door.closed.state, s.planned, *m = accessClosing, nil, hostCache{}
			s.config.Spec.AccessPolicy = spec.AccessOpen // too late
		}},
		"it has failed just now": {after: true, change: func(s *scope, _ *hostCache) {
			o := s.config.Status.OperationFor(bootstrapv1.CloseAccessOperation)
			o.Outcome, o.EndTime = bootstrapv1.RunFailed, metav1.Now()
		}},
		"it has failed a while ago": {due: true, change: func(s *scope, _ *hostCache) {
			o := s.config.Status.OperationFor(bootstrapv1.CloseAccessOperation)
			o.Outcome, o.EndTime = bootstrapv1.RunFailed, metav1.NewTime(time.Now().Add(-closeAgain))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClosable(t)
			s, m := c.begin(), hostCache{input: "a", converged: true}
			target, err := targetOf(s)
			if err != nil {
				t.Fatal(err)
			}
			s.planned, s.needed = &job{input: "a", target: target}, need{act: rest, after: time.Hour}
			if tc.change != nil {
				tc.change(s, &m)
			}
			c.r.store(c.config.UID, m)
			due, err := c.r.closeIsDue(t.Context(), s)
			if err != nil || (due != nil) != tc.due || (s.needed.after < time.Hour) != tc.after {
				t.Errorf("due %v, again in %s, %v", due != nil, s.needed.after, err)
			}
		})
	}
}

// TestRefusesToClose: what cannot be is refused before the host is touched, with what to do.
func TestRefusesToClose(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"a worker":     {change: func(*scope) {}},
		"it is open":   {change: func(s *scope) { s.config.Spec.AccessPolicy = ""; s.config.Spec.Reset.Policy = "" }},
		"gone if away": {change: func(s *scope) { s.config.Spec.Reset.Policy = spec.ResetWhenReachable }},
		"a control plane's": {change: func(s *scope) {
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}, want: "members leave"},
		"one that calls": {change: func(s *scope) { s.config.Spec.Access.Connection = spec.ConnectionCallHome }, want: "CallHome"},
		"an inventory's": {change: func(s *scope) { s.door = nil }, want: "no bootstrap data has opened the host"},
		"an image's":     {change: func(s *scope) { s.door.keys.areDeclared = true }, want: "it is the image that lets us in"},
		"back to the pool": {change: func(s *scope) {
			s.config.Spec.Reset.Policy = ""
		}, want: "set reset.policy to WhenReachable or Never"},
		"the cluster's": {change: func(s *scope) {
			s.config.Spec.Reset.Policy, s.clusterConfig.Spec.Cluster.Reset.Policy = "", spec.ResetAlways
		}, want: "set reset.policy"},
		"it is closed already": {change: func(s *scope) { s.config.Spec.Reset.Policy, s.door.closed.state = "", accessClosed }},
	} {
		c := newClosable(t)
		s := c.begin()
		tc.change(s)
		err := s.refusesToClose()
		if (err == nil) != (tc.want == "") ||
			err != nil && (!strings.HasPrefix(err.Error(), "spec.accessPolicy: Closed: ") || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if _, planned := c.r.jobFor(t.Context(), s); err != nil && !errors.As(planned, new(*invalid)) {
			t.Errorf("%s: it is planned for: %v", name, planned)
		}
	}
}

// TestClose: it is written down that it begins when the host was entered and before anything is closed there. From then on, that the host
// refuses us means that it is closed; nothing else does.
func TestClose(t *testing.T) {
	private, err := ssh.NewUserKey("")
	if err != nil {
		t.Fatal(err)
	}
	good, bad := ssh.Auth{PrivateKeys: []secret.Value{private}}, ssh.Auth{PrivateKeys: []secret.Value{secret.New([]byte("no key"))}}
	failed := func(kind host.Kind) error { return &host.Error{Kind: kind, Host: "w1", Message: "why"} }
	jump := &ssh.Config{Name: "jump"}
	lost := errors.New("the API server is away")
	const whole = "dial w1, keep Closing a at 10.1.0.2, close"
	for name, tc := range map[string]struct {
		state   accessState
		auth    ssh.Auth // a good one, if none is given
		jump    *ssh.Config
		noLogin error
		answers map[string]error // of w1 and of jump
		keep    error
		exit    int // of the script
		// want is what is done, in order.
		want      string
		err, note string
	}{
		"it lets us in":       {want: whole, note: "is closed"},
		"it is closed again":  {state: accessClosing, want: whole, note: "is closed"},
		"that cannot be kept": {keep: lost, want: "dial w1, keep Closing a at 10.1.0.2", err: "is away"},
		"sshd is broken":      {exit: 1, want: whole, err: "cannot close the door"},
		"refused, and never begun": {
			answers: map[string]error{"w1": failed(host.KindAuth)}, want: "dial w1", err: "why",
		},
		"another, and never begun": {
			answers: map[string]error{"w1": failed(host.KindHostKey)}, want: "dial w1", err: "why",
		},
		"refused, as was begun": {
			state: accessClosing, answers: map[string]error{"w1": failed(host.KindAuth)}, want: "dial w1", note: "the host refuses us",
		},
		"its key went, as begun": {
			state: accessClosing, answers: map[string]error{"w1": failed(host.KindHostKey)}, want: "dial w1", note: "the host refuses us",
		},
		"it does not answer": {
			state: accessClosing, answers: map[string]error{"w1": failed(host.KindUnreachable)}, want: "dial w1", err: "why",
		},
		"it lets in without sudo": {
			state: accessClosing, answers: map[string]error{"w1": failed(host.KindPrivilege)}, want: "dial w1", err: "why",
		},
		"no credentials": {state: accessClosing, noLogin: failed(host.KindAuth), err: "why"},
		"credentials of no use": {
			state: accessClosing, auth: bad, answers: map[string]error{"w1": failed(host.KindAuth)}, want: "dial w1", err: "why",
		},
		"refused by the jump host": {
			state: accessClosing, jump: jump, answers: map[string]error{"w1": failed(host.KindAuth), "jump": failed(host.KindAuth)},
			want: "dial w1, dial jump", err: "why",
		},
		"refused, through one": {
			state: accessClosing, jump: jump, answers: map[string]error{"w1": failed(host.KindAuth)},
			want: "dial w1, dial jump", note: "the host refuses us",
		},
		"it is another cluster's": {want: "dial w1", err: "foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			m := fake.New("w1")
			m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
				if c.Title == "close the door" {
					done = append(done, "close")
				}
				return host.Result{ExitCode: tc.exit}
			}
			access := ssh.Config{Name: "w1", Auth: good, Jump: tc.jump}
			if len(tc.auth.PrivateKeys) > 0 {
				access.Auth = tc.auth
			}
			var told []event.Type
			j := &closing{
				withoutPlan: withoutPlan{
					what: closingAccess, host: "w1", reader: event.ReaderFunc(func(e event.Event) { told = append(told, e.Type) }),
					ownership: func(context.Context, string) (host.Ownership, error) {
						if tc.err == "foreign" {
							return host.Ownership{}, errors.New("foreign")
						}
						return host.Ownership{}, nil
					},
				},
				record: accessRecord{state: tc.state, closedFor: "a"},
				access: func(context.Context) (ssh.Config, error) { return access, tc.noLogin },
				connect: func(_ context.Context, c ssh.Config) (host.Host, error) {
					done = append(done, "dial "+c.Name)
					if err := tc.answers[c.Name]; err != nil {
						return nil, err
					}
					return &at{m.Connect(), "10.1.0.2"}, nil
				},
				keep: func(_ context.Context, a accessRecord) error {
					done = append(done, fmt.Sprintf("keep %s %s at %s", a.state, a.closedFor, a.at))
					return tc.keep
				},
			}
			out := j.do(t.Context(), nobody)
			if got := strings.Join(done, ", "); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if (out.err == nil) != (tc.err == "") || out.err != nil && !strings.Contains(out.err.Error(), tc.err) ||
				!strings.Contains(out.note, tc.note) {
				t.Errorf("it ends with %v, %q", out.err, out.note)
			}
			if len(told) != 4 || told[0] != event.RunStarted || told[3] != event.RunEnded {
				t.Errorf("it was told %v", told)
			}
		})
	}
}

// at is a connection to an address.
type at struct {
	host.Host
	address string
}

func (a *at) Address() string { return a.address }

// TestClosedHost: nothing of it is dialled, it is well as it is, and everybody who asks for something is answered.
func TestClosedHost(t *testing.T) {
	c := newClosable(t)
	opening := string(c.secret("w1").Data["value"])
	c.closed()
	keys := c.secret("w1-host-key").Data
	if string(keys[accessKey]) != "Closed" || len(keys[closedForKey]) != 71 || len(keys[hostPublicKey]) == 0 {
		t.Errorf("the Secret has %q", keys)
	}
	last := c.config.Status.Operation(bootstrapv1.CloseAccessOperation)
	if last.Outcome != bootstrapv1.RunSucceeded || last.Message != "closed" {
		t.Errorf("it is noted as %+v", last)
	}
	c.rest()
	if data := string(c.secret("w1").Data["value"]); data == opening || !strings.Contains(data, sentinel) || strings.Contains(data, "ssh") {
		t.Errorf("the bootstrap data opens the host again:\n%s", data)
	}
	well := func() {
		t.Helper()
		c.wants(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.AccessClosedReason, "nobody logs in there")
		c.wants(bootstrapv1.HostConvergedCondition, metav1.ConditionTrue, bootstrapv1.HostConvergedReason, "")
		c.wants(bootstrapv1.HostReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason, "")
		c.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason, "")
		if health := hosthealth.Of(c.config, "v1.36.3"); health.Phase != hosthealth.Healthy || hosthealth.Missing(c.config) != nil ||
			hosthealth.Problem(c.config, bootstrapv1.HostReachableCondition) != nil {
			t.Errorf("its health is %+v", health)
		}
		if hosthealth.Closed(c.config) == nil || hosthealth.Answers(c.config) {
			t.Error("it is said to answer")
		}
	}
	well()

	t.Run("its status is lost", func(t *testing.T) {
		c.config.Status = bootstrapv1.KubexmConfigStatus{}
		c.rest()
		well()
	})
	t.Run("its Node is not ready", func(t *testing.T) {
		c.node = metav1.ConditionFalse
		c.rest()
		c.wants(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse, bootstrapv1.NodeNotReadyReason, "the kubelet is gone")
		c.node = metav1.ConditionTrue
		c.rest()
		well()
	})
	t.Run("it is to become another", func(t *testing.T) {
		c.config.Spec.System.Sysctls = []spec.Sysctl{{Name: "vm.swappiness", Value: "1"}}
		c.rest()
		c.wants(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, bootstrapv1.AccessClosedReason, "roll its MachineDeployment out")
		if health := hosthealth.Of(c.config, "v1.36.3"); health.Phase != hosthealth.Failed {
			t.Errorf("who waits for that waits for ever: %+v", health)
		}
		c.config.Spec.System.Sysctls = nil
		c.rest()
		well()
	})
	t.Run("it is to be open", func(t *testing.T) {
		c.config.Spec.AccessPolicy = spec.AccessOpen
		c.rest()
		c.wants(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.AccessClosedReason, "is not opened again")
		c.config.Spec.AccessPolicy = spec.AccessClosed
	})
	t.Run("somebody asks for something", func(t *testing.T) {
		asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		for annotation, kind := range map[string]bootstrapv1.OperationType{
			bootstrapv1.ConvergeAnnotation:            bootstrapv1.ConvergeOperation,
			bootstrapv1.CheckDriftAnnotation:          bootstrapv1.CheckDriftOperation,
			bootstrapv1.RebootAnnotation:              bootstrapv1.RebootOperation,
			bootstrapv1.RestartAnnotation:             bootstrapv1.RestartOperation,
			bootstrapv1.RenewCertificatesAnnotation:   bootstrapv1.RenewCertificatesOperation,
			bootstrapv1.CollectLogsAnnotation:         bootstrapv1.CollectLogsOperation,
			bootstrapv1.RecoverCertificatesAnnotation: bootstrapv1.RecoverCertificatesOperation,
			bootstrapv1.SaveEtcdAnnotation:            bootstrapv1.SaveEtcdOperation,
			bootstrapv1.BackupEtcdAnnotation:          bootstrapv1.BackupEtcdOperation,
			bootstrapv1.AskEtcdAnnotation:             bootstrapv1.AskEtcdOperation,
		} {
			c.config.Ask(annotation, asked)
			s := c.rest()
			last := c.config.Status.Operation(kind)
			if last.Outcome != bootstrapv1.RunFailed || !strings.Contains(last.Message, "the access to the host is closed") ||
				!s.asks(kind).IsZero() {
				t.Errorf("%s: it is noted as %+v", kind, last)
			}
		}
		before := len(c.said.Events)
		c.rest()
		if len(c.said.Events) != before {
			t.Error("it is told again")
		}
		well()
	})
	t.Run("its Secret is lost", func(t *testing.T) {
		if err := c.Delete(t.Context(), c.secret("w1-host-key")); err != nil {
			t.Fatal(err)
		}
		c.config.Status.Host.HostKey = "ecdsa-sha2-nistp521 AAAA"
		c.rest()
		c.wants(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.AccessClosedReason, "")
		c.wants(bootstrapv1.HostConvergedCondition, metav1.ConditionUnknown, bootstrapv1.AccessClosedReason, "w1-host-key was lost")
		data := string(c.secret("w1").Data["value"])
		if strings.Contains(data, "ssh") || string(c.secret("w1-host-key").Data[accessKey]) != "Closed" {
			t.Errorf("it is forgotten that it is closed:\n%s", data)
		}
	})
}

// TestCloseIsResumed: a manager that starts anew goes on with what was begun before it does anything else, whatever the policy is now.
func TestCloseIsResumed(t *testing.T) {
	c := newClosable(t)
	if err := c.r.keepAccess(t.Context(), c.config, accessRecord{state: accessClosing, closedFor: "sha256:a", at: "10.1.0.7"}); err != nil {
		t.Fatal(err)
	}
	c.config.Status, c.config.Spec.AccessPolicy = bootstrapv1.KubexmConfigStatus{}, spec.AccessOpen
	dialled := make(chan ssh.Config, 1)
	c.r.Dial = func(_ context.Context, access ssh.Config) (host.Host, error) {
		dialled <- access
		return nil, &host.Error{Kind: host.KindHostKey, Host: "w1", Message: "another key"}
	}
	s := c.begin()
	if data := string(c.secret("w1").Data["value"]); strings.Contains(data, "ssh") {
		t.Errorf("the bootstrap data opens the host again:\n%s", data)
	}
	if goOn, _, err := c.r.restClosed(t.Context(), s); goOn || err != nil {
		t.Fatalf("goes on %v, %v", goOn, err)
	}
	if access := <-dialled; access.Address != "10.1.0.7" || !slices.Equal(access.HostKey.Pinned, []string{"ecdsa-sha2-nistp521 AAAA"}) {
		t.Errorf("%s is dialled, which is to show %v", access.Address, access.HostKey.Pinned)
	}
	s = c.begin()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		job, found := c.r.Runner.Observe(s.key)
		s.job = &job
		return found && !job.Running(), nil
	}); err != nil {
		t.Fatal(err)
	}
	if goOn, _, err := c.r.collectResult(t.Context(), s); goOn || err != nil {
		t.Fatalf("goes on %v, %v", goOn, err)
	}
	if keys := c.secret("w1-host-key").Data; string(keys[accessKey]) != "Closed" || string(keys[closedForKey]) != "sha256:a" {
		t.Errorf("the Secret has %q", keys)
	}
	c.wants(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.AccessClosedReason, "is not opened again")
}

// TestCloseFails: it is said why, once, and nothing is taken for closed.
func TestCloseFails(t *testing.T) {
	c := newClosable(t)
	for range 2 {
		s := c.begin()
		s.job = &hostrun.State[outcome]{What: closingAccess, Started: time.Now(), Ended: time.Now(), Result: outcome{
			err: &host.Error{Kind: host.KindUnreachable, Host: "w1", Message: "no route"},
		}}
		if goOn, _, err := c.r.collectResult(t.Context(), s); goOn || err != nil {
			t.Fatalf("goes on %v, %v", goOn, err)
		}
	}
	c.wants(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.UnreachableReason, "no route")
	last := c.config.Status.Operation(bootstrapv1.CloseAccessOperation)
	if last.Outcome != bootstrapv1.RunFailed || !strings.Contains(last.Message, "no route") {
		t.Errorf("it is noted as %+v", last)
	}
	if len(c.said.Events) != 1 || !strings.HasPrefix(<-c.said.Events, "Warning AccessNotClosed") {
		t.Error("it is told often, or not")
	}
	if s := c.begin(); s.isClosing() {
		t.Error("it is taken for closed")
	}
}

// TestClosedHostLeaves: nobody tries to reset it, and what was begun ends before.
func TestClosedHostLeaves(t *testing.T) {
	c := newClosable(t)
	c.closed()
	s := c.begin()
	for _, policy := range []spec.ResetPolicy{spec.ResetNever, spec.ResetWhenReachable, spec.ResetAlways} {
		c.config.Spec.Reset.Policy = policy
		if why := s.notReset(&hostCache{}, time.Now()); !strings.Contains(why.String(), "its access is closed") {
			t.Errorf("%s: %q", policy, why)
		}
	}
	s.door.closed.state = accessClosing
	if why := s.notReset(&hostCache{}, time.Now()); !strings.Contains(why.String(), "it may be open still") {
		t.Errorf("begun: %q", why)
	}
	s.job = &hostrun.State[outcome]{What: closingAccess, Started: time.Now()}
	if goOn, _, err := c.r.cancelRunning(t.Context(), s); goOn || err != nil {
		t.Errorf("while it is being closed, it goes on: %v, %v", goOn, err)
	}
	s.job.Ended = time.Now()
	if goOn, _, err := c.r.cancelRunning(t.Context(), s); !goOn || err != nil {
		t.Errorf("its result is not taken in: %v, %v", goOn, err)
	}
}

// TestClosedHostIsReplaced: nothing is tried with the host of a Machine that is unhealthy.
func TestClosedHostIsReplaced(t *testing.T) {
	c := newClosable(t)
	c.closed()
	s := c.begin()
	s.machine.Spec.Bootstrap.ConfigRef.Name = "w1"
	p := &remediationCase{machine: s.machine, config: c.config}
	if why := p.notRemediable(); why == nil || why.Reason != bootstrapv1.AccessClosedReason {
		t.Errorf("it is tried with: %v", why)
	}
}
