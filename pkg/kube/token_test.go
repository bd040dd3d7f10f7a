// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// tokens returns the names of the bootstrap tokens in the cluster.
func tokens(t *testing.T, client *kubernetes.Clientset) []string {
	t.Helper()
	var names []string
	list := must[*corev1.SecretList](t)(client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"}))
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

func secretName(v secret.Value) string { return "bootstrap-token-" + string(v.Reveal()[:6]) }

func TestToken(t *testing.T) {
	c, client := api(t)
	secrets := client.CoreV1().Secrets("kube-system")
	foreign := must[*corev1.Secret](t)(secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-zzzzzz"}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "zzzzzz", "token-secret": "0123456789abcdef", "expiration": "2020-01-01T00:00:00Z"},
	}, metav1.CreateOptions{})).Name
	take := func(ttl time.Duration) secret.Value {
		t.Helper()
		return must[secret.Value](t)(c.Token(t.Context(), ttl))
	}

	first := take(time.Hour)
	if !take(time.Hour).Equal(first) || !take(90*time.Minute).Equal(first) {
		t.Error("a token that is good was not used again")
	}
	second := take(3 * time.Hour)
	if second.Equal(first) {
		t.Error("a token with less than half of its time to live was handed out")
	}
	if !take(time.Hour).Equal(second) {
		t.Error("the token that is valid longest was not chosen")
	}
	if got, want := tokens(t, client), []string{foreign, secretName(first), secretName(second)}; !same(got, want) {
		t.Errorf("tokens %q, want %q", got, want)
	}

	who := whoIs(t, second)
	if who.Username != "system:bootstrap:"+string(second.Reveal()[:6]) || !slices.Contains(who.Groups, "system:bootstrappers:kubeadm:default-node-token") {
		t.Errorf("the server sees %+v", who)
	}

	// The first expires, the second is turned into something that nobody can join with.
	expire := []byte(`{"stringData":{"expiration":"2020-01-01T00:00:00Z"}}`)
	must[*corev1.Secret](t)(secrets.Patch(t.Context(), secretName(first), types.MergePatchType, expire, metav1.PatchOptions{}))
	spoil := []byte(`{"stringData":{"usage-bootstrap-authentication":"false"}}`)
	must[*corev1.Secret](t)(secrets.Patch(t.Context(), secretName(second), types.MergePatchType, spoil, metav1.PatchOptions{}))
	third := take(time.Hour)
	if got, want := tokens(t, client), []string{foreign, secretName(second), secretName(third)}; !same(got, want) || third.Equal(second) {
		t.Errorf("tokens %q, want %q", got, want)
	}

	_, err := c.Token(t.Context(), 0)
	wantError(t, err, "time to live")
}

// whoIs asks the server whom it takes the bearer of a token for.
func whoIs(t *testing.T, token secret.Value) authenticationv1.UserInfo {
	t.Helper()
	config := rest.AnonymousClientConfig(server)
	config.BearerToken = string(token.Reveal())
	client := must[*kubernetes.Clientset](t)(kubernetes.NewForConfig(config))
	review := must[*authenticationv1.SelfSubjectReview](t)(client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	return review.Status.UserInfo
}

func same(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
