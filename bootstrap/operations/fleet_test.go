// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	authority = "sha256:" + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	content   = "snapshot"
	backupAt  = "/var/lib/kubexm/etcd-backups/etcd-prod-20261123T030000Z-cp1.db"
)

// order is what a restore does on each host, in the titles of its commands.
var order = []string{
	"send the snapshot, and find out whether it can be restored", "end the control plane", "end etcd, whose data is restored",
	"restore etcd's data from the snapshot", "start etcd with the restored data", "wait until the restored etcd has quorum",
	"start the control plane", "end the restore",
}

// fleet is an API with a Cluster of control plane hosts, the hosts, which are run by the real engine, and a restore.
type fleet struct {
	*testing.T
	api      client.WithWatch
	names    []string
	machines map[string]*fake.Machine

	r      *KubexmOperationReconciler
	events *events.FakeRecorder
	queue  workqueue.TypedRateLimitingInterface[ctrl.Request]
	end    func()

	mu sync.Mutex
	// ran is what ran on which host; onRun is called before each. Where it returns false the command fails.
	ran   []string
	onRun func(what string) bool
	// manifest is what the backup says of itself; unreachable are hosts that do not answer.
	manifest    string
	unreachable map[string]bool
	script      strings.Builder
}

func newFleet(t *testing.T, count int, change func(*bootstrapv1.KubexmOperation)) *fleet {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{T: t, machines: map[string]*fake.Machine{}, unreachable: map[string]bool{}}
	sum := sha256.Sum256([]byte(content))
	f.manifest = fmt.Sprintf(`{"cluster": "prod", "authority": %q, "kubernetesVersion": "v1.36.3", "etcdVersion": "3.6.14", "etcdClusterID": "a1",
		"host": "cp1", "time": %q, "revision": 7, "size": %d, "sha256": %q}`,
		authority, time.Now().UTC().Add(-time.Hour).Format(time.RFC3339), len(content), hex.EncodeToString(sum[:]))
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "1"}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.168.0.100", Port: 6443}
	shared := &bootstrapv1.KubexmClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	shared.Spec.Version = "v1.36.3"
	o := &bootstrapv1.KubexmOperation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "op", UID: "2"},
		Spec: bootstrapv1.KubexmOperationSpec{
			Type: bootstrapv1.RestoreEtcdType, Target: bootstrapv1.OperationTarget{Kind: bootstrapv1.ClusterTarget, Name: "prod"},
			RestoreEtcd: bootstrapv1.EtcdRestore{
				Snapshot:            bootstrapv1.EtcdSnapshotSource{Host: bootstrapv1.EtcdSnapshotOnHost{Name: "cp1", Path: backupAt}},
				AcceptedLossSeconds: ptr.To[int32](7200),
			},
		},
	}
	if change != nil {
		change(o)
	}
	all := []client.Object{cluster, shared, o}
	labels := map[string]string{clusterv1.ClusterNameLabel: "prod"}
	for i := range count {
		name := fmt.Sprintf("cp%d", i+1)
		f.names = append(f.names, name)
		shared.Spec.Members = append(shared.Spec.Members, bootstrapv1.ClusterMember{
			Name: name, Role: spec.RoleControlPlane, Phase: bootstrapv1.MemberServing, ConfigName: "c-" + name,
			Address: fmt.Sprintf("192.168.0.%d", i+11),
		})
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c-" + name, Labels: labels}}
		c.Status.Host.Name, c.Status.KubernetesVersion = name, "v1.36.3"
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m-" + name, Labels: maps.Clone(labels)}}
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
		m.Spec.Version, m.Spec.ClusterName = "v1.36.3", "prod"
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: c.Name,
		}
		all = append(all, c, m)
		f.machines[name] = fake.New(name)
		f.machines[name].OnCommand = f.run
	}
	f.api = clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).
		WithStatusSubresource(o, &bootstrapv1.KubexmConfig{}).Build()
	f.made()
	f.restart()
	t.Cleanup(func() { f.end() })
	return f
}

// made makes the hosts a part of the cluster.
func (f *fleet) made() {
	f.Helper()
	b := plan.New("Test", "fleet/prod")
	for _, name := range f.names {
		b.Host(name, plan.Module{Name: "test", Tasks: []plan.Task{{Name: "test", Steps: []step.Step{
			step.New(step.Meta{Name: "test"}, step.File{Path: "/etc/test", Mode: 0o600, Content: step.Literal("x")}),
		}}}})
	}
	p, err := b.Plan()
	if err != nil {
		f.Fatal(err)
	}
	if _, err := engine.New(f.Together(client.ObjectKey{}, nil)).Run(f.Context(), p); err != nil {
		f.Fatal(err)
	}
}

// run is a command on a host.
func (f *fleet) run(m *fake.Machine, c host.Command) host.Result {
	sum := sha256.Sum256([]byte(content))
	switch c.Argv[0] {
	case "head":
		if f.manifest == "" {
			return host.Result{ExitCode: 1, Stderr: []byte("head: cannot open it: No such file or directory")}
		}
		return host.Result{Stdout: []byte(f.manifest)}
	case "stat":
		return host.Result{Stdout: fmt.Appendf(nil, "%d\n", len(content))}
	case "sha256sum":
		return host.Result{Stdout: []byte(hex.EncodeToString(sum[:]) + "  " + backupAt + "\n")}
	case "dd":
		return host.Result{Stdout: []byte(content)}
	}
	if !slices.Contains(order, c.Title) {
		return host.Result{} // checks
	}
	what := m.System.Hostname + ": " + c.Title
	f.mu.Lock()
	f.ran = append(f.ran, what)
	on := f.onRun
	f.mu.Unlock()
	if on != nil && !on(what) {
		return host.Result{ExitCode: 1, Stderr: []byte("no")}
	}
	return host.Result{}
}

// Party implements Hosts.
func (f *fleet) Party(ctx context.Context, c *bootstrapv1.KubexmConfig) (*reconcilers.Party, error) {
	shared, cluster, machine := &bootstrapv1.KubexmClusterConfig{}, &clusterv1.Cluster{}, &clusterv1.Machine{}
	name := strings.TrimPrefix(c.Name, "c-")
	for key, object := range map[string]client.Object{"prod": cluster, "m-" + name: machine} {
		if err := f.api.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: key}, object); err != nil {
			return nil, err
		}
	}
	if err := f.api.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "prod"}, shared); err != nil {
		return nil, err
	}
	address := fmt.Sprintf("192.168.0.%d", slices.Index(f.names, name)+11)
	is := spec.Host{Name: name, Address: address, InternalAddresses: []string{address}}
	t, err := target.New(target.SharedOf(cluster, shared), machine, c, is, nil)
	return &reconcilers.Party{Config: c.Name, Target: t}, err
}

// Together implements Hosts.
func (f *fleet) Together(client.ObjectKey, []*reconcilers.Party) engine.Options {
	return engine.Options{
		Holder: "test", Redial: step.Retry{Attempts: 1}, Jitter: func(time.Duration) time.Duration { return 0 },
		Dial: func(_ context.Context, name string) (host.Host, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.unreachable[name] {
				return nil, &host.Error{Kind: host.KindUnreachable, Host: name, Message: "no route"}
			}
			return f.machines[name].Connect(), nil
		},
		Ownership: func(_ context.Context, name string) (host.Ownership, error) {
			return host.Ownership{Owner: host.Owner{Cluster: "fleet/prod", Authority: authority, Role: "control-plane", Host: name}}, nil
		},
		Cluster: func(context.Context) (step.Cluster, error) { return answering{}, nil },
	}
}

// answering is a cluster whose API server answers.
type answering struct{ step.Cluster }

func (answering) Healthy(context.Context) error { return nil }

// restart has another process go on: the jobs of this one end.
func (f *fleet) restart() {
	f.Helper()
	if f.end != nil {
		f.end()
	}
	f.events = events.NewFakeRecorder(999)
	jobs := NewJobs(context.Background(), time.Millisecond)
	f.r = &KubexmOperationReconciler{Client: f.api, Reader: f.api, Events: f.events, Hosts: f, Jobs: jobs}
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	if err := f.r.Jobs.Source().Start(f.Context(), f.queue); err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended, queue := make(chan error, 1), f.queue
	go func() { ended <- jobs.Runnable().Start(ctx) }()
	f.end = sync.OnceFunc(func() {
		stop()
		<-ended
		queue.ShutDown()
	})
}

// reconcile is one reconcile of the operation, and the job that it has started. Before it, hosts that are held stand still. It reports
// whether another follows at once.
func (f *fleet) reconcile() (more bool) {
	f.Helper()
	f.hostsFollow()
	key, before := client.ObjectKey{Namespace: "fleet", Name: "op"}, f.operation()
	result, err := f.r.Reconcile(f.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		f.Fatal(err)
	}
	for job, found := f.r.Jobs.Observe(key); found && job.Running(); job, _ = f.r.Jobs.Observe(key) {
		request, stopped := f.queue.Get()
		if stopped {
			f.Fatal("the queue ended")
		}
		f.queue.Done(request)
	}
	_, found := f.r.Jobs.Observe(key)
	soon := result.RequeueAfter > 0 && result.RequeueAfter < time.Second
	return f.hostsFollow() || found || soon || result.RequeueAfter == 0 && before.ResourceVersion != f.operation().ResourceVersion
}

// hostsFollow is what the reconciler of KubexmConfigs does. It reports whether anything is to be seen of that.
func (f *fleet) hostsFollow() (changed bool) {
	f.Helper()
	shared := &bootstrapv1.KubexmClusterConfig{}
	if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "prod"}, shared); err != nil {
		f.Fatal(err)
	}
	by, err := holder.By(f.Context(), f.api, shared)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range f.names {
		c := &bootstrapv1.KubexmConfig{}
		if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "c-" + name}, c); err != nil {
			f.Fatal(err)
		}
		if c.Status.HeldBy == by {
			continue
		}
		c.Status.HeldBy, changed = by, true
		if err := f.api.Status().Update(f.Context(), c); err != nil {
			f.Fatal(err)
		}
	}
	return changed
}

// goes reconciles as long as there is anything to do at once.
func (f *fleet) goes() *bootstrapv1.KubexmOperation {
	f.Helper()
	for range 50 {
		if !f.reconcile() {
			return f.operation()
		}
	}
	f.Fatal("it does not come to rest")
	return nil
}

func (f *fleet) operation() *bootstrapv1.KubexmOperation {
	f.Helper()
	o := &bootstrapv1.KubexmOperation{}
	if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "op"}, o); err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return o
}

// held is who holds the hosts, as the KubexmClusterConfig says.
func (f *fleet) held() string {
	f.Helper()
	shared := &bootstrapv1.KubexmClusterConfig{}
	if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "prod"}, shared); err != nil {
		f.Fatal(err)
	}
	return shared.Annotations[bootstrapv1.HeldByAnnotation]
}

var (
	aTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	anID  = regexp.MustCompile(`\b[0-9a-f]{16}\b`)
)

// tell writes down what can be seen, and what has run since.
func (f *fleet) tell(what string) {
	f.Helper()
	b, o := &f.script, f.operation()
	fmt.Fprintf(b, "== %s\n", what)
	if o.Name == "" {
		b.WriteString("the operation is gone\n")
	} else if said := conditions.Get(o, bootstrapv1.SucceededCondition); said != nil {
		fmt.Fprintf(b, "Succeeded %s %s: %s\n", said.Status, said.Reason, said.Message)
	}
	for _, h := range o.Status.Hosts {
		fmt.Fprintf(b, "  %s %s: %s\n", h.Name, h.Phase, h.Message)
	}
	fmt.Fprintf(b, "held by %q\n", f.held())
	for more := true; more; {
		select {
		case said := <-f.events.Events:
			fmt.Fprintf(b, "event %s\n", said)
		default:
			more = false
		}
	}
	f.mu.Lock()
	slices.SortStableFunc(f.ran, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
	for _, line := range f.ran {
		fmt.Fprintf(b, "ran on %s\n", line)
	}
	f.ran = nil
	f.mu.Unlock()
}

func (f *fleet) transcript(name string) {
	f.Helper()
	text := anID.ReplaceAllString(aTime.ReplaceAllString(f.script.String(), "TIME"), "ID")
	golden.File(f, "testdata/restore/"+name+".golden", text)
}
