// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeadm holds the steps that make a host a Node by kubeadm. What kubeadm would pull, generate or check for itself
// is there before it runs: images, certificate authorities, and the preflight checks of this project.
package kubeadm

import (
	_ "embed"
	"path"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	bin       = "/usr/local/bin/kubeadm"
	dir       = "/etc/kubernetes"
	pki       = dir + "/pki"
	nodeConf  = dir + "/kubelet.conf"
	initFile  = dir + "/kubeadm-init.yaml"
	joinFile  = dir + "/kubeadm-join.yaml"
	discovery = dir + "/discovery.conf"
	patches   = dir + "/patches"

	// bootstrapConf holds the token while the kubelet has no certificate.
	bootstrapConf = dir + "/bootstrap-kubelet.conf"
)

//go:embed join.sh
var joinControlPlane string

// Claim declares what kubeadm and the static pods will write, so that a reset removes it. etcdDir is "" where no etcd will run.
func Claim(etcdDir string) step.Step {
	paths := []string{dir, "/run/kubernetes", "/usr/libexec/kubernetes"}
	var parts []step.Step
	if etcdDir != "" {
		// Made here, so that parents that are made with it go with it.
		parts = append(parts, step.Directory{Path: etcdDir, Mode: 0o700})
		paths = append(paths, etcdDir)
	}
	return step.New(step.Meta{Name: "kubeadm/claim", Description: "record what kubeadm will write"},
		append(parts, step.Claim{Paths: paths})...)
}

// Authorities installs the cluster's certificate authorities and service account keys: that of etcd too where kubeadm runs
// it.
func Authorities(ownEtcd bool) step.Step {
	parts := []step.Step{step.Directory{Path: pki, Mode: 0o755}}
	pairs := []struct{ cert, key, secret string }{
		{"ca.crt", "ca.key", "ca"},
		{"front-proxy-ca.crt", "front-proxy-ca.key", "proxy"},
		{"sa.pub", "sa.key", "sa"},
	}
	if ownEtcd {
		parts = append(parts, step.Directory{Path: pki + "/etcd", Mode: 0o755})
		pairs = append(pairs, struct{ cert, key, secret string }{"etcd/ca.crt", "etcd/ca.key", "etcd"})
	}
	for _, a := range pairs {
		parts = append(parts, step.Authority(a.secret, path.Join(pki, a.cert), path.Join(pki, a.key))...)
	}
	return step.New(step.Meta{Name: "kubeadm/authorities", Description: "install the certificate authorities"}, parts...)
}

// patch is what kubeadm lays over the kubelet's configuration on this host.
func patch(n kubelet.Node) step.Step {
	return step.File{Path: patches + "/kubeletconfiguration.yaml", Mode: 0o644, Content: step.Literal(kubeletPatch(n))}
}

// through holds when kubeadm has made the host a part of the control plane, by init or by join: a run that ended so is not
// repeated, whatever the configuration says by then. That admin.conf is taken away later is nobody's concern here.
var through = step.Done{Paths: []string{nodeConf}, Journaled: true}

// controlPlaneName is the name of Init and JoinControlPlane alike: once it is through, nobody needs to know which it was.
const controlPlaneName = "kubeadm/control-plane"

// Init makes the host the first of the control plane, without add-ons; done is made then.
//
// It may be cut and run again: kubeadm's phases take up what is there. Once it is through it is not run again: what kubeadm
// has configured is changed in a cluster that runs by other means, host by host (StaticPods, KubeletConfig).
func Init(c Cluster, n kubelet.Node, done graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: controlPlaneName, Description: "start the control plane", Timeout: step.Duration(6 * time.Minute),
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)}, Makes: []string{done.Name},
	},
		patch(n),
		step.File{Path: initFile, Mode: 0o600, Content: step.Literal(initConfig(c, n))},
		step.Command{
			Title: "kubeadm init",
			// What it prints stands in errors, so it must not print tokens.
			Argv: []string{bin, "init", "--config", initFile, "--skip-token-print", "--skip-phases", "preflight,addon,show-join-command"},
		},
		madePods(c, n), made(kubeletFile, kubeletDocuments(c, n)),
	).Until(through)
}

// JoinControlPlane makes the host one more of the control plane; done is made then. After are outputs that must be there
// first. It may be cut and run again, and is not run again once it is through; see Init.
func JoinControlPlane(c Cluster, n kubelet.Node, token, done graph.Output[string], after ...string) step.Step {
	config := joinConfig(n, object{"localAPIEndpoint": localEndpoint(c, n)})
	return step.New(step.Meta{
		Name: controlPlaneName, Description: "join the control plane", Timeout: step.Duration(6 * time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(5 * time.Second)}, Takes: after, Makes: []string{done.Name},
	},
		patch(n),
		step.File{Path: discovery, Mode: 0o600, Content: step.Literal(discoveryConfig(c))},
		step.File{Path: joinFile, Mode: 0o600, Content: step.Join(
			step.Literal(config+"  tlsBootstrapToken: "), step.FromOutput(token), step.Literal("\n"),
		)},
		step.Command{Title: "kubeadm join", Argv: []string{"/bin/sh", "-c", joinControlPlane, "sh", joinFile}},
		step.Absent{Path: bootstrapConf},
		madePods(c, n), made(kubeletFile, kubeletDocuments(c, n)),
	).Until(through)
}

// Join makes the host a worker; done is made then. It may be cut and run again, and is not run again once it is through; see
// Init.
func Join(c Cluster, n kubelet.Node, token, done graph.Output[string]) step.Step {
	bootstrapped := step.Done{Paths: []string{nodeConf, "/var/lib/kubelet/pki/kubelet-client-current.pem"}}
	through := bootstrapped
	through.Journaled = true
	parts := append(step.Authority("ca", pki+"/ca.crt", ""),
		patch(n),
		step.File{Path: discovery, Mode: 0o600, Content: step.Literal(discoveryConfig(c))},
		step.File{Path: joinFile, Mode: 0o600, Content: step.Join(
			step.Literal(joinConfig(n, nil)+"  tlsBootstrapToken: "), step.FromOutput(token), step.Literal("\n"),
		)},
		// kubeadm refuses to join a host whose Node is Ready. Where it was cut after the kubelet got its certificate, all that
		// was left for it to do is to take away the token.
		step.Command{
			Title: "kubeadm join",
			Argv:  []string{bin, "join", "--config", joinFile, "--skip-phases", "preflight"},
			Done:  bootstrapped,
		},
		step.Absent{Path: bootstrapConf},
		made(kubeletFile, kubeletDocuments(c, n)),
	)
	return step.New(step.Meta{
		Name: "kubeadm/join", Description: "join the cluster", Timeout: step.Duration(6 * time.Minute),
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)}, Makes: []string{done.Name},
	}, parts...).Until(through)
}
