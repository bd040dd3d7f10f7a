// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func secretOf(kind corev1.SecretType, use string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "it"}, Type: kind,
		Data: map[string][]byte{"tls.key": []byte("key"), "password": []byte("hunter2")},
	}
	if use != "" {
		s.Labels = map[string]string{bootstrapv1.ForHostsLabel: use}
	}
	return s
}

func keyOf(use string) *corev1.Secret {
	s := secretOf(corev1.SecretTypeSSHAuth, use)
	s.Data = map[string][]byte{"tls.key": []byte("key"), corev1.SSHAuthPrivateKey: []byte("key")}
	return s
}

// Anyone who names a Secret need not be allowed to read it: the Secret itself must be for hosts.
func TestSecretsForHosts(t *testing.T) {
	const content, credentials = bootstrapv1.ForHostsContent, bootstrapv1.ForHostsCredentials
	for name, test := range map[string]struct {
		secret        *corev1.Secret
		file, loginOK bool
	}{
		"any Secret":                   {secret: secretOf(corev1.SecretTypeOpaque, "")},
		"for files":                    {secret: secretOf(corev1.SecretTypeOpaque, content), file: true},
		"for logins":                   {secret: secretOf(corev1.SecretTypeOpaque, credentials), loginOK: true},
		"for something else":           {secret: secretOf(corev1.SecretTypeOpaque, "true")},
		"certificates for files":       {secret: secretOf(corev1.SecretTypeTLS, content), file: true},
		"a cluster's own":              {secret: secretOf(clusterv1.ClusterSecretType, "")},
		"a cluster's own for files":    {secret: secretOf(clusterv1.ClusterSecretType, content)},
		"a cluster's own for logins":   {secret: secretOf(clusterv1.ClusterSecretType, credentials)},
		"a key":                        {secret: keyOf(""), loginOK: true},
		"a key for files":              {secret: keyOf(content), loginOK: true},
		"a key and a password":         {secret: secretOf(corev1.SecretTypeSSHAuth, "")},
		"both for logins":              {secret: secretOf(corev1.SecretTypeSSHAuth, credentials), loginOK: true},
		"a password for logins":        {secret: secretOf(corev1.SecretTypeBasicAuth, credentials), loginOK: true},
		"a password":                   {secret: secretOf(corev1.SecretTypeBasicAuth, "")},
		"a token for files":            {secret: secretOf(corev1.SecretTypeServiceAccountToken, content)},
		"a token for logins":           {secret: secretOf(corev1.SecretTypeServiceAccountToken, credentials)},
		"a bootstrap token for files":  {secret: secretOf(corev1.SecretTypeBootstrapToken, content)},
		"a bootstrap token for logins": {secret: secretOf(corev1.SecretTypeBootstrapToken, credentials)},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithObjects(test.secret).Build()
			r := &KubexmConfigReconciler{Client: reader, Reader: reader}

			value, err := r.secrets(t.Context(), client.ObjectKey{Namespace: "default", Name: "prod"})(step.SecretRef{Name: "it", Key: "tls.key"})
			if got := err == nil && string(value) == "key"; got != test.file {
				t.Errorf("a plan reads it: %v, %v", got, err)
			}
			config := &bootstrapv1.KubexmConfig{Spec: bootstrapv1.KubexmConfigSpec{}}
			config.Spec.Files = []spec.File{
				{Path: "/a"}, {Path: "/b", ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: "it", Key: "tls.key"}}},
			}
			_, err = r.versions(t.Context(), "default", secretsOf(config))
			if (err == nil) != test.file {
				t.Errorf("a file is made from it: %v", err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "spec.files[1].contentFrom.secret.name: the Secret it ") {
				t.Errorf("the error does not name the field: %v", err)
			}

			_, err = r.credentials(t.Context(), client.ObjectKey{Namespace: "default", Name: "it"})
			if (err == nil) != test.loginOK {
				t.Errorf("it is used to log in: %v", err)
			}
			var none *noCredentials
			if err != nil && (!errors.As(err, &none) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A KubexmConfig that is called as a Cluster's certificate authority destroys nothing, and deletes nothing later.
func TestBootstrapDataLeavesForeignSecrets(t *testing.T) {
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod-ca", UID: "1"}}
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"tls.key": []byte("key")},
	}
	c := fake.NewClientBuilder().WithObjects(foreign).Build()
	r := &KubexmConfigReconciler{Client: c, Reader: c}
	s := &scope{config: config, key: client.ObjectKeyFromObject(config)}
	wanted := foreign.DeepCopy()
	wanted.ResourceVersion, wanted.Data = "", map[string][]byte{"value": []byte("x")}
	if err := r.write(t.Context(), s, wanted); err == nil || !strings.Contains(err.Error(), "another name") {
		t.Errorf("got %v", err)
	}
	if err := r.unpublish(t.Context(), s); err != nil {
		t.Errorf("got %v", err)
	}
	after := &corev1.Secret{}
	if err := c.Get(t.Context(), s.key, after); err != nil || string(after.Data["tls.key"]) != "key" || len(after.OwnerReferences) > 0 {
		t.Errorf("the Secret is %v, %v", after, err)
	}
}
