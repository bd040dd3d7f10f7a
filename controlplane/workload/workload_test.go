// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/workload"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// serve answers paths of an API with bodies, and everything else with 404.
func serve(t *testing.T, answers map[string]string) secret.Value {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, found := answers[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			body = notFound
		}
		_, _ = w.Write([]byte(body)) // the client says if it got nothing
	}))
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL, &clientcmdapi.AuthInfo{Token: "x"})
}

func kubeconfig(t *testing.T, server string, user *clientcmdapi.AuthInfo) secret.Value {
	t.Helper()
	return kubeconfigOf(t, &clientcmdapi.Cluster{Server: server}, user)
}

func kubeconfigOf(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) secret.Value {
	t.Helper()
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret.New(out)
}

const (
	configMap = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
	pods      = "/api/v1/namespaces/kube-system/pods/"
	notFound  = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	ready     = `{"kind":"Pod","apiVersion":"v1","status":{"conditions":[{"type":"Ready","status":"True"}]}}`
)

func look(t *testing.T, kubeconfig secret.Value, change ...func(*snapshot.ControlPlane)) *snapshot.Workload {
	t.Helper()
	view, err := workload.Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c := &snapshot.ControlPlane{Object: &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "1"}}}
	for _, name := range []string{"m", "without a Node"} {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c.Object, controlplanev1.GroupVersion.WithKind("KubexmControlPlane"))},
		}}
		m.Spec.Bootstrap.ConfigRef.Name = name
		c.Machines = append(c.Machines, m)
		c.Configs = append(c.Configs, bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c.Machines[0].Status.NodeRef.Name = "cp1"
	for _, f := range change {
		f(c)
	}
	return view.Look(t.Context(), c)
}

// TestLookAtUnits asks no API server for what it does not know: of units, the look at their host tells.
func TestLookAtUnits(t *testing.T) {
	binary := func(c *snapshot.ControlPlane) { c.Object.Spec.Cluster.Kubernetes.Type = spec.KubernetesKubexm }
	broken := func(c *snapshot.ControlPlane) {
		conditions.Set(&c.Configs[0], metav1.Condition{
			Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.DriftedReason, Message: "a unit stopped",
		})
	}
	lost := func(c *snapshot.ControlPlane) {
		conditions.Set(&c.Configs[0], metav1.Condition{
			Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.UnreachableReason, Message: "no route",
		})
	}
	unseen := func(c *snapshot.ControlPlane) {
		conditions.Set(&c.Configs[0], metav1.Condition{
			Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.ObservationFailedReason, Message: "no space",
		})
	}
	external := func(c *snapshot.ControlPlane) { c.Object.Spec.Cluster.Etcd.Type = spec.EtcdExternal }
	answers := serve(t, map[string]string{"/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt": `{"kind":"ConfigMap","apiVersion":"v1"}`})
	for name, tc := range map[string]struct {
		change []func(*snapshot.ControlPlane)
		want   int
		broken bool
		// unknown is whether that is only not known to be well.
		unknown bool
	}{
		"all is well":               {[]func(*snapshot.ControlPlane){binary}, 4, false, false},
		"the host has changed":      {[]func(*snapshot.ControlPlane){binary, broken}, 4, true, false},
		"the host does not answer":  {[]func(*snapshot.ControlPlane){binary, broken, lost}, 4, true, true},
		"a check on it did not end": {[]func(*snapshot.ControlPlane){binary, unseen}, 4, true, true},
		"others look after etcd":    {[]func(*snapshot.ControlPlane){binary, external}, 3, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := look(t, answers, tc.change...)
			if got := w.Components["m"]; w.Err != nil || !w.Initialized || len(got) != tc.want || (got[0].Problem != "") != tc.broken ||
				got[0].Unknown != tc.unknown {
				t.Errorf("error %v, initialized %v, components %v", w.Err, w.Initialized, got)
			}
		})
	}
}

func TestLook(t *testing.T) {
	pod := func(c *snapshot.ControlPlane) { c.Object.Spec.Cluster.Etcd.Type = spec.EtcdKubeadm }
	w := look(t, serve(t, map[string]string{
		configMap:                   `{"kind":"ConfigMap","apiVersion":"v1"}`,
		pods + "kube-apiserver-cp1": ready,
		pods + "kube-scheduler-cp1": ready,
		pods + "etcd-cp1":           `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"etcd-cp1"},"status":{"phase":"Pending"}}`,
	}), pod)
	want := map[string][]snapshot.Component{"m": {
		{Condition: snapshot.APIServerPodHealthy},
		{Condition: snapshot.ControllerManagerPodHealthy, Problem: "the Pod kube-controller-manager-cp1 does not exist"},
		{Condition: snapshot.SchedulerPodHealthy},
		{Condition: snapshot.EtcdPodHealthy, Problem: "the Pod etcd-cp1 is Pending and not ready"},
	}}
	if diff := cmp.Diff(want, w.Components); diff != "" || w.Err != nil || !w.Initialized {
		t.Errorf("error %v, initialized %v, components (-want +got):\n%s", w.Err, w.Initialized, diff)
	}
}

func TestNotInitialized(t *testing.T) {
	if w := look(t, serve(t, nil)); w.Err != nil || w.Initialized {
		t.Errorf("an API server without kubeadm's ConfigMap: error %v, initialized %v", w.Err, w.Initialized)
	}
	if w := look(t, kubeconfig(t, "http://127.0.0.1:1", &clientcmdapi.AuthInfo{})); w.Err == nil || w.Initialized {
		t.Errorf("no API server: error %v, initialized %v", w.Err, w.Initialized)
	}
}

// TestConnectRunsNothing: a kubeconfig that runs commands or reads files is refused, and the error says what of it.
func TestConnectRunsNothing(t *testing.T) {
	file := t.TempDir() + "/run"
	for want, user := range map[string]*clientcmdapi.AuthInfo{
		"users[u].exec runs a command": {Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{file}, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}},
		"users[u] names a file": {TokenFile: file},
	} {
		if _, err := workload.Connect(kubeconfig(t, "http://127.0.0.1:1", user)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that %s", err, want)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the kubeconfig's command was run (%v)", err)
	}
}

// TestConnectByProxy goes where the kubeconfig says, and leaves no connection open: client-go has none of them used again.
func TestConnectByProxy(t *testing.T) {
	var mu sync.Mutex
	asked, connections := map[string]bool{}, 0
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Host+r.URL.Path] = true
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(notFound)) // the client says if it got nothing
	}))
	proxy.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			connections++
		}
	}
	proxy.Start()
	t.Cleanup(proxy.Close)
	view, err := workload.Connect(kubeconfigOf(t,
		&clientcmdapi.Cluster{Server: "http://cluster.invalid", ProxyURL: proxy.URL}, &clientcmdapi.AuthInfo{Token: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	c := &snapshot.ControlPlane{Object: &controlplanev1.KubexmControlPlane{}}
	acts := []func(){
		func() {
			if w := view.Look(t.Context(), c); w.Err != nil || w.Initialized {
				t.Errorf("error %v, initialized %v", w.Err, w.Initialized)
			}
		},
		func() { _ = view.ApproveServing(t.Context(), c) }, // of an API without requests
		func() {
			if err := view.TellKubeadm(t.Context(), "v1.36.3"); err != nil {
				t.Error(err)
			}
		},
	}
	for range 2 {
		for _, act := range acts {
			act()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !asked["cluster.invalid"+configMap] {
		t.Errorf("the proxy was asked for %v", asked)
	}
	if connections != 2*len(acts) { // were one left, the next would have used it
		t.Errorf("%d connections, want one for each of %d", connections, 2*len(acts))
	}
}

func TestProblem(t *testing.T) {
	waiting := corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-cp1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting}},
	}
	if got, want := workload.Problem(pod), "the container etcd of the Pod etcd-cp1 waits: CrashLoopBackOff"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
