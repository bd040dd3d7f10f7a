// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

const (
	poolName  = "cc"
	namespace = "fleet"
	// managing is how many of the hosts become the management cluster; the others are in its inventory.
	managing = 2
	// So many hosts of the inventory are for what their label says. One control plane host is to spare.
	controlPlanes, loadBalancers, workers = 4, 2, 2
	// poll is how often one checks what must become so.
	poll = time.Second
	// patience is how long one thing may take, with some to spare for machines that have other things to do.
	patience = 15 * time.Minute
)

// environment is a management cluster on hosts, with more hosts for what it manages.
type environment struct {
	*WithT
	t *testing.T
	// dir keeps state and logs. It is left behind when the test fails. release is where our own releases are in it.
	dir, release string
	// others is what is not ours: see catalogue.yaml.
	others *artifact.Bundle
	// bundles are those of both releases of Kubernetes, by version.
	bundles map[string]string

	pool       *lab.Lab
	management kubexm.Cluster
	// kubeconfig and api are those of the management cluster that commands are for; api has no cache.
	kubeconfig string
	api        client.Client
}

// start makes everything that must be there before there is a management cluster.
func start(t *testing.T) *environment {
	t.Helper()
	dir := lab.Dir(t)
	l := (&environment{dir: dir, release: filepath.Join(dir, "release")}).in(t)
	l.build()
	l.writeRelease(first)
	l.configure()
	l.startHosts()
	l.management = kubexm.Cluster{
		Name: "management", Dir: dir, Hosts: l.pool.Hosts[:managing], KnownHosts: filepath.Join(l.pool.Dir, "known_hosts"),
		Program: lab.Program(t),
		Bundle:  lab.Bundle(t, "KUBEXM_BUNDLE", "bundle"),
	}
	previous := cmp.Or(os.Getenv("KUBEXM_BUNDLE_PREVIOUS"), filepath.Join(filepath.Dir(l.management.Bundle), "bundle-"+older))
	l.bundles = map[string]string{release: l.management.Bundle, older: l.absolute(previous)}
	for version, dir := range l.bundles {
		l.Expect(dir).To(BeADirectory(), "the bundle of "+version+": make artifacts artifacts-previous")
	}
	return l
}

// in is the environment for a part of the test.
func (l *environment) in(t *testing.T) *environment {
	t.Helper()
	part := *l
	part.t, part.WithT = t, NewWithT(t)
	part.SetDefaultEventuallyPollingInterval(poll)
	part.SetDefaultEventuallyTimeout(patience)
	return &part
}

func (l *environment) absolute(path string) string {
	absolute, err := filepath.Abs(path)
	l.Expect(err).NotTo(HaveOccurred())
	return absolute
}

func (l *environment) startHosts() {
	l.pool = lab.Start(l.t, hosts.Options{
		Name: poolName, Count: managing + controlPlanes + loadBalancers + workers, Subnet: lab.Subnet(l.t, "CLUSTERCTL_SUBNET"),
		Dir: filepath.Join(l.dir, "hosts"),
	})
}

// inventory are the hosts that the management cluster manages: those for control planes, for load balancers, then for workers.
func (l *environment) inventory() []*hosts.Host { return l.pool.Hosts[managing:] }

// role is the label of a host of the inventory.
func role(i int) string {
	switch {
	case i < controlPlanes:
		return "control-plane"
	case i < controlPlanes+loadBalancers:
		return "load-balancer"
	}
	return "worker"
}

// expectReset compares the inventory's hosts with what they were before anybody touched them.
func (l *environment) expectReset() {
	l.t.Helper()
	l.pool.WantReset(l.t, l.inventory()...)
}

// claimed are the hosts of the inventory that Machines have.
func (l *environment) claimed() []*hosts.Host {
	l.t.Helper()
	all := &infrav1.KubexmHostList{}
	l.Expect(l.api.List(l.t.Context(), all, client.InNamespace(namespace))).To(Succeed())
	var claimed []*hosts.Host
	for _, host := range l.inventory() {
		if slices.ContainsFunc(all.Items, func(h infrav1.KubexmHost) bool { return h.Name == host.Name && h.Spec.ClaimRef.Name != "" }) {
			claimed = append(claimed, host)
		}
	}
	l.Expect(claimed).NotTo(BeEmpty())
	return claimed
}

// marks tell, by host, when anything that we put there was last changed or started.
func (l *environment) marks(of ...*hosts.Host) map[string]string {
	l.t.Helper()
	const script = `set -e
		systemctl show containerd kubelet --property=Id,ActiveEnterTimestamp,NRestarts
		find /etc/containerd /etc/kubernetes /etc/systemd/system /opt/cni /usr/local/bin /var/lib/kubelet/config.yaml -type f -printf '%p %T@\n' | sort`
	marks := map[string]string{}
	for _, host := range of {
		out, err := host.Exec(l.t.Context(), "sh", "-c", script)
		l.Expect(err).NotTo(HaveOccurred())
		marks[host.Name] = out
	}
	return marks
}

// connect makes commands be for the management cluster of a kubeconfig.
func (l *environment) connect(kubeconfig string) {
	l.t.Helper()
	l.kubeconfig = kubeconfig
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	l.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterctlv1.AddToScheme, clusterv1.AddToScheme,
		bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		l.Expect(add(scheme)).To(Succeed())
	}
	l.api, err = client.New(config, client.Options{Scheme: scheme})
	l.Expect(err).NotTo(HaveOccurred())
}

// clusterctl runs clusterctl with variables and arguments, and returns what it prints to standard output.
func (l *environment) clusterctl(variables map[string]string, args ...string) string {
	l.t.Helper()
	return l.command(variables, "", l.program("clusterctl", "clusterctl"), append(args, "--config", l.config())...)
}

// kubectl runs kubectl with arguments and standard input, and returns what it prints to standard output.
func (l *environment) kubectl(stdin string, args ...string) string {
	l.t.Helper()
	return l.command(nil, stdin, l.program(artifact.Kubernetes, "kubectl"), args...)
}

// command runs a program, again for a minute where a webhook was not there: on a busy machine managers lose their leases, and start
// anew.
func (l *environment) command(variables map[string]string, stdin, program string, args ...string) string {
	l.t.Helper()
	const away = "failed calling webhook"
	var stdout, stderr string
	l.Eventually(func(g Gomega) {
		var err error
		if stdout, stderr, err = l.try(variables, stdin, program, args...); err != nil && !strings.Contains(stderr, away) {
			l.Expect(err).NotTo(HaveOccurred(), "%s %s\n%s%s", filepath.Base(program), strings.Join(args, " "), stdout, stderr)
		}
		g.Expect(err).NotTo(HaveOccurred(), "%s %s\n%s%s", filepath.Base(program), strings.Join(args, " "), stdout, stderr)
	}, time.Minute).Should(Succeed())
	return stdout
}

func (l *environment) try(variables map[string]string, stdin, program string, args ...string) (stdout, stderr string, err error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = []string{
		"HOME=" + l.dir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + l.kubeconfig,
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", // it asks a module proxy
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		cmd.Env = append(cmd.Env, name+"="+variables[name])
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	began := time.Now()
	err = cmd.Run()
	l.t.Logf("%s %s: %.1f s\n%s", filepath.Base(program), strings.Join(args, " "), time.Since(began).Seconds(), errs.String())
	return out.String(), errs.String(), err
}
