// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/bmc"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/recovery"
)

// A machine is reset with what its KubexmHost declares and the Secret has at that time, and when is on the KubexmConfig before.
func TestByController(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	secretOf := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet", Name: "bmc", Labels: map[string]string{bootstrapv1.ForHostsLabel: bootstrapv1.ForHostsCredentials},
			},
			Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{"username": []byte("kubexm"), "password": []byte("s3cret")},
		}
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		secret *corev1.Secret
		err    string
		// refuses and unanswered are whether the controller refuses the reset itself, or makes it and does not say so.
		refuses, unanswered bool
	}{
		"as declared":           {secret: secretOf(func(*corev1.Secret) {})},
		"it refuses":            {secret: secretOf(func(*corev1.Secret) {}), err: "409 Conflict", refuses: true},
		"it does not answer":    {secret: secretOf(func(*corev1.Secret) {}), err: "may have been reset", unanswered: true},
		"no Secret":             {secret: secretOf(func(s *corev1.Secret) { s.Name = "other" }), err: "spec.bmc.secretRef: the Secret bmc does not exist"},
		"nobody has agreed":     {secret: secretOf(func(s *corev1.Secret) { s.Labels = nil }), err: "has no label bootstrap.cluster.x-k8s.io/for-hosts=credentials, so no management controller is asked with it"},
		"without a password":    {secret: secretOf(func(s *corev1.Secret) { delete(s.Data, "password") }), err: "the Secret bmc lacks username or password"},
		"with another password": {secret: secretOf(func(s *corev1.Secret) { s.Data["password"] = []byte("other") }), err: "401 Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			var resets []string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != "s3cret" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				if r.Method == http.MethodPost && test.refuses {
					w.WriteHeader(http.StatusConflict)
					return
				}
				if r.Method == http.MethodPost {
					content, _ := io.ReadAll(r.Body)
					resets = append(resets, string(content))
					if test.unanswered {
						panic(http.ErrAbortHandler) // ends the connection
					}
					return
				}
				_, _ = io.WriteString(w, map[string]string{
					"/redfish/v1/":          `{"Systems":{"@odata.id":"/redfish/v1/Systems"}}`,
					"/redfish/v1/Systems":   `{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`,
					"/redfish/v1/Systems/1": `{"PowerState":"On","Actions":{"#ComputerSystem.Reset":{"target":"/reset"}}}`,
				}[r.URL.Path])
			}))
			defer server.Close()
			config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1", Annotations: map[string]string{
				bootstrapv1.RebootAnnotation:       at.Format(time.RFC3339),
				bootstrapv1.MachineResetAnnotation: at.Add(-time.Hour).Format(time.RFC3339),
			}}}
			scheme := testScheme(t)
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config, test.secret).Build()
			r := &KubexmConfigReconciler{Client: c, Reader: c}
			declared := someBMC()
			fingerprint := sha256.Sum256(server.Certificate().Raw)
			declared.Address, declared.Certificate.SHA256Fingerprint = server.URL, hex.EncodeToString(fingerprint[:])
			s := &scope{config: config, key: client.ObjectKeyFromObject(config), host: &infra.Host{BMC: declared}}

			var reboot recovery.Reboot
			var how bmc.ResetType
			r.byController(s, &reboot, &how)
			if last := reboot.Controller.Last; !last.Time.Equal(at.Add(-time.Hour)) || last.Refused {
				t.Errorf("known of its last reset is %v, want one an hour before", last)
			}
			for _, reset := range []recovery.Reset{{Time: at}, {Time: at, Refused: true}} {
				if err := reboot.Controller.Record(t.Context(), reset); err != nil {
					t.Fatal(err)
				}
				known := &bootstrapv1.KubexmConfig{}
				if err := c.Get(t.Context(), s.key, known); err != nil {
					t.Fatal(err)
				}
				// The next manager reads what this one has written.
				if got := lastReset(known); !got.Time.Equal(at) || got.Refused != reset.Refused || len(known.Annotations) != 2 {
					t.Errorf("the annotations are %v, want %v", known.Annotations, reset)
				}
			}
			made, err := reboot.Controller.Reset(t.Context())
			if made != (test.err == "" || test.unanswered) {
				t.Errorf("that it was reset is said to be %t", made)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if want := []string{`{"ResetType":"ForceRestart"}`}; made && (!slices.Equal(resets, want) || how != bmc.ForceRestart) {
				t.Errorf("it was asked for %q (%s), want %q", resets, how, want)
			}
			if !made && (len(resets) > 0 || how != "") {
				t.Errorf("it was asked for %q (%s), want nothing", resets, how)
			}
		})
	}
	t.Run("none is declared", func(t *testing.T) {
		var reboot recovery.Reboot
		(&KubexmConfigReconciler{}).byController(&scope{config: &bootstrapv1.KubexmConfig{}, host: &infra.Host{}}, &reboot, nil)
		if reboot.Controller != nil {
			t.Error("the machine is reset, though no controller is declared")
		}
	})
}
