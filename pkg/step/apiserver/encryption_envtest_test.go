// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
)

// oneKey is all that a plan with encryption refers to.
type oneKey struct{ pki.KeyPair }

func (k oneKey) Secret(step.SecretRef) ([]byte, error) { return k.Key.Reveal(), nil }
func (oneKey) Output(string) ([]byte, error)           { return nil, step.ErrUnknown }

// A real API server takes the configuration: what it is to encrypt is encrypted in etcd, and read back by it; all else is in clear. What
// was stored in clear before, it reads.
func TestSecretsAreEncrypted(t *testing.T) {
	for provider, tc := range map[spec.EncryptionProvider]struct {
		resources []string
		prefix    string
		clear     bool // ConfigMaps are
	}{
		spec.EncryptionSecretbox: {nil, "k8s:enc:secretbox:v1:key1:", true},
		spec.EncryptionAESCBC:    {[]string{"secrets", "configmaps", "widgets.example.com"}, "k8s:enc:aescbc:v1:key1:", false},
		spec.EncryptionNone:      {nil, "k8s\x00", true},
	} {
		t.Run(string(provider), func(t *testing.T) {
			c := spec.Cluster{}
			c.Kubernetes.EncryptionAtRest = spec.EncryptionAtRest{Provider: provider, Resources: tc.resources}
			c.Default()
			client, etcd := serve(t, c.Kubernetes)

			const word = "opensesame"
			if _, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "door"}, StringData: map[string]string{"word": word},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "door"}, Data: map[string]string{"word": word},
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			stored := etcd.get(t, "/registry/secrets/default/door")
			if !bytes.HasPrefix(stored, []byte(tc.prefix)) || bytes.Contains(stored, []byte(word)) == (provider != spec.EncryptionNone) {
				t.Errorf("the Secret is stored as %q", stored)
			}
			if stored := etcd.get(t, "/registry/configmaps/default/door"); bytes.Contains(stored, []byte(word)) != tc.clear {
				t.Errorf("the ConfigMap is stored as %q", stored)
			}
			read, err := client.CoreV1().Secrets("default").Get(t.Context(), "door", metav1.GetOptions{})
			if err != nil || string(read.Data["word"]) != word {
				t.Errorf("read back, it is %q (%v)", read.Data["word"], err)
			}

			etcd.put(t, "/registry/secrets/default/old", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"old","namespace":"default"},"data":{"word":"b2xk"}}`)
			read, err = client.CoreV1().Secrets("default").Get(t.Context(), "old", metav1.GetOptions{})
			if err != nil || string(read.Data["word"]) != "old" {
				t.Errorf("what was stored in clear is %q (%v)", read.Data["word"], err)
			}
		})
	}
}

// serve starts etcd and an API server with the flags that k has for encryption, and files as the step writes them.
func serve(t *testing.T, k spec.Kubernetes) (*kubernetes.Clientset, gateway) {
	t.Helper()
	dir := t.TempDir()
	if k.EncryptionAtRest.IsOn() {
		key := pki.NewEncryptionKey()
		for _, p := range apiserver.Encryption(k).(step.Sequence).Parts {
			f, ok := p.(step.File)
			if !ok {
				continue
			}
			content, err := f.Content.Resolve(oneKey{key})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(f.Content.String(), string(key.Key.Reveal())) || f.Mode != 0o600 {
				t.Errorf("%s, mode %04o, is shown as %s", f.Path, f.Mode, f.Content)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(f.Path)), content.Reveal(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	env := &envtest.Environment{}
	flags := env.ControlPlane.GetAPIServer().Configure()
	set := false
	for _, a := range apiserver.Args(k) {
		if a.Name == "encryption-provider-config" {
			flags.Set(a.Name, filepath.Join(dir, filepath.Base(a.Value)))
			set = true
		}
	}
	if set != k.EncryptionAtRest.IsOn() {
		t.Fatalf("the flag is set: %t", set)
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
	return client, gateway(env.ControlPlane.Etcd.URL.String())
}

// gateway is etcd's API by JSON.
type gateway string

func (g gateway) get(t *testing.T, key string) []byte {
	t.Helper()
	var answer struct {
		KVs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	g.ask(t, "range", map[string][]byte{"key": []byte(key)}, &answer)
	if len(answer.KVs) != 1 {
		t.Fatalf("%s is not in etcd", key)
	}
	return answer.KVs[0].Value
}

func (g gateway) put(t *testing.T, key, value string) {
	t.Helper()
	g.ask(t, "put", map[string][]byte{"key": []byte(key), "value": []byte(value)}, &struct{}{})
}

func (g gateway) ask(t *testing.T, what string, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, string(g)+"/v3/kv/"+what, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	said, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Body.Close()
	if err := json.NewDecoder(said.Body).Decode(answer); err != nil || said.StatusCode != http.StatusOK {
		t.Fatalf("etcd says %s (%v)", said.Status, err)
	}
}
