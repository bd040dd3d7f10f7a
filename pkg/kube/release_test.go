// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// bench is one release's surroundings.
type bench struct {
	*testing.T
	cluster *kube.Cluster
	client  *kubernetes.Clientset
	name    string
}

// newBench is for a release in a namespace of its own, which is not there yet.
func newBench(t *testing.T, namespace string) bench {
	c, client := api(t)
	return bench{t, c, client, namespace}
}

func (b bench) release(f files, values string) step.HelmRelease {
	r := testRelease(b.T, f, []byte(values))
	r.Namespace = b.name
	return r
}

// records is Helm's own storage: what any other client of the release would see.
func (b bench) records() *storage.Storage {
	return storage.Init(driver.NewSecrets(b.client.CoreV1().Secrets(b.name)))
}

func (b bench) last() *release.Release {
	b.Helper()
	return must[*release.Release](b.T)(b.records().Last("r"))
}

func (b bench) install(r step.HelmRelease) {
	b.Helper()
	if err := b.cluster.InstallRelease(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	if why := must[string](b.T)(b.cluster.ReleaseDiffers(b.Context(), r)); why != "" {
		b.Fatalf("after the install it differs: %s", why)
	}
}

func (b bench) differs(r step.HelmRelease, want string) {
	b.Helper()
	why := must[string](b.T)(b.cluster.ReleaseDiffers(b.Context(), r))
	if want == "" && why != "" || !strings.Contains(why, want) {
		b.Errorf("it differs by %q, want %q", why, want)
	}
}

func (b bench) word(want string) {
	b.Helper()
	m, err := b.client.CoreV1().ConfigMaps(b.name).Get(b.Context(), "r", metav1.GetOptions{})
	if err != nil || m.Data["word"] != want {
		b.Errorf("the chart's word is %q (%v), want %q", m.Data["word"], err, want)
	}
}

func TestRelease(t *testing.T) {
	b := newBench(t, "release")
	var standard, logged bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&standard)
	ctx := logr.NewContext(t.Context(), funcr.New(func(prefix, args string) {
		fmt.Fprintln(&logged, prefix, args)
	}, funcr.Options{Verbosity: 1}))

	first := b.release(configMapChart, "")
	b.differs(first, "not installed")
	if err := b.cluster.InstallRelease(ctx, first); err != nil {
		t.Fatal(err)
	}
	b.differs(first, "")
	b.word("default")
	if standard.Len() > 0 || !strings.Contains(logged.String(), "helm") {
		t.Errorf("Helm wrote to the standard logger: %q, and to ours: %q", standard.String(), logged.String())
	}

	// Every kind of change is seen, and none of them by its values.
	valued := b.release(configMapChart, "word: hunter2\nnested: {b: null, c: [1, 2.5]}\n")
	b.differs(valued, "deployed with other values: .nested, .word")
	if why, _ := b.cluster.ReleaseDiffers(t.Context(), valued); strings.Contains(why, "hunter2") {
		t.Errorf("a value is shown: %s", why)
	}
	b.install(valued)
	b.word("hunter2")
	b.differs(b.release(configMapChart, "word: hunter2\nnested: {b: null, c: [1, 2]}\n"), "other values: .nested.c")

	newer := b.release(configMapChart.with(files{"Chart.yaml": "apiVersion: v2\nname: words\nversion: 1.1.0\n"}), "word: hunter2")
	b.differs(newer, "chart words 1.0.0, not words 1.1.0")
	b.install(newer)
	patched := b.release(configMapChart.with(files{
		"Chart.yaml":        "apiVersion: v2\nname: words\nversion: 1.1.0\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: r}\ndata: {word: patched}\n",
	}), "word: hunter2")
	b.differs(patched, "other content of chart words 1.1.0")
	b.install(patched)
	b.word("patched")
	if v := b.last().Version; v != 4 {
		t.Errorf("the release has revision %d, want 4", v)
	}

	// Old revisions do not pile up.
	for i := range 6 {
		b.install(b.release(configMapChart, fmt.Sprintf("word: w%d", i)))
	}
	if history := must[[]*release.Release](t)(b.records().History("r")); len(history) > 5 {
		t.Errorf("%d revisions are kept", len(history))
	}
}

func TestReleaseRefuses(t *testing.T) {
	b := newBench(t, "refused")
	tests := map[string]struct {
		release step.HelmRelease
		want    string
	}{
		"no archive":       {step.HelmRelease{Name: "r", Namespace: "refused", Chart: []byte("x")}, "Helm release refused/r: its chart is not readable"},
		"a library":        {b.release(configMapChart.with(files{"Chart.yaml": "apiVersion: v2\nname: words\nversion: 1.0.0\ntype: library\n"}), ""), "library"},
		"missing parts":    {b.release(configMapChart.with(files{"Chart.yaml": "apiVersion: v2\nname: words\nversion: 1.0.0\ndependencies: [{name: other, version: 1.0.0, repository: 'https://example.com'}]\n"}), ""), "other"},
		"values no map":    {b.release(configMapChart, "- hunter2"), "not a YAML mapping"},
		"values twice":     {b.release(configMapChart, "word: hunter2\nword: x"), "not a YAML mapping"},
		"newer Kubernetes": {b.release(configMapChart.with(files{"Chart.yaml": "apiVersion: v2\nname: words\nversion: 1.0.0\nkubeVersion: '>=99.0.0'\n"}), ""), "kubeVersion"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := b.cluster.InstallRelease(t.Context(), test.release)
			wantError(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a value is shown: %v", err)
			}
		})
	}
	if _, err := b.client.CoreV1().Namespaces().Get(t.Context(), "refused", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error("something was installed")
	}
}

// TestReleaseAfterAKill leaves the record as a process that was killed in the middle leaves it.
func TestReleaseAfterAKill(t *testing.T) {
	tests := map[string]struct {
		status  release.Status
		earlier bool // whether an earlier revision is deployed
		partly  bool // whether the killed process got as far as making its object
	}{
		"installing, nothing made":    {release.StatusPendingInstall, false, false},
		"installing, something made":  {release.StatusPendingInstall, false, true},
		"upgrading":                   {release.StatusPendingUpgrade, true, true},
		"rolling back":                {release.StatusPendingRollback, true, true},
		"failed at first":             {release.StatusFailed, false, false},
		"failed later":                {release.StatusFailed, true, true},
		"uninstalling":                {release.StatusUninstalling, false, true},
		"uninstalled, history kept":   {release.StatusUninstalled, false, false},
		"uninstalling, nothing there": {release.StatusUninstalling, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "killed-"+strings.Map(func(r rune) rune {
				if r < 'a' || r > 'z' {
					return '-'
				}
				return r
			}, name)+"-x")
			if test.earlier {
				b.install(b.release(configMapChart, "word: earlier"))
			}
			b.install(b.release(configMapChart, "word: killed"))
			var before *corev1.ConfigMap
			if test.partly {
				before = must[*corev1.ConfigMap](t)(b.client.CoreV1().ConfigMaps(b.name).Get(t.Context(), "r", metav1.GetOptions{}))
			} else if err := b.client.CoreV1().ConfigMaps(b.name).Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			left := b.last()
			left.SetStatus(test.status, "left by a kill")
			left.Info.LastDeployed = helmtime.Time{Time: time.Now().Add(-time.Hour)}
			if err := b.records().Update(left); err != nil {
				t.Fatal(err)
			}
			if test.earlier {
				earlier := must[*release.Release](t)(b.records().Get("r", 1))
				earlier.Info.Status = release.StatusDeployed
				if err := b.records().Update(earlier); err != nil {
					t.Fatal(err)
				}
			}

			want := b.release(configMapChart, "word: recovered")
			b.differs(want, string(test.status)+": left by a kill")
			b.install(want)
			b.word("recovered")
			after := must[*corev1.ConfigMap](t)(b.client.CoreV1().ConfigMaps(b.name).Get(t.Context(), "r", metav1.GetOptions{}))
			if before != nil && test.status != release.StatusUninstalling && before.UID != after.UID {
				t.Error("what ran was taken down on the way")
			}
		})
	}
}

func TestReleaseOfAnotherClient(t *testing.T) {
	b := newBench(t, "busy")
	b.install(b.release(configMapChart, "word: mine"))
	busy := b.last() // whose labels an upgrade takes over
	busy.Version++
	busy.SetStatus(release.StatusPendingUpgrade, "Preparing upgrade")
	busy.Info.LastDeployed = helmtime.Now()
	if err := b.records().Create(busy); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	wantError(t, b.cluster.InstallRelease(ctx, b.release(configMapChart, "word: mine too")), "another client", "pending-upgrade", "counts as abandoned in")
	b.word("mine")

	// The other client comes to an end, while we wait.
	done := make(chan error, 1)
	want := b.release(configMapChart, "word: mine at last")
	go func() { done <- b.cluster.InstallRelease(t.Context(), want) }()
	busy.SetStatus(release.StatusDeployed, "Upgrade complete")
	if err := b.records().Update(busy); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.word("mine at last")
}

// TestReleaseAfterOurOwnKill leaves the record that an attempt of ours has just begun, and the Lease that it had.
func TestReleaseAfterOurOwnKill(t *testing.T) {
	for name, status := range map[string]release.Status{"install": release.StatusPendingInstall, "upgrade": release.StatusPendingUpgrade} {
		for _, held := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, its Lease held %t", name, held), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, fmt.Sprintf("ours-%s-%t", name, held))
				if status == release.StatusPendingUpgrade {
					b.install(b.release(configMapChart, "word: earlier"))
				}
				b.install(b.release(configMapChart, "word: killed"))
				left := b.last()
				left.SetStatus(status, "underway")
				left.Info.LastDeployed = helmtime.Now()
				if err := b.records().Update(left); err != nil {
					t.Fatal(err)
				}
				leases := b.client.CoordinationV1().Leases(metav1.NamespaceSystem)
				lease := must[*coordinationv1.Lease](t)(leases.Get(t.Context(), "kubexm.release."+b.name+".r", metav1.GetOptions{}))
				if *lease.Spec.HolderIdentity != "" {
					t.Errorf("%s has the Lease when nobody is at work", *lease.Spec.HolderIdentity)
				}
				if held {
					now := metav1.NowMicro()
					lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To("killed"), ptr.To[int32](10), &now
					must[*coordinationv1.Lease](t)(leases.Update(t.Context(), lease, metav1.UpdateOptions{}))
					// For as long as it may live, it is left alone.
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					wantError(t, b.cluster.InstallRelease(ctx, b.release(configMapChart, "word: too early")), "another run of kubexm", "kube-system/kubexm.release.")
					b.word("killed")
				}
				// Less than a record of somebody else must age.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				want := b.release(configMapChart, "word: recovered")
				if err := b.cluster.InstallRelease(ctx, want); err != nil {
					t.Fatal(err)
				}
				b.differs(want, "")
				b.word("recovered")
			})
		}
	}
}

// Several control plane hosts bring the same release about at the same time.
func TestReleaseByMany(t *testing.T) {
	b := newBench(t, "many")
	const many = 4
	done := make(chan error, many)
	want := b.release(configMapChart, "word: same")
	for range many {
		go func() { done <- b.cluster.InstallRelease(t.Context(), want) }()
	}
	for range many {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	b.differs(want, "")
	for _, r := range must[[]*release.Release](t)(b.records().History("r")) {
		if s := r.Info.Status; s != release.StatusDeployed && s != release.StatusSuperseded {
			t.Errorf("revision %d is %s: %s", r.Version, s, r.Info.Description)
		}
	}
}

// A Lease that is lost ends the work that it was for.
func TestReleaseWithoutItsLease(t *testing.T) {
	const hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
	b := newBench(t, "lost")
	done := make(chan error, 1)
	go func() {
		done <- b.cluster.InstallRelease(t.Context(), b.release(configMapChart.with(files{"templates/hook.yaml": hook}), ""))
	}()
	waitForJob(t, b, "")
	leases := b.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	patch := []byte(`{"spec":{"holderIdentity":"another","leaseDurationSeconds":3600}}`)
	must[*coordinationv1.Lease](t)(leases.Patch(t.Context(), "kubexm.release.lost.r", types.MergePatchType, patch, metav1.PatchOptions{}))
	wantError(t, <-done, "its Lease could not be renewed")
	if last := b.last(); last.Info.Status != release.StatusFailed {
		t.Errorf("the release is %s: %s", last.Info.Status, last.Info.Description)
	}
}

// TestReleaseCutOff ends the context while a hook runs that never comes to an end: nothing runs Jobs here.
func TestReleaseCutOff(t *testing.T) {
	const hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
	b := newBench(t, "cut")
	stop := errors.New("the run was stopped")
	var job types.UID
	for _, phase := range []string{"install", "upgrade"} {
		t.Run(phase, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- b.cluster.InstallRelease(ctx, b.release(configMapChart.with(files{"templates/hook.yaml": hook}), ""))
			}()
			job = waitForJob(t, b, job)
			cancel(stop)
			if err := <-done; !errors.Is(err, stop) {
				t.Errorf("it returned %v", err)
			}
			b.install(b.release(configMapChart, "word: after "+phase))
			b.word("after " + phase)
		})
	}
}

// waitForJob returns when the hook's Job is there, one other than the old, and its UID.
func waitForJob(t *testing.T, b bench, old types.UID) types.UID {
	t.Helper()
	w, err := b.client.BatchV1().Jobs(b.name).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if job, ok := e.Object.(*batchv1.Job); ok && job.DeletionTimestamp.IsZero() && job.UID != old {
			return job.UID
		}
	}
	t.Fatal("the hook's Job was not made")
	return ""
}

func TestReleaseUpgradesItsDefinitions(t *testing.T) {
	definition := func(field string) string {
		return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.test.kubexm.mensylisir.io}
spec:
  group: test.kubexm.mensylisir.io
  names: {kind: Gear, listKind: GearList, plural: gears, singular: gear}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + field + `: {type: string}}}}}}}
`
	}
	gear := func(field string) string {
		return "apiVersion: test.kubexm.mensylisir.io/v1\nkind: Gear\nmetadata: {name: g}\nspec: {" + field + ": x}\n"
	}
	b := newBench(t, "definitions")
	b.install(b.release(configMapChart.with(files{"crds/gear.yaml": definition("teeth"), "templates/gear.yaml": gear("teeth")}), ""))
	b.install(b.release(configMapChart.with(files{"crds/gear.yaml": definition("cogs"), "templates/gear.yaml": gear("cogs")}), ""))
	raw := must[[]byte](t)(b.client.RESTClient().Get().AbsPath("/apis/test.kubexm.mensylisir.io/v1/namespaces/definitions/gears/g").DoRaw(t.Context()))
	if !bytes.Contains(raw, []byte(`"cogs":"x"`)) {
		t.Errorf("the new field is not there: %s", raw)
	}
}
