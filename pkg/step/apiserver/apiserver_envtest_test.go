// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
)

// A real API server takes the files and flags: it records who asked for what, never what is in a Secret even where bodies are
// recorded, and refuses Pods beyond the level.
func TestAPIServerTakesThem(t *testing.T) {
	c := spec.Cluster{}
	c.Kubernetes.APIServer.Audit.Level = spec.AuditRequestResponse
	c.Kubernetes.PodSecurity.Enforce = spec.PodSecurityBaseline
	c.Default()
	dir := t.TempDir()
	local := func(path string) string { return filepath.Join(dir, filepath.Base(path)) }
	for _, p := range apiserver.Files(c.Kubernetes).(step.Sequence).Parts {
		if f, ok := p.(step.File); ok {
			if err := os.WriteFile(local(f.Path), []byte(f.Content.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	env := &envtest.Environment{}
	flags := env.ControlPlane.GetAPIServer().Configure()
	var log string
	for _, a := range apiserver.Args(c.Kubernetes) {
		if strings.HasPrefix(a.Value, "/") {
			a.Value = local(a.Value)
		}
		if a.Name == "audit-log-path" {
			log = a.Value
		}
		flags.Set(a.Name, a.Value)
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// The controllers that make these are not here.
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
	}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	const word = "opensesame"
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "door"}, StringData: map[string]string{"word": word},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for namespace, refused := range map[string]bool{"default": true, "kube-system": false} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "rich"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "rich", Image: "rich", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
			}}, AutomountServiceAccountToken: ptr.To(false)},
		}
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if got := err != nil && strings.Contains(err.Error(), "violates PodSecurity"); got != refused {
			t.Errorf("a privileged Pod in %s: %v, want refused %t", namespace, err, refused)
		}
	}
	seen := map[string]string{}
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct {
			Level, Verb string
			ObjectRef   struct{ Resource, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(lines.Text(), word) {
			t.Errorf("a Secret's content is in the log: %s", lines.Text())
		}
		seen[fmt.Sprintf("%s %s", event.Verb, event.ObjectRef.Resource)] = event.Level
	}
	for what, level := range map[string]string{
		"create secrets": "Metadata", "create pods": "RequestResponse", "create leases": "", "update leases": "",
	} {
		if seen[what] != level {
			t.Errorf("%s is recorded at level %q, want %q (there are %v)", what, seen[what], level, seen)
		}
	}
}
