// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("there is no error; it should say %q", words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q should say %q", err, word)
		}
	}
}

func TestHealthy(t *testing.T) {
	const verbose = "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n"
	release := make(chan struct{})
	tests := map[string]struct {
		answer  http.HandlerFunc
		timeout time.Duration
		want    []string
	}{
		"ready": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				w.WriteHeader(http.StatusNotFound)
			}
		}, time.Minute, nil},
		"failing checks": {func(w http.ResponseWriter, r *http.Request) {
			if !r.URL.Query().Has("verbose") {
				t.Error("details were not asked for")
			}
			http.Error(w, verbose, http.StatusInternalServerError)
		}, time.Minute, []string{"failing: etcd failed; poststarthook/rbac/bootstrap-roles failed"}},
		"overloaded": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}, time.Minute, []string{"too many requests"}},
		"refused": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, time.Minute, []string{"asked for the client to provide credentials"}},
		"silent":  {func(http.ResponseWriter, *http.Request) { <-release }, 50 * time.Millisecond, []string{"deadline exceeded"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.answer)
			defer server.Close()
			if name == "silent" {
				defer close(release)
			}
			c, err := kube.New(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			err = c.Healthy(ctx)
			if test.want == nil && err != nil {
				t.Error(err)
			}
			if test.want != nil {
				wantError(t, err, append(test.want, "API server "+server.URL+": not ready")...)
			}
		})
	}
}

func TestErrorsNameTheServerOnce(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	calls := map[string]func(context.Context) error{
		"Healthy":       c.Healthy,
		"NodeReady":     func(ctx context.Context) error { return c.NodeReady(ctx, "n1") },
		"NetworkReady":  func(ctx context.Context) error { return c.NetworkReady(ctx, "kube-flannel", "kube-flannel-ds", "n1") },
		"WorkloadReady": func(ctx context.Context) error { return c.WorkloadReady(ctx, "Deployment", "kube-system", "coredns") },
		"Differs":       func(ctx context.Context) error { _, err := c.Differs(ctx, manifest); return err },
		"Apply":         func(ctx context.Context) error { return c.Apply(ctx, manifest) },
		"Token":         func(ctx context.Context) error { _, err := c.Token(ctx, time.Hour); return err },
		"Nodes":         func(ctx context.Context) error { _, err := c.Nodes(ctx); return err },
		"DeleteNode":    func(ctx context.Context) error { return c.DeleteNode(ctx, "n1") },
		"DrainNode":     func(ctx context.Context) error { return c.DrainNode(ctx, "n1") },
		"ReleaseDiffers": func(ctx context.Context) error {
			_, err := c.ReleaseDiffers(ctx, testRelease(t, configMapChart, nil))
			return err
		},
		"InstallRelease": func(ctx context.Context) error { return c.InstallRelease(ctx, testRelease(t, configMapChart, nil)) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context())
			wantError(t, err, "API server "+server.URL, "connection refused")
			if n := strings.Count(err.Error(), "API server"); n != 1 {
				t.Errorf("the server is named %d times: %v", n, err)
			}
		})
	}
}

// TestCallsAreBounded asks a server that accepts connections and never answers.
func TestCallsAreBounded(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	c, err := kube.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	manifest := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	calls := map[string]func(context.Context) error{
		"Healthy":        c.Healthy,
		"NodeReady":      func(ctx context.Context) error { return c.NodeReady(ctx, "n1") },
		"Apply":          func(ctx context.Context) error { return c.Apply(ctx, manifest) },
		"InstallRelease": func(ctx context.Context) error { return c.InstallRelease(ctx, testRelease(t, configMapChart, nil)) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			stop := errors.New("the run was stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(50*time.Millisecond, func() { cancel(stop) })
			defer timer.Stop()
			if err := call(ctx); err == nil || ctx.Err() == nil {
				t.Errorf("it returned %v before it was stopped", err)
			}
		})
	}
}

func TestFromKubeconfigRefuses(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
	const cluster = "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443'}}]\n"
	tests := map[string]struct{ kubeconfig, want string }{
		"a good one":     {head + cluster + "users: [{name: u, user: {token: hunter2}}]", ""},
		"no YAML":        {"hunter2: [", "not readable"},
		"no context":     {"apiVersion: v1\nkind: Config\ncurrent-context: b\n", `no context "b"`},
		"no user":        {head + cluster, `no user "u"`},
		"a command":      {head + cluster + "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}}]", "users[u].exec"},
		"a provider":     {head + cluster + "users: [{name: u, user: {auth-provider: {name: gcp}}}]", "users[u].auth-provider"},
		"a token's file": {head + cluster + "users: [{name: u, user: {tokenFile: /etc/passwd}}]", "users[u] names a file"},
		"a key's file":   {head + cluster + "users: [{name: u, user: {client-key: /etc/passwd}}]", "users[u] names a file"},
		"a CA's file": {head + "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443', certificate-authority: /etc/passwd}}]\n" +
			"users: [{name: u, user: {token: hunter2}}]", "clusters[c].certificate-authority"},
		"no proxy": {head + "clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443', proxy-url: 'ftp://u:hunter2@10.0.0.2'}}]\n" +
			"users: [{name: u, user: {token: x}}]", "clusters[c].proxy-url"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := kube.FromKubeconfig(secret.New(test.kubeconfig))
			if test.want == "" {
				if err != nil || c.Server() != "https://10.0.0.1:6443" {
					t.Error(err)
				}
				return
			}
			wantError(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}
