// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrastructure "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
)

const namespace = "kubexm-test"

// holdEnv makes the test binary start a plane in the directory that it names, say its children's ids and wait.
const holdEnv = "KUBEXM_TEST_HOLD_PLANE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
		return
	}
	goleak.VerifyTestMain(m,
		// Core's caches of server-side apply expire in goroutines that nothing can end.
		goleak.IgnoreAnyFunction("sigs.k8s.io/cluster-api/internal/util/ssa.NewCache.func2"),
		// A metadata watch that is stopped while an event is on its way keeps it for ever.
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
	)
}

func hold(dir string) {
	if _, err := embedded.Start(context.Background(), options(dir)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// options has the programs that make test puts into KUBEBUILDER_ASSETS.
func options(dir string) embedded.Options {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	definitions, err := crd.CRDs()
	if err != nil {
		panic(err)
	}
	hooks, err := webhook.All()
	if err != nil {
		panic(err)
	}
	return embedded.Options{
		Dir:                dir,
		Etcd:               filepath.Join(assets, "etcd"),
		APIServer:          filepath.Join(assets, "kube-apiserver"),
		ControllerManager:  filepath.Join(assets, "kube-controller-manager"),
		Namespace:          namespace,
		AddToScheme:        []func(*runtime.Scheme) error{infrastructure.AddToScheme},
		CRDs:               definitions,
		MutatingWebhooks:   hooks.Mutating,
		ValidatingWebhooks: hooks.Validating,
		Setup: []func(context.Context, ctrl.Manager) error{func(_ context.Context, mgr ctrl.Manager) error {
			return errors.Join(infrastructure.Reconcilers(mgr, infrastructure.Options{}), infrastructure.Webhooks(mgr))
		}},
	}
}

func start(t testing.TB, o embedded.Options) *embedded.Plane {
	t.Helper()
	p, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

func stop(t testing.TB, p *embedded.Plane) {
	t.Helper()
	if err := p.Stop(context.Background()); err != nil {
		stacks := make([]byte, 1<<20)
		t.Errorf("%v\n%s", err, stacks[:goruntime.Stack(stacks, true)]) // who has not ended
	}
}

func eventually(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func newCluster(name string) (*clusterv1.Cluster, *infrav1.KubexmCluster) {
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: name,
			},
		},
	}, infra
}

// TestRestart creates objects in a first plane and finds them in a second one.
func TestRestart(t *testing.T) {
	// Its socket's path would be too long to be dialled by it.
	o := options(filepath.Join(t.TempDir(), strings.Repeat("long-", 25), "plane"))
	var setups int
	o.Setup = append(o.Setup, func(ctx context.Context, mgr ctrl.Manager) error {
		setups++
		return nil
	})

	p := start(t, o)
	cluster, infra := newCluster("one")
	if err := errors.Join(p.Client().Create(t.Context(), infra), p.Client().Create(t.Context(), cluster)); err != nil {
		t.Fatal(err)
	}
	// It takes both: core to set the owner, our reconciler to answer, core to read the answer.
	eventually(t, "the Cluster's infrastructure is provisioned", func(ctx context.Context) (bool, error) {
		err := p.Client().Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		return cluster.Status.Phase == string(clusterv1.ClusterPhaseProvisioned) &&
			conditions.Has(cluster, clusterv1.ClusterAvailableCondition), err
	})
	checkModes(t, o.Dir)
	stop(t, p)
	if err := p.Err(); err != nil {
		t.Errorf("a plane that was stopped says that it failed: %v", err)
	}

	again := start(t, o)
	if again.RESTConfig().Host != p.RESTConfig().Host {
		t.Errorf("the second plane is at %s, the first was at %s", again.RESTConfig().Host, p.RESTConfig().Host)
	}
	// With the kubeconfig of the first.
	config, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: again.Client().Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var found clusterv1.Cluster
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), &found); err != nil {
		t.Fatal(err)
	}
	if found.UID != cluster.UID {
		t.Errorf("Cluster has UID %s, had %s", found.UID, cluster.UID)
	}
	if setups != 2 {
		t.Errorf("Setup ran %d times", setups)
	}
}

// checkModes fails for whatever others could read.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		private := path == dir || filepath.Dir(path) == filepath.Join(dir, "pki") || info.Mode().IsRegular() && filepath.Dir(path) == dir
		if private && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAdmissionAndGarbage checks that core's webhooks hold and ours, and that what an object owns goes with it.
func TestAdmissionAndGarbage(t *testing.T) {
	p := start(t, options(t.TempDir()))

	_, infra := newCluster("one")
	infra.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "Not_A_Name", Port: 6443}
	if err := p.Client().Create(t.Context(), infra); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.controlPlaneEndpoint.host") {
		t.Errorf("a host that is none: %v", err)
	}

	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "one",
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: "one",
				Bootstrap:   clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "KubexmMachineTemplate", Name: "one",
				},
			}},
		},
	}
	invalid := deployment.DeepCopy()
	invalid.Spec.Template.Spec.Version = "one point thirty-six"
	if err := p.Client().Create(t.Context(), invalid); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("a version that is none: %v", err)
	}
	if err := p.Client().Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel] != "one" {
		t.Errorf("the selector was not defaulted: %v", deployment.Spec.Selector)
	}

	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
	if err := p.Client().Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "owned",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
	}}
	if err := p.Client().Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if err := p.Client().Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret goes with its owner", func(ctx context.Context) (bool, error) {
		err := p.Client().Get(ctx, client.ObjectKeyFromObject(owned), owned)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// TestKilled kills a process that runs a plane.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	holder := holdPlane(t, dir)
	children := childPIDs(t, dir)
	if len(children) != 3 {
		t.Fatalf("children: %v", children)
	}

	// Another process is refused, and learns who is there.
	_, err := embedded.Start(t.Context(), options(dir))
	var inUse *embedded.InUseError
	if !errors.As(err, &inUse) || inUse.PID != holder.Process.Pid || time.Since(inUse.Since) > time.Minute {
		t.Errorf("a second plane on one directory: %v", err)
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	for name, pid := range children {
		eventually(t, name+" goes with its parent", func(context.Context) (bool, error) {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH), nil
		})
	}
	start(t, options(dir))
}

func holdPlane(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return cmd
}

func childPIDs(t testing.TB, dir string) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		content, err := os.ReadFile(filepath.Join(dir, name+".lock"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil {
			t.Fatal(err)
		}
		pids[name] = pid
	}
	return pids
}

// TestChildEnds kills a child under a running plane.
func TestChildEnds(t *testing.T) {
	dir := t.TempDir()
	p := start(t, options(dir))
	if err := syscall.Kill(childPIDs(t, dir)["etcd"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var exit *child.ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.Name != "etcd" {
		t.Errorf("etcd was killed, the plane says: %v", err)
	}
}

// TestStartFails checks that a child's own words are in the error, and that nothing is left behind.
func TestStartFails(t *testing.T) {
	o := options(t.TempDir())
	script := filepath.Join(t.TempDir(), "kube-apiserver")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho out of cheese >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	good := o.APIServer
	o.APIServer = script
	_, err := embedded.Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: exit status 3") || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("got %v", err)
	}

	// A caller's setup that fails.
	o.APIServer = good
	boom := errors.New("no providers today")
	o.Setup = append(o.Setup, func(context.Context, ctrl.Manager) error { return boom })
	if _, err := embedded.Start(t.Context(), o); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}

	o.Setup = nil
	start(t, o)
}
