// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
)

// The manager serves Cluster API's hooks where it was set to, with the webhooks' certificate.
func TestServesHooks(t *testing.T) {
	g := NewWithT(t)
	ctrl.SetLogger(logr.Discard())
	environment, err := testapi.Start(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = environment.Stop() }()
	hooks := environment.WebhookInstallOptions
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())

	o, err := parse([]string{
		"--providers=bootstrap", "--runtime-extension-port=" + port, "--webhook-port=" + strconv.Itoa(hooks.LocalServingPort),
		"--webhook-cert-dir=" + hooks.LocalServingCertDir, "--health-addr=0", "--diagnostics-address=0", "--insecure-diagnostics",
	})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.Background())
	mgr, err := newManager(ctx, environment.Config, o)
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	}()

	authority := x509.NewCertPool()
	g.Expect(authority.AppendCertsFromPEM(hooks.LocalServingCAData)).To(BeTrue())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}}}
	var found runtimehooksv1.DiscoveryResponse
	g.Eventually(func() error {
		response, err := client.Post("https://"+address+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", "application/json", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", response.Status)
		}
		return json.NewDecoder(response.Body).Decode(&found)
	}, time.Minute, 100*time.Millisecond).Should(Succeed())
	var names []string
	for _, handler := range found.Handlers {
		names = append(names, handler.RequestHook.Hook)
	}
	slices.Sort(names)
	g.Expect(names).To(Equal([]string{"CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"}))
}
