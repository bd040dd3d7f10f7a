// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

// module is what the providers' programs are in.
const module = "sigs.k8s.io/cluster-api"

// Name is a provider's directory in the module, where its program, its kinds and its webhooks are.
type Name string

// The providers.
const (
	// Bootstrap is that of KubeadmConfig.
	Bootstrap Name = "bootstrap/kubeadm"
	// ControlPlane is that of KubeadmControlPlane.
	ControlPlane Name = "controlplane/kubeadm"
)

// Options say which provider runs, and where.
type Options struct {
	Name Name
	// Config is the management cluster's, and Kubeconfig a file for it, of somebody who may do anything there.
	Config     *rest.Config
	Kubeconfig string
	// Dir is for what the provider keeps, and its log.
	Dir string
	// Ports of this machine are the provider's own.
	Webhooks, Health, Diagnostics int
}

// Provider is a provider while it runs.
type Provider struct{ process *child.Process }

// Start installs the provider's kinds and webhooks, runs it until Stop, and returns when it is ready.
func Start(ctx context.Context, o Options) (*Provider, error) {
	kinds, err := Definitions(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	installed, err := provider.Install(ctx, o.Config, kinds, admissionregistrationv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Dir, "provider")
	if _, err := provider.Command(ctx, "go", "build", "-o", path, module+"/"+string(o.Name)); err != nil {
		return nil, err
	}
	authority, err := certificate(o.Dir)
	if err != nil {
		return nil, err
	}
	process, err := child.Start(ctx, child.Spec{
		Name: "provider", Path: path, Dir: o.Dir, Grace: 30 * time.Second,
		Args: []string{
			"--kubeconfig=" + o.Kubeconfig, "--feature-gates=MachinePool=false",
			fmt.Sprintf("--webhook-port=%d", o.Webhooks), "--webhook-cert-dir=.",
			fmt.Sprintf("--health-addr=127.0.0.1:%d", o.Health),
			fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", o.Diagnostics), "--insecure-diagnostics",
		},
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{process: process}
	err = p.waitReady(ctx, o.Health)
	if err == nil { // before, nobody would answer
		err = webhooks(ctx, installed.Client, o, authority)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// Stop ends the provider. What it has installed stays.
func (p *Provider) Stop(ctx context.Context) error { return p.process.Stop(ctx) }

// Err is why the provider has ended by itself, nil while it runs.
func (p *Provider) Err() error { return p.process.Err() }

// Definitions are a provider's kinds.
func Definitions(ctx context.Context, name Name) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return provider.ModuleDefinitions(ctx, module, string(name)+"/config/crd/bases")
}

func (p *Provider) waitReady(ctx context.Context, port int) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := p.Err(); err != nil {
			return false, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		last = errors.New(response.Status)
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("the provider is not ready: %w (last: %w)", err, last)
	}
	return nil
}

// certificate writes the webhook server's, and returns the authority that vouches for it, as PEM.
func certificate(dir string) ([]byte, error) {
	authority, err := pki.NewCA(pki.CARequest{CommonName: "kubeadm", Key: pki.ECDSAP256})
	if err != nil {
		return nil, err
	}
	pair, err := authority.Sign(pki.LeafRequest{
		CommonName: "kubeadm", IPs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, Usages: []pki.Usage{pki.Server},
	})
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key.Reveal()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return authority.Cert, nil
}

// webhooks installs the provider's webhooks, to be asked where its program serves them.
func webhooks(ctx context.Context, c client.Client, o Options, authority []byte) error {
	dir, err := provider.ModuleDir(ctx, module)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, string(o.Name), "config/webhook/manifests.yaml")
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for _, into := range []runtime.Object{mutating, validating} {
		if err := documents.Decode(into); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	var all []*admissionregistrationv1.WebhookClientConfig
	for i := range mutating.Webhooks {
		all = append(all, &mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		all = append(all, &validating.Webhooks[i].ClientConfig)
	}
	if len(mutating.Webhooks) == 0 || len(validating.Webhooks) == 0 {
		return fmt.Errorf("%s has not one configuration of each kind, mutating first", path)
	}
	for _, one := range all {
		*one = admissionregistrationv1.WebhookClientConfig{
			URL: new(fmt.Sprintf("https://127.0.0.1:%d%s", o.Webhooks, *one.Service.Path)), CABundle: authority,
		}
	}
	for _, object := range []client.Object{mutating, validating} {
		object.SetName("kubeadm-" + filepath.Dir(string(o.Name)))
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
