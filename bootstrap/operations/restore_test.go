// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestRestore keeps what a restore says and does in the cases that a person meets.
func TestRestore(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		f := newFleet(t, 1, nil)
		f.goes()
		f.tell("a control plane of one is restored")
		f.transcript("one")
	})
	t.Run("three", func(t *testing.T) {
		f := newFleet(t, 3, nil)
		failing := true
		f.onRun = func(what string) bool { return !failing || what != "cp2: restore etcd's data from the snapshot" }
		f.goes()
		f.tell("one of three fails half way: it is tried again, and nobody is released")
		failing = false
		f.r.attempts = nil // time passes
		f.goes()
		f.tell("then it succeeds")
		f.goes()
		f.tell("and nothing is done again")
		f.transcript("three")
	})
	t.Run("refused", func(t *testing.T) {
		all := &fleet{T: t}
		for _, tc := range []struct {
			what   string
			change func(*bootstrapv1.KubexmOperation)
			set    func(*fleet)
		}{
			{"no manifest", nil, func(f *fleet) { f.manifest = "" }},
			{"a damaged one", nil, func(f *fleet) {
				f.manifest = regexp.MustCompile(`"sha256": "..`).ReplaceAllString(f.manifest, `"sha256": "00`)
			}},
			{"of another cluster", nil, func(f *fleet) { f.manifest = strings.Replace(f.manifest, `"prod"`, `"test"`, 1) }},
			{"of another authority", nil, func(f *fleet) { f.manifest = strings.Replace(f.manifest, authority, authority[:70]+"b", 1) }},
			{"of a newer Kubernetes", nil, func(f *fleet) { f.manifest = strings.Replace(f.manifest, "v1.36.3", "v1.37.0", 1) }},
			{"too old", func(o *bootstrapv1.KubexmOperation) { o.Spec.RestoreEtcd.AcceptedLossSeconds = ptr.To[int32](60) }, nil},
			{"etcd is external", nil, func(f *fleet) {
				f.change(func(c *bootstrapv1.KubexmClusterConfig) { c.Spec.Cluster.Etcd.Type = spec.EtcdExternal })
			}},
			{"no space on one host", nil, func(f *fleet) { f.onRun = func(what string) bool { return what != "cp2: "+order[0] } }},
		} {
			f := newFleet(t, 2, tc.change)
			if tc.set != nil {
				tc.set(f)
			}
			f.goes()
			f.tell(tc.what)
			if f.held() != "" {
				t.Errorf("%s: the hosts are held still", tc.what)
			}
			all.script.WriteString(f.script.String())
		}
		all.transcript("refused")
	})
	t.Run("waits", func(t *testing.T) {
		all := &fleet{T: t}
		for _, what := range slices.Sorted(maps.Keys(waits)) {
			f := newFleet(t, 2, nil)
			undo := waits[what](f)
			f.goes()
			f.tell(what)
			if f.held() != "" {
				t.Errorf("%s: the hosts stand still for what is theirs to do", what)
			}
			undo()
			f.r.attempts = nil
			f.goes()
			f.tell("when that is over")
			all.script.WriteString(f.script.String())
		}
		all.transcript("waits")
	})
	t.Run("too long", func(t *testing.T) {
		f := newFleet(t, 2, func(o *bootstrapv1.KubexmOperation) { o.Spec.TimeoutSeconds = ptr.To[int32](600) })
		f.unreachable["cp2"] = true
		f.goes()
		f.tell("a host does not answer")
		o := f.operation()
		o.Status.StartTime = metav1.NewTime(time.Now().Add(-time.Hour))
		if err := f.api.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		f.r.attempts = nil
		f.goes()
		f.tell("nor within its time")
		f.transcript("too-long")
	})
}

// waits are what a restore waits for, and how that ends.
var waits = map[string]func(*fleet) func(){
	"a host is leaving": func(f *fleet) func() {
		return f.phase("cp2", bootstrapv1.MemberDraining)
	},
	"a host is joining": func(f *fleet) func() { return f.phase("cp2", bootstrapv1.MemberJoining) },
	"a host is brought to another version": func(f *fleet) func() {
		set := func(version string) {
			m := &clusterv1.Machine{}
			if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "m-cp2"}, m); err != nil {
				f.Fatal(err)
			}
			m.Spec.Version = version
			if err := f.api.Update(f.Context(), m); err != nil {
				f.Fatal(err)
			}
		}
		set("v1.36.4")
		return func() { set("v1.36.3") }
	},
	"a Machine that nobody lists yet": func(f *fleet) func() {
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "c-cp9", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		}}
		c.Spec.HostRef = bootstrapv1.HostReference{Name: "cp9", Role: spec.RoleControlPlane}
		if err := f.api.Create(f.Context(), c); err != nil {
			f.Fatal(err)
		}
		return func() {
			if err := f.api.Delete(f.Context(), c); err != nil {
				f.Fatal(err)
			}
		}
	},
	"another operation goes on with a host": func(f *fleet) func() {
		other := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "reboot", UID: "3"}}
		other.Spec.Type = bootstrapv1.RebootType
		other.Status.Hosts = []bootstrapv1.HostOperationStatus{{ConfigName: "c-cp1", Name: "cp1", Phase: bootstrapv1.OperationRunning}}
		if err := f.api.Create(f.Context(), other); err != nil {
			f.Fatal(err)
		}
		if err := f.api.Status().Update(f.Context(), other); err != nil {
			f.Fatal(err)
		}
		return func() {
			if err := f.api.Delete(f.Context(), other); err != nil {
				f.Fatal(err)
			}
		}
	},
	"a host does not answer": func(f *fleet) func() {
		f.unreachable["cp2"] = true
		return func() { delete(f.unreachable, "cp2") }
	},
}

// phase gives a member another phase, and returns what gives it back.
func (f *fleet) phase(name string, phase bootstrapv1.MemberPhase) func() {
	f.Helper()
	set := func(phase bootstrapv1.MemberPhase) {
		f.change(func(c *bootstrapv1.KubexmClusterConfig) {
			at := slices.IndexFunc(c.Spec.Members, func(m bootstrapv1.ClusterMember) bool { return m.Name == name })
			c.Spec.Members[at].Phase = phase
		})
	}
	set(phase)
	return func() { set(bootstrapv1.MemberServing) }
}

// TestRestoreIsKilled: whoever is killed at any point is followed by another process, which goes on with the same restore. Each command is
// run once where it was not cut, no host begins before all have done what it waits for, and the hosts are released in the end.
func TestRestoreIsKilled(t *testing.T) {
	t.Run("between reconciles", func(t *testing.T) {
		f := newFleet(t, 3, nil)
		for range 60 {
			f.reconcile()
			if _, found := f.r.Jobs.Observe(client.ObjectKey{Namespace: "fleet", Name: "op"}); !found {
				f.restart()
			}
		}
		f.wantRestored(t, 1)
	})
	t.Run("after each job, before what came of it is written", func(t *testing.T) {
		f, killed := newFleet(t, 3, nil), map[string]bool{}
		for range 60 {
			f.reconcile()
			if job, found := f.r.Jobs.Observe(client.ObjectKey{Namespace: "fleet", Name: "op"}); found && !killed[job.What] {
				killed[job.What] = true
				f.restart()
			}
		}
		if len(killed) != 3 {
			t.Errorf("it was killed after %v", killed)
		}
		f.wantRestored(t, 1)
	})
	for _, what := range order {
		t.Run("during "+what, func(t *testing.T) {
			f := newFleet(t, 3, nil)
			var once sync.Once
			f.onRun = func(ran string) bool {
				if ran == "cp2: "+what {
					once.Do(func() { f.r.Jobs.Cancel(client.ObjectKey{Namespace: "fleet", Name: "op"}, errLetGo) })
				}
				return true
			}
			f.goes()
			f.restart()
			f.goes()
			f.wantRestored(t, 2)
		})
	}
	for n := 1; n <= 24; n++ {
		t.Run(fmt.Sprintf("a host is cut at its boundary %d", n), func(t *testing.T) {
			f := newFleet(t, 3, nil)
			f.machines["cp3"].CutAt(n)
			for range 4 {
				o := f.goes()
				if conditions.IsFalse(o, bootstrapv1.SucceededCondition) {
					// Before anything has ended, what fails on a host is final, and another operation begins anew.
					if o.Annotations[bootstrapv1.OperationRestoringAnnotation] != "" {
						t.Fatalf("it was given up half way: %+v", o.Status)
					}
					return
				}
				f.r.attempts = nil
			}
			f.wantRestored(t, 2)
		})
	}
	t.Run("and its status is lost", func(t *testing.T) {
		f := newFleet(t, 3, nil)
		failing := true
		f.onRun = func(what string) bool { return !failing || what != "cp1: start etcd with the restored data" }
		before := f.goes()
		before.Status = bootstrapv1.KubexmOperationStatus{}
		if err := f.api.Status().Update(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		f.restart()
		failing = false
		const which = bootstrapv1.OperationRestoreAnnotation
		if after := f.goes(); after.Annotations[which] != before.Annotations[which] {
			t.Error("it is another restore")
		}
		f.wantRestored(t, 2)
	})
}

// wantRestored wants all done, each at most so often on a host, and hosts to have waited for each other.
func (f *fleet) wantRestored(t *testing.T, most int) {
	t.Helper()
	o := f.operation()
	if !conditions.IsTrue(o, bootstrapv1.SucceededCondition) || f.held() != "" || len(o.Finalizers) > 0 {
		t.Fatalf("it has not succeeded, or holds hosts still (%q): %+v %+v", f.held(), o.ObjectMeta, o.Status)
	}
	first, last := map[string]int{}, map[string]int{}
	for _, name := range f.names {
		for _, what := range order {
			line, n := name+": "+what, 0
			for i, ran := range f.ran {
				if ran != line {
					continue
				}
				if _, found := first[what]; !found {
					first[what] = i
				}
				last[what], n = max(last[what], i), n+1
			}
			if n < 1 || n > most {
				t.Errorf("%s: it ran %d times", line, n)
			}
		}
	}
	for i, what := range order[1:] {
		if what != "restore etcd's data from the snapshot" && most == 1 && first[what] < last[order[i]] {
			t.Errorf("%s: it ran on a host before all had done this: %s", what, order[i])
		}
	}
}

// TestRestoreIsDeleted: before anything has ended, it goes at once; later, when it is done, or when it is given up.
func TestRestoreIsDeleted(t *testing.T) {
	remove := func(f *fleet) {
		f.Helper()
		if err := f.api.Delete(f.Context(), f.operation()); err != nil {
			f.Fatal(err)
		}
	}
	t.Run("before", func(t *testing.T) {
		f := newFleet(t, 2, nil)
		f.reconcile()
		f.reconcile()
		remove(f)
		f.goes()
		if f.operation().Name != "" || f.held() != "" || len(f.ran) > 0 {
			t.Errorf("it is there still, or did something: %v %v", f.operation(), f.ran)
		}
	})
	for name, gaveUp := range map[string]bool{"half way": false, "half way, and given up": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2, nil)
			failing := true
			f.onRun = func(what string) bool { return !failing || what != "cp1: "+order[4] }
			f.goes()
			if gaveUp {
				o := f.operation()
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.AbandonRestoreAnnotation, "")
				if err := f.api.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			remove(f)
			f.goes()
			if gone := f.operation().Name == ""; gone != gaveUp || gone != (f.held() == "") {
				t.Fatalf("gone %v, held by %q", gone, f.held())
			}
			if gaveUp {
				return
			}
			failing, f.r.attempts = false, nil
			f.goes()
			if f.operation().Name != "" || f.held() != "" {
				t.Errorf("it is done, and there still: %+v", f.operation())
			}
		})
	}
	t.Run("the cache has no Cluster", func(t *testing.T) {
		f := newFleet(t, 2, nil)
		f.onRun = func(what string) bool { return what != "cp1: "+order[4] }
		f.goes()
		f.r.Client = interceptor.NewClient(f.api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*clusterv1.Cluster); is {
					return apierrors.NewNotFound(clusterv1.GroupVersion.WithResource("clusters").GroupResource(), key.Name)
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		f.r.attempts = nil
		if o := f.goes(); f.held() == "" || conditions.IsFalse(o, bootstrapv1.SucceededCondition) {
			t.Errorf("the hosts are released half way: %+v", o)
		}
	})
	t.Run("with its Cluster", func(t *testing.T) {
		f := newFleet(t, 2, nil)
		f.onRun = func(what string) bool { return what != "cp1: "+order[4] }
		f.goes()
		c := &clusterv1.Cluster{}
		if err := f.api.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "prod"}, c); err != nil {
			t.Fatal(err)
		}
		c.Finalizers = []string{"cluster.cluster.x-k8s.io"}
		if err := f.api.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := f.api.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if o := f.goes(); !conditions.IsFalse(o, bootstrapv1.SucceededCondition) || f.held() != "" || len(o.Finalizers) > 0 {
			t.Errorf("it stands in the way of the deletion: %+v", o)
		}
	})
}

// TestRestoreHoldsAlone: of two restores one waits for the other, and one whose object was removed by force holds nobody.
func TestRestoreHoldsAlone(t *testing.T) {
	f := newFleet(t, 2, nil)
	other := &bootstrapv1.KubexmOperation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "other", UID: "3"}}
	metav1.SetMetaDataAnnotation(&other.ObjectMeta, bootstrapv1.OperationRestoreAnnotation, "0123456789abcdef 2026-11-23T12:00:00Z aa 1")
	if err := f.api.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.change(func(c *bootstrapv1.KubexmClusterConfig) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, bootstrapv1.HeldByAnnotation, holder.Of(other))
	})
	o := f.goes()
	said := conditions.GetMessage(o, bootstrapv1.SucceededCondition)
	if !strings.Contains(said, "the KubexmOperation other holds the hosts") || len(f.ran) > 0 {
		t.Fatalf("it says %q, and %v ran", said, f.ran)
	}
	if err := f.api.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.goes()
	f.wantRestored(t, 1)
}

// TestRestoreOfTheSameName: the job of an operation that was removed by force is stopped, and its result is not taken for that of another
// one which has its name now.
func TestRestoreOfTheSameName(t *testing.T) {
	f := newFleet(t, 1, nil)
	var why error
	f.r.Jobs.Start(client.ObjectKeyFromObject(f.operation()), hostrun.Job[result]{
		Of: "1", What: restoring, Do: func(ctx context.Context, _ event.Reader) result {
			select {
			case <-ctx.Done():
				why = context.Cause(ctx)
			case <-time.After(10 * time.Second): // nobody stops it
			}
			return result{}
		},
	})
	f.reconcile() // it is notified when the job has ended
	if o := f.operation(); !errors.Is(why, errGone) || len(o.Status.Conditions) > 0 || len(f.ran) > 0 {
		t.Fatalf("the job was stopped because %v, and of the operation is said %+v", why, o.Status)
	}
	f.goes()
	f.wantRestored(t, 1)
}

// TestRestoreOf: what cannot be read is no restore.
func TestRestoreOf(t *testing.T) {
	o := &bootstrapv1.KubexmOperation{}
	for _, bad := range []string{"", "a b", "0123456789abcdef today aa 1", "0123456789abcdef 2026-11-23T12:00:00Z aa much"} {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationRestoreAnnotation, bad)
		if _, err := restoreOf(o); err == nil || !strings.Contains(err.Error(), bootstrapv1.OperationRestoreAnnotation) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, bootstrapv1.OperationRestoreAnnotation, "0123456789abcdef 2026-11-23T12:00:00.123Z aa 4096")
	want := pipeline.Restore{
		ID: "0123456789abcdef", Digest: "sha256:aa", Size: 4096, Asked: time.Date(2026, 11, 23, 12, 0, 0, 123e6, time.UTC),
	}
	if r, err := restoreOf(o); err != nil || r != want {
		t.Errorf("%+v, %v", r, err)
	}
}

// change changes the KubexmClusterConfig.
func (f *fleet) change(do func(*bootstrapv1.KubexmClusterConfig)) {
	f.Helper()
	c := &bootstrapv1.KubexmClusterConfig{}
	if err := f.api.Get(f.Context(), client.ObjectKey{Namespace: "fleet", Name: "prod"}, c); err != nil {
		f.Fatal(err)
	}
	do(c)
	if err := f.api.Update(f.Context(), c); err != nil {
		f.Fatal(err)
	}
}
