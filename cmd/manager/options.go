// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	goflag "flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/flags"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
)

// The providers, by the names that clusterctl has for their kinds.
const (
	bootstrap      = "bootstrap"
	controlPlane   = "control-plane"
	infrastructure = "infrastructure"
)

var known = []string{bootstrap, controlPlane, infrastructure}

// options are the flags. Those that Cluster API's own managers have are called as there.
type options struct {
	providers []string

	namespace, watchFilter string
	concurrency            int
	hostsAtOnce            int
	driftCheckInterval     time.Duration
	hostHeartbeatInterval  time.Duration
	bundle, bundleKey      string
	hostLogs               string
	callHome, callHomeBind string

	leaderElect                              bool
	leaderElectNamespace                     string
	leaseDuration, renewDeadline, retryEvery time.Duration

	qps        float32
	burst      int
	syncPeriod time.Duration

	webhookPort    int
	webhookCertDir string
	hooksPort      int
	hooksClientCA  string
	healthAddress  string
	profiler       string
	serving        flags.ManagerOptions
	logs           *logs.Options
}

// parse reads the command line. The error is pflag.ErrHelp when the flags were asked for, and printed.
func parse(args []string) (*options, error) {
	o := &options{logs: logs.NewOptions()}
	fs := o.flags()
	if err := fs.Set("v", "2"); err != nil { // as Cluster API's managers
		return nil, err
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, o.validate()
}

func (o *options) flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	o.addFlags(fs)
	return fs
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.providers, "providers", known, "providers to run, of: "+strings.Join(known, ", "))

	fs.StringVar(&o.namespace, "namespace", "", "reconcile objects of this namespace alone; empty means all namespaces")
	fs.StringVar(&o.watchFilter, "watch-filter", "", "reconcile objects with this value of the label "+clusterv1.WatchLabel+" alone; empty means all objects")
	fs.IntVar(&o.concurrency, "concurrency", 10, "how many objects of one kind are reconciled at once; no reconcile waits for a host")
	fs.IntVar(&o.hostsAtOnce, "hosts-at-once", 50, "how many workers' hosts are worked on at once; control plane hosts do not count")
	fs.DurationVar(&o.driftCheckInterval, "drift-check-interval", 10*time.Minute, "how often a converged host is compared with its plan")
	fs.DurationVar(&o.hostHeartbeatInterval, "host-heartbeat-interval", 10*time.Minute,
		"how often the bootstrap provider dials KubexmHosts that nobody has, to see whether they can be used; 0 means never")
	fs.StringVar(&o.bundle, "bundle", "", "directory with bundles, or one archive: clusters name what lies in it, and no other file; kubexm bundle create makes them")
	fs.StringVar(&o.bundleKey, "bundle-verify-key", "", "file with public SSH keys, one per line, one of which must have signed every bundle; empty takes bundles without a signature")

	fs.StringVar(&o.hostLogs, "host-logs-dir", os.Getenv(hostLogsVariable),
		"directory where the logs of hosts that failed are kept before these are rebooted or reset; they may hold secrets; empty means that they are not kept")

	fs.StringVar(&o.callHome, "call-home-address", "",
		"HOST:PORT at which hosts reach this manager that open the connection themselves (spec.access.connection: CallHome); empty means that none can")
	fs.StringVar(&o.callHomeBind, "call-home-bind-address", fmt.Sprintf(":%d", callhome.Port), "where their connections are taken, with --call-home-address")

	fs.BoolVar(&o.leaderElect, "leader-elect", false, "have one active manager at a time")
	fs.StringVar(&o.leaderElectNamespace, "leader-elect-namespace", "", "namespace of the lease; empty means the one that the manager runs in")
	fs.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long others wait for a leader that does not renew its lease")
	fs.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew its lease before it gives up")
	fs.DurationVar(&o.retryEvery, "leader-elect-retry-period", 2*time.Second, "how often the lease is tried for")

	fs.Float32Var(&o.qps, "kube-api-qps", 100, "requests per second to the management cluster's API server")
	fs.IntVar(&o.burst, "kube-api-burst", 200, "requests to the management cluster's API server in one burst")
	fs.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute, "how often all objects are reconciled, whether or not they have changed")

	fs.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the webhook server")
	fs.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs", "directory with the webhook server's tls.crt and tls.key")
	fs.IntVar(&o.hooksPort, "runtime-extension-port", 0, "port of the hooks by which Cluster API updates Machines in place, with the webhook server's certificate; 0 serves none")
	fs.StringVar(&o.hooksClientCA, "runtime-extension-client-ca-file", "", "file with the certificate authorities (PEM) one of which has signed the certificate of anyone who asks these hooks, as Cluster API shows it with --runtime-extension-client-cert-file; empty means that anybody who reaches the port may ask")
	fs.StringVar(&o.healthAddress, "health-addr", ":9440", "address of /healthz and /readyz")
	fs.StringVar(&o.profiler, "profiler-address", "", "address of Go's profiler; empty means none")
	flags.AddManagerOptions(fs, &o.serving)
	logsv1.AddFlags(o.logs, fs)
	feature.MutableGates.AddFlag(fs)

	kubeconfig := goflag.NewFlagSet("", goflag.ContinueOnError)
	config.RegisterFlags(kubeconfig)
	fs.AddGoFlagSet(kubeconfig)
}

// validate refuses what cannot work, each with its flag.
func (o *options) validate() error {
	var errs []error
	if len(o.providers) == 0 {
		errs = append(errs, errors.New("--providers: name at least one"))
	}
	for i, name := range o.providers {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("--providers: %q is none of %s", name, strings.Join(known, ", ")))
		}
		if slices.Contains(o.providers[:i], name) {
			errs = append(errs, fmt.Errorf("--providers: %s is named twice", name))
		}
	}
	for flag, value := range map[string]int{"concurrency": o.concurrency, "hosts-at-once": o.hostsAtOnce} {
		if value < 1 {
			errs = append(errs, fmt.Errorf("--%s: %d: want 1 or more", flag, value))
		}
	}
	if o.driftCheckInterval <= 0 {
		errs = append(errs, fmt.Errorf("--drift-check-interval: %s: want more than 0", o.driftCheckInterval))
	}
	if o.hostHeartbeatInterval < 0 {
		errs = append(errs, fmt.Errorf("--host-heartbeat-interval: %s: want more than 0, or 0 for none", o.hostHeartbeatInterval))
	}
	if o.callHome != "" {
		if err := door.CheckManager(o.callHome); err != nil {
			errs = append(errs, fmt.Errorf("--call-home-address: %w", err))
		}
		if !o.has(bootstrap) {
			errs = append(errs, fmt.Errorf("--call-home-address: the provider %s takes these connections: add it to --providers, or leave the address out",
				bootstrap))
		}
	}
	if o.hooksPort < 0 || o.hooksPort > 65535 {
		errs = append(errs, fmt.Errorf("--runtime-extension-port: %d: want 1 to 65535, or 0 for none", o.hooksPort))
	}
	if o.hooksClientCA != "" {
		if _, err := os.Stat(o.hooksClientCA); err != nil {
			errs = append(errs, fmt.Errorf("--runtime-extension-client-ca-file: %w", err))
		}
	}
	if o.hooksPort > 0 && !o.has(bootstrap) {
		errs = append(errs, fmt.Errorf("--runtime-extension-port: the provider %s serves it: add it to --providers, or leave the port out", bootstrap))
	}
	return errors.Join(errs...)
}

// has reports whether a provider is to be run.
func (o *options) has(provider string) bool { return slices.Contains(o.providers, provider) }
