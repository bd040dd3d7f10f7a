// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// cacheLag is how old what the lagging cache returns is.
const cacheLag = 2 * time.Second

// lagging is a client whose Get returns what reconcilers have written themselves as it was cacheLag ago. What others write is as new as the
// event by which it wakes a reconcile, as in every cache: it is in there before its event comes.
type lagging struct {
	client.Client

	mu   sync.Mutex
	seen map[string][]seenVersion
}

// seenVersion is an object as it was first seen at a time.
type seenVersion struct {
	at     time.Time
	object client.Object
}

func (l *lagging) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := l.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	kind := fmt.Sprintf("%T", object)
	if !strings.HasSuffix(kind, ".KubexmConfig") && !strings.HasSuffix(kind, ".KubexmControlPlane") {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := kind + " " + key.String()
	versions := l.seen[name]
	if n := len(versions); n == 0 || versions[n-1].object.GetResourceVersion() != object.GetResourceVersion() {
		versions = append(versions, seenVersion{time.Now(), object.DeepCopyObject().(client.Object)})
	}
	for len(versions) > 1 && time.Since(versions[1].at) > cacheLag {
		versions = versions[1:]
	}
	l.seen[name] = versions
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(versions[0].object.DeepCopyObject()).Elem())
	return nil
}

// laggingManager is a manager whose client is a lagging one.
type laggingManager struct {
	ctrl.Manager
	client client.Client
}

func (m *laggingManager) GetClient() client.Client { return m.client }

// TestStatusIsTrueThoughTheCacheLags: of two runs that follow each other faster than the cache, the status has the outcome of the
// second, and nothing that comes later has to correct it.
func TestStatusIsTrueThoughTheCacheLags(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2, func(f *fleet) {
		f.lookEvery = time.Hour // nothing that is seen of a host later corrects its status
		f.manager = func(mgr ctrl.Manager) ctrl.Manager {
			return &laggingManager{mgr, &lagging{Client: mgr.GetClient(), seen: map[string][]seenVersion{}}}
		}
	})
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	config, _ := f.worker(f)

	t.Log("two runs that succeed")
	address := config.Status.Host.Address
	for _, pool := range []string{"b", "c"} {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"nodeLabels":{"pool":%q}}}`, pool))
		f.Expect(f.api.Patch(t.Context(), config, patch)).To(Succeed())
		f.Eventually(func() string { return f.content(address) }, patience, 10*time.Millisecond).Should(HaveSuffix(" " + pool + "\n"))
	}
	succeeded := func(g Gomega) {
		config, _ := f.worker(g)
		last := config.Status.Operation(bootstrapv1.ConvergeOperation)
		g.Expect(last.Outcome).To(Equal(bootstrapv1.RunSucceeded))
		g.Expect(last.EndTime.IsZero()).To(BeFalse())
		g.Expect(ptr.Deref(last.Failures, -1)).To(BeZero())
		g.Expect(conditions.IsTrue(config, bootstrapv1.HostConvergedCondition)).To(BeTrue())
		g.Expect(config.Status.ConvergedGeneration).To(Equal(config.Generation))
	}
	f.Eventually(succeeded, patience, 50*time.Millisecond).Should(Succeed())
	f.Consistently(succeeded, 2*cacheLag, 50*time.Millisecond).Should(Succeed())

	t.Log("one that fails, and one that succeeds")
	f.setDown(address, host.KindUnreachable)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeLabels":{"pool":"d"}}}`))
	f.Expect(f.api.Patch(t.Context(), config, patch)).To(Succeed())
	f.Eventually(func(g Gomega) {
		config, _ := f.worker(g)
		g.Expect(config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome).To(Equal(bootstrapv1.RunFailed))
	}, patience, 10*time.Millisecond).Should(Succeed())
	f.setDown(address, "")
	patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"nodeLabels":{"pool":"e"}}}`)) // at once, without the pause after a failure
	f.Expect(f.api.Patch(t.Context(), config, patch)).To(Succeed())
	f.Eventually(func() string { return f.content(address) }, patience, 10*time.Millisecond).Should(HaveSuffix(" e\n"))
	f.Eventually(succeeded, patience, 50*time.Millisecond).Should(Succeed())
	f.Consistently(succeeded, 2*cacheLag, 50*time.Millisecond).Should(Succeed())
}
