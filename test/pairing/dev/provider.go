// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

const (
	// program is the provider's, and module is what that is in.
	program = "sigs.k8s.io/cluster-api/test/infrastructure/docker"
	module  = "sigs.k8s.io/cluster-api/test"
	// network is the one that the provider puts its containers in.
	network = "kind"
	// label is on all that is made here, with the name of the player.
	label = "kubexm.test/dev"
)

// Options say where the provider runs.
type Options struct {
	// Name tells what is made from what others make.
	Name string
	// Config is the management cluster's, and Kubeconfig a file for it, of somebody who may do anything there.
	Config     *rest.Config
	Kubeconfig string
	// Dir is for what the provider keeps, its log and the proxy's socket. Its path is short, as that of a socket must be.
	Dir string
	// Ports of this machine are the provider's own.
	Webhooks, Health, Diagnostics int
	// WithoutSSHD masks sshd in the hosts' image: nobody can dial them.
	WithoutSSHD bool
	// Log receives progress.
	Log func(format string, args ...any)
}

// Provider is the provider while it runs.
type Provider struct {
	// HostImage is what DevMachines name as their customImage.
	HostImage string
	// LoadBalancerRepository and LoadBalancerTag are what DevClusters name as their load balancers' image.
	LoadBalancerRepository, LoadBalancerTag string

	options Options
	proxy   *Proxy
	process *child.Process
}

// Start installs the provider's kinds and runs it until Stop.
func Start(ctx context.Context, o Options) (*Provider, error) {
	p := &Provider{options: o, proxy: &Proxy{Labels: map[string]string{label: o.Name}}}
	hosts.PrepareMachine(o.Log)
	if err := p.images(ctx); err != nil {
		return nil, err
	}
	if err := p.remove(ctx); err != nil { // what a run that was killed has left
		return nil, err
	}
	if _, err := provider.Command(ctx, "docker", "network", "inspect", network); err != nil {
		if _, err := provider.Command(ctx, "docker", "network", "create", "--label", label+"="+o.Name, network); err != nil {
			return nil, err
		}
	}
	kinds, err := Definitions(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := provider.Install(ctx, o.Config, kinds, func(*runtime.Scheme) error { return nil }); err != nil {
		return nil, err
	}
	socket := filepath.Join(o.Dir, "engine.sock")
	if err := p.proxy.Listen(ctx, socket); err != nil {
		return nil, err
	}
	if err := p.run(ctx, "unix://"+socket); err != nil {
		return nil, errors.Join(err, p.proxy.Close())
	}
	return p, nil
}

// Stop ends the provider, and removes what it has left.
func (p *Provider) Stop(ctx context.Context) error {
	return errors.Join(p.process.Stop(ctx), p.proxy.Close(), p.remove(ctx))
}

// Err is why the provider has ended by itself, nil while it runs.
func (p *Provider) Err() error { return p.process.Err() }

// images are made of test hosts', and have the names that the provider's fields are made for.
func (p *Provider) images(ctx context.Context) error {
	var err error
	if p.HostImage, err = hosts.EnsureImage(ctx, hosts.Debian, p.options.Log); err != nil {
		return err
	}
	if p.options.WithoutSSHD {
		if err := p.maskSSHD(ctx); err != nil {
			return err
		}
	}
	balancer, err := hosts.EnsureImage(ctx, hosts.HAProxy, p.options.Log)
	if err != nil {
		return err
	}
	p.LoadBalancerRepository, p.LoadBalancerTag, _ = strings.Cut(balancer, ":")
	_, err = provider.Command(ctx, "docker", "tag", balancer, p.LoadBalancerRepository+"/haproxy:"+p.LoadBalancerTag)
	return err
}

// maskSSHD makes the hosts' image one in which systemd starts no sshd.
func (p *Provider) maskSSHD(ctx context.Context) error {
	id, err := provider.Command(ctx, "docker", "create", "--label", label+"="+p.options.Name, p.HostImage)
	if err != nil {
		return err
	}
	for _, unit := range []string{"ssh.service", "ssh.socket"} {
		link := filepath.Join(p.options.Dir, unit)
		if err := os.Symlink("/dev/null", link); err != nil {
			return err
		}
		if _, err := provider.Command(ctx, "docker", "cp", link, strings.TrimSpace(id)+":/etc/systemd/system/"+unit); err != nil {
			return err
		}
	}
	p.HostImage += "-without-sshd"
	_, err = provider.Command(ctx, "docker", "commit", strings.TrimSpace(id), p.HostImage)
	return err
}

// run runs the provider's program.
func (p *Provider) run(ctx context.Context, engine string) error {
	o := p.options
	path := filepath.Join(o.Dir, "provider")
	if _, err := provider.Command(ctx, "go", "build", "-o", path, program); err != nil {
		return err
	}
	if err := provider.WriteServing(o.Dir); err != nil {
		return err
	}
	var err error
	p.process, err = child.Start(ctx, child.Spec{
		Name: "provider", Path: path, Dir: o.Dir, Grace: 30 * time.Second,
		Env: []string{"DOCKER_HOST=" + engine, "HOME=" + os.Getenv("HOME")},
		Args: []string{
			"--kubeconfig=" + o.Kubeconfig, "--feature-gates=MachinePool=false",
			fmt.Sprintf("--webhook-port=%d", o.Webhooks), "--webhook-cert-dir=.",
			fmt.Sprintf("--health-addr=127.0.0.1:%d", o.Health),
			fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", o.Diagnostics), "--insecure-diagnostics",
		},
	})
	return err
}

// remove removes the containers and the network of this name.
func (p *Provider) remove(ctx context.Context) error {
	filter := "label=" + label + "=" + p.options.Name
	containers, err := provider.Command(ctx, "docker", "ps", "--all", "--quiet", "--filter", filter)
	if err != nil {
		return err
	}
	if all := strings.Fields(containers); len(all) > 0 {
		if _, err := provider.Command(ctx, "docker", append([]string{"rm", "--force", "--volumes"}, all...)...); err != nil {
			return err
		}
	}
	networks, err := provider.Command(ctx, "docker", "network", "ls", "--quiet", "--filter", filter)
	if err != nil {
		return err
	}
	for _, one := range strings.Fields(networks) {
		if _, err := provider.Command(ctx, "docker", "network", "rm", one); err != nil {
			return err
		}
	}
	return nil
}

// Definitions are the provider's kinds.
func Definitions(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return provider.ModuleDefinitions(ctx, module, "infrastructure/docker/config/crd/bases")
}
