// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func readAs[T any](t *testing.T, text string) *T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v; it should say %q", err, want)
	}
}

func TestNotReady(t *testing.T) {
	const ready = "{type: Ready, status: 'True', reason: KubeletReady, message: kubelet is posting ready status}"
	tests := map[string]struct{ node, want string }{
		"ready": {"status: {conditions: [" + ready + "]}", ""},
		"without a network": {
			`status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"}]}`,
			"Ready is False: KubeletNotReady: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
		},
		"silent": {
			`status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}`,
			"Ready is Unknown: NodeStatusUnknown: Kubelet stopped posting",
		},
		"new":           {"status: {}", "has not reported yet"},
		"without route": {"status: {conditions: [" + ready + ", {type: NetworkUnavailable, status: 'True', reason: NoRouteCreated, message: no route}]}", "NetworkUnavailable is True: NoRouteCreated"},
		"tainted":       {"spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}\nstatus: {conditions: [" + ready + "]}", "taint node.kubernetes.io/not-ready:NoSchedule"},
		"just ready":    {"spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}\nstatus: {conditions: [" + ready + "]}", ""},
		"no network":    {"spec: {taints: [{key: node.kubernetes.io/network-unavailable, effect: NoSchedule}]}\nstatus: {conditions: [" + ready + "]}", "network-unavailable"},
		"other taints":  {"spec: {unschedulable: true, taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}, {key: node.cloudprovider.kubernetes.io/uninitialized, effect: NoSchedule}]}\nstatus: {conditions: [" + ready + "]}", ""},
		"on its way":    {"metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {conditions: [" + ready + "]}", "being deleted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { check(t, notReady(readAs[corev1.Node](t, test.node)), test.want) })
	}
}

func TestDeploymentMisses(t *testing.T) {
	tests := map[string]struct{ deployment, want string }{
		"done":     {"metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", ""},
		"scaled 0": {"metadata: {generation: 2}\nspec: {replicas: 0}\nstatus: {observedGeneration: 2}", ""},
		"unseen":   {"metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", "newest spec yet"},
		"updating": {"metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 2}", "1 of 2 replicas are of the newest spec"},
		"ending":   {"metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}", "1 replicas of older specs"},
		"starting": {"metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}", "1 of 2 replicas are available"},
		"hopeless": {"metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", "deadline is exceeded"},
		"default":  {"metadata: {generation: 1}\nstatus: {observedGeneration: 1}", "0 of 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, deploymentMisses(readAs[appsv1.Deployment](t, test.deployment)), test.want)
		})
	}
}

func TestDaemonSetMisses(t *testing.T) {
	tests := map[string]struct{ daemonSet, want string }{
		"done":      {"metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}", ""},
		"unseen":    {"metadata: {generation: 1}", "newest spec yet"},
		"updating":  {"metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}", "1 of 2 Pods are of the newest spec"},
		"starting":  {"metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}", "1 of 2 Pods are available"},
		"on delete": {"metadata: {generation: 2}\nspec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 2, numberAvailable: 2}", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { check(t, daemonSetMisses(readAs[appsv1.DaemonSet](t, test.daemonSet)), test.want) })
	}
}

func TestHindrance(t *testing.T) {
	tests := map[string]struct{ pod, want string }{
		"ready":         {"status: {containerStatuses: [{name: a, ready: true, state: {running: {}}}]}", ""},
		"being made":    {"status: {containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}", ""},
		"no image":      {"status: {containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff, message: not there}}}]}", "container a: ImagePullBackOff: not there"},
		"init":          {"status: {initContainerStatuses: [{name: i, state: {waiting: {reason: CreateContainerConfigError}}}]}", "container i: CreateContainerConfigError"},
		"crashing":      {"status: {containerStatuses: [{name: a, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 2, reason: Error}}}]}", "container a: restarted 3 times, last exit code 2 (Error)"},
		"unschedulable": {"status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes are available}]}", "0/3 nodes are available"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hindrance(readAs[corev1.Pod](t, test.pod)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		manifest string
		want     []string
		err      string
	}{
		"documents": {"# a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: a}\n", []string{"Namespace a", "ConfigMap a/b"}, ""},
		"json":      {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, []string{"Secret s"}, ""},
		"a list":    {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: z}}\n", []string{"ConfigMap x", "ConfigMap z"}, ""},
		"nothing":   {"", nil, ""},
		"no kind":   {"apiVersion: v1\nmetadata: {name: x}\n", nil, "document 1: apiVersion and kind"},
		"no name":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x}\n", nil, "metadata.name of the ConfigMap"},
		"twice":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: x}\n", nil, "document 2"},
		"no object": {"- a\n- b\n", nil, "document 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := parse([]byte(test.manifest))
			check(t, err, test.err)
			var got []string
			for _, o := range objects {
				got = append(got, title(o))
			}
			if strings.Join(got, ",") != strings.Join(test.want, ",") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]\n---\n{}"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [1, null]\n"))
	f.Add([]byte("apiVersion: 1\nkind: [a]\nmetadata: x\n"))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		objects, err := parse(manifest)
		for _, o := range objects {
			if err == nil && (o.GetKind() == "" || o.GetName() == "") {
				t.Errorf("an object without kind or name was let through: %v", o.Object)
			}
		}
	})
}

func TestDifferingPaths(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want string
	}{
		"same":       {"a: 1\nb: {c: [1, x]}", "b: {c: [1, x]}\na: 1.0", ""},
		"none":       {"", "{}", ""},
		"from none":  {"", "a: {b: 1}", ".a"},
		"changed":    {"a: {b: hunter2, c: 1}", "a: {b: other, c: 1}", ".a.b"},
		"gone":       {"a: {b: 1, c: 1}", "a: {c: 1}", ".a.b"},
		"other kind": {"a: {b: 1}\nz: 1", "a: [1]\nz: 2", ".a,.z"},
		"null":       {"a: null", "{}", ".a"},
		"in a list":  {"a: [{b: 1}]", "a: [{b: 2}]", ".a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := plain(*readAs[map[string]any](t, test.a)), plain(*readAs[map[string]any](t, test.b))
			if got := strings.Join(differingPaths(a, b, ""), ","); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestJoins(t *testing.T) {
	good := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"}, Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:a," + joiners),
		}}
	}
	if !joins(good()) {
		t.Error("a good token does not join")
	}
	for key, value := range map[string]string{"token-id": "abcdeg", "token-secret": "short",
		"usage-bootstrap-authentication": "false", "auth-extra-groups": "system:bootstrappers:a"} {
		s := good()
		s.Data[key] = []byte(value)
		if joins(s) {
			t.Errorf("a token with %s %s joins", key, value)
		}
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	began := make(chan struct{})
	go func() {
		<-began
		cancel(stop)
	}()
	// As Helm does: its request fails when ctx ends, and then it writes its record.
	recorded := false
	_, err := run(ctx, func() (*int, error) {
		close(began)
		<-ctx.Done()
		recorded = true
		return ptr.To(1), errors.New("the request was cut off")
	})
	if !errors.Is(err, stop) || !recorded {
		t.Errorf("%v, recorded %t", err, recorded)
	}
	if v, err := run(t.Context(), func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if left := timeLeft(t.Context()); left != releaseTimeout {
		t.Errorf("without a deadline hooks may take %s", left)
	}
	short, cancelShort := context.WithTimeout(t.Context(), time.Minute)
	defer cancelShort()
	if left := timeLeft(short); left > time.Minute {
		t.Errorf("with a deadline in a minute hooks may take %s", left)
	}
}
