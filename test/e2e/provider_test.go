// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// provider is one of ours: its components are installed, and its manager runs or not.
type provider struct {
	// name is that of --providers; directory is below config/.
	name, directory string
	program         string
	// dir keeps the manager's kubeconfig, certificate and log.
	dir                         string
	webhooks, health, telemetry int
	// args are what this manager is started with, beside what all are.
	args []string

	process *child.Process
}

func (p *provider) namespace() string { return "kubexm-" + p.name + "-system" }

// install brings the components of all providers to the management cluster.
func (e *environment) install(program string) []*provider {
	authority, err := pki.NewCA(pki.CARequest{CommonName: "kubexm-e2e", Key: pki.ECDSAP256})
	e.Expect(err).NotTo(HaveOccurred())
	var all []*provider
	for name, directory := range map[string]string{"bootstrap": "bootstrap", "control-plane": "controlplane", "infrastructure": "infrastructure"} {
		p := &provider{
			name: name, directory: directory, program: program, dir: filepath.Join(e.dir, name),
			webhooks: e.freePort(), health: e.freePort(), telemetry: e.freePort(),
		}
		e.Expect(os.Mkdir(p.dir, 0o700)).To(Succeed())
		e.apply(e.components(p, authority.Cert)...)
		e.writeCertificate(p, authority)
		e.writeKubeconfig(p)
		all = append(all, p)
	}
	return all
}

// freePort is one that nobody has. It is none of those that Linux gives to connections, by which it would be taken before a manager starts.
func (e *environment) freePort() int {
	e.t.Helper()
	const first, end = 20000, 30000
	for {
		port := first + rand.IntN(end-first)
		listener, err := new(net.ListenConfig).Listen(e.t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		e.Expect(err).NotTo(HaveOccurred())
		e.Expect(listener.Close()).To(Succeed())
		return port
	}
}

// writeCertificate does cert-manager's part.
func (e *environment) writeCertificate(p *provider, authority pki.KeyPair) {
	pair, err := authority.Sign(pki.LeafRequest{
		CommonName: p.name, IPs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Usages: []pki.Usage{pki.Server},
	})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(os.WriteFile(filepath.Join(p.dir, "tls.crt"), pair.Cert, 0o600)).To(Succeed())
	e.Expect(os.WriteFile(filepath.Join(p.dir, "tls.key"), pair.Key.Reveal(), 0o600)).To(Succeed())
}

// writeKubeconfig does the kubelet's part: the manager has the rights of its ServiceAccount and no others.
func (e *environment) writeKubeconfig(p *provider) {
	account := "kubexm-" + p.name + "-manager"
	token, err := e.clientset.CoreV1().ServiceAccounts(p.namespace()).CreateToken(e.t.Context(),
		account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	server := e.plane.RESTConfig()
	e.Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: server.Host, CertificateAuthorityData: server.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{account: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: account}},
		CurrentContext: "e2e",
	}, filepath.Join(p.dir, "kubeconfig"))).To(Succeed())
}

// bootstrap is the bootstrap provider.
func (e *environment) bootstrap() *provider {
	return e.providers[slices.IndexFunc(e.providers, func(p *provider) bool { return p.name == "bootstrap" })]
}

// startManagers starts each provider's manager and returns when all of them are ready.
func (e *environment) startManagers(args ...string) {
	e.t.Helper()
	for _, p := range e.providers {
		e.startManager(p, args...)
	}
	for _, p := range e.providers {
		e.Eventually(func() error { return p.ready(e.t.Context()) }).Should(Succeed())
	}
}

// startManager starts one provider's manager.
func (e *environment) startManager(p *provider, args ...string) {
	e.t.Helper()
	var err error
	p.process, err = child.Start(e.t.Context(), child.Spec{
		Name: "manager", Path: p.program, Dir: p.dir, Grace: 30 * time.Second,
		// Where artifacts are unpacked is found by these.
		Env: []string{"HOME=" + os.Getenv("HOME"), "KUBEXM_CACHE=" + os.Getenv("KUBEXM_CACHE"), "XDG_CACHE_HOME=" + os.Getenv("XDG_CACHE_HOME")},
		Args: append([]string{
			"--providers=" + p.name, "--kubeconfig=kubeconfig", "--bundle=" + e.bundle.Dir(),
			"--webhook-port=" + strconv.Itoa(p.webhooks), "--webhook-cert-dir=.",
			"--health-addr=127.0.0.1:" + strconv.Itoa(p.health),
			"--diagnostics-address=127.0.0.1:" + strconv.Itoa(p.telemetry), "--insecure-diagnostics",
		}, slices.Concat(p.args, args)...),
	})
	e.Expect(err).NotTo(HaveOccurred())
}

func (p *provider) ready(ctx context.Context) error {
	if err := p.process.Err(); err != nil {
		return StopTrying(err.Error())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", p.health), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// stopManagers ends the managers as Kubernetes ends Pods: each must end by itself and in order.
func (e *environment) stopManagers() {
	e.t.Helper()
	for _, p := range e.providers {
		e.end(p)
	}
}

func (e *environment) end(p *provider) {
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	running := p.process.Err() == nil
	if err := p.process.Stop(ctx); err != nil {
		e.t.Error(err)
	}
	if exit := new(child.ExitError); running && errors.As(p.process.Err(), &exit) && exit.Cause != nil {
		e.t.Errorf("the %s manager did not end in order: %v", p.name, exit)
	}
}

// killManagers ends the managers as a power cut does.
func (e *environment) killManagers() {
	e.t.Helper()
	for _, p := range e.providers {
		e.Expect(syscall.Kill(-p.process.PID(), syscall.SIGKILL)).To(Succeed())
	}
	for _, p := range e.providers {
		<-p.process.Done()
	}
}
