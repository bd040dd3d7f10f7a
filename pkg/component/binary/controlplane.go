// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
)

const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"

	// controlPlaneOOMScore is what the kubelet gives to static pods of the control plane.
	controlPlaneOOMScore = -997
	tls12                = "VersionTLS12"
	// patience is how long an API server may take until it is ready: it waits for etcd, and the first one fills it.
	patience = 3 * time.Minute
	// unchanging is how long the components must have been up with what they were given, before there is no way back.
	unchanging = step.Duration(3 * time.Second)
)

//go:embed ready.sh
var ready string

// APIServer runs kube-apiserver. It answers when Ready is done.
func APIServer(c Cluster, n Node) step.Step {
	watches := []string{caFile, saPublicFile, saPrivateFile}
	if c.Etcd.CA != "" {
		watches = append(watches, c.Etcd.CA)
	}
	if c.Spec.Kubernetes.EncryptionAtRest.IsOn() {
		watches = append(watches, apiserver.EncryptionConfig)
	}
	return step.New(step.Meta{
		Name: "kubernetes/apiserver", Description: "run kube-apiserver", Disrupts: "restarts kube-apiserver",
	}, service(apiServerUnit(c, n), watches...)...)
}

// Withdraw ends the host's API server, which lets those go first that wait for answers. A reset does not begin it again.
func Withdraw() step.Step {
	return step.New(step.Meta{Name: "kubernetes/withdraw", Description: "end the API server, before its etcd goes"}, step.Command{
		Title: "stop kube-apiserver", Argv: []string{"systemctl", "stop", apiServer + ".service"}, Timeout: step.Duration(2 * time.Minute),
		Done: step.Done{Check: []string{
			"/bin/sh", "-c", `case $(systemctl is-active "$1") in inactive | failed | unknown) ;; *) echo "$1 runs"; exit 1 ;; esac`, "sh", apiServer + ".service",
		}},
	})
}

// controlPlaneUnits are the units of a control plane host, those first that others need.
func controlPlaneUnits(c Cluster, n Node) []unit {
	return []unit{apiServerUnit(c, n), controllerManagerUnit(c), schedulerUnit(c)}
}

func apiServerUnit(c Cluster, n Node) unit {
	return unit{
		about: "kube-apiserver, the Kubernetes API", program: apiServer, after: "etcd.service", waited: true, oomScore: controlPlaneOOMScore,
		args: apiServerArgs(c, n),
	}
}

// changeDir exists while the components of a control plane host that runs are brought to other settings.
const changeDir = "/etc/kubernetes/kubexm-change"

// BeginChange comes before the components of the control plane: where one has a unit that is to change, the change is undone as a whole
// when one of them does not come up, and one host of the cluster at a time makes it, so that there is always an API server that
// answers. On a host that has no units yet it does nothing.
func BeginChange(c Cluster, n Node) step.Step {
	var units []step.Content
	for _, u := range controlPlaneUnits(c, n) {
		units = append(units, contentOf(u.file(), u.String()))
	}
	return step.New(step.Meta{
		Name: "kubernetes/begin-change", Description: "open a savepoint before the running control plane is changed",
		Disrupts: "restarts the control plane's components",
	}, step.Savepoint{
		About: "the change of its control plane", Replaces: units, Dir: changeDir, Turn: component.ControlPlaneTurn,
		Settled: step.Done{Check: askReady(c)},
	})
}

// contentOf is a file with this content.
func contentOf(file, content string) step.Content {
	sum := sha256.Sum256([]byte(content))
	return step.Content{Path: file, Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// EndChange comes after them: the change stays when all of them have run for a while.
func EndChange(c Cluster, n Node) step.Step {
	var steady []string
	for _, u := range controlPlaneUnits(c, n) {
		steady = append(steady, u.name())
	}
	return endChange(steady)
}

func endChange(steady []string) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/end-change", Description: "commit the change when the control plane's components run",
	}, step.Steady{Units: steady, For: unchanging, While: changeDir}, step.Commit{Dir: changeDir})
}

// Ready waits until this host's API server says that it is ready; done is made then. It is a step of its own: what a step looked
// at before its act does not tell what a restart in that act leads to.
func Ready(c Cluster, done graph.Output[string]) step.Step { return isReady(c, done.Name) }

func isReady(c Cluster, makes ...string) step.Step {
	ask := append([]string{"/bin/sh", "-uc", ready, "kubernetes", changeDir, strconv.Itoa(step.NotAnyMore)}, askReady(c)...)
	return step.New(step.Meta{
		Name: "kubernetes/ready", Description: "wait until the API server is ready", Timeout: step.Duration(patience), Makes: makes,
	}, step.WaitFor{Title: "kube-apiserver is ready", Check: ask})
}

// askReady is the command that asks this host's API server whether it is ready.
func askReady(c Cluster) []string {
	return []string{
		bin + "/kubectl", "--kubeconfig", adminConf, "--server", itself(c), "--request-timeout", "5s", "get", "--raw", "/readyz",
	}
}

// itself is the URL of this host's API server: through the endpoint, another might answer.
func itself(c Cluster) string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(c.Spec.ControlPlaneEndpoint.Port)))
}

func apiServerArgs(c Cluster, n Node) []spec.Arg {
	k := c.Spec.Kubernetes
	ours := []spec.Arg{
		{Name: "advertise-address", Value: n.Address},
		{Name: "allow-privileged", Value: "true"},
		{Name: "client-ca-file", Value: caFile},
		{Name: "enable-admission-plugins", Value: "NodeRestriction"},
		{Name: "enable-bootstrap-token-auth", Value: "true"},
		{Name: "etcd-servers", Value: strings.Join(c.Etcd.Endpoints, ",")},
		{Name: "kubelet-certificate-authority", Value: caFile},
		{Name: "kubelet-client-certificate", Value: apiServerKubeletCert + ".crt"},
		{Name: "kubelet-client-key", Value: apiServerKubeletCert + ".key"},
		{Name: "kubelet-preferred-address-types", Value: "InternalIP,ExternalIP,Hostname"},
		{Name: "profiling", Value: "false"},
		{Name: "proxy-client-cert-file", Value: frontProxyCert + ".crt"},
		{Name: "proxy-client-key-file", Value: frontProxyCert + ".key"},
		{Name: "requestheader-allowed-names", Value: "front-proxy-client"},
		{Name: "requestheader-client-ca-file", Value: frontProxyCAFile},
		{Name: "requestheader-extra-headers-prefix", Value: "X-Remote-Extra-"},
		{Name: "requestheader-group-headers", Value: "X-Remote-Group"},
		{Name: "requestheader-username-headers", Value: "X-Remote-User"},
		{Name: "secure-port", Value: strconv.Itoa(int(c.Spec.ControlPlaneEndpoint.Port))},
		{Name: "service-account-issuer", Value: "https://kubernetes.default.svc." + c.Spec.DNS.ClusterDomain},
		{Name: "service-account-key-file", Value: saPublicFile},
		{Name: "service-account-lookup", Value: "true"},
		{Name: "service-account-signing-key-file", Value: saPrivateFile},
		{Name: "service-cluster-ip-range", Value: strings.Join(c.Spec.Network.ServiceCIDRs, ",")},
		// When it stops, it tells new requests to come again, and ends watches in 2 s, not in 60.
		{Name: "shutdown-send-retry-after", Value: "true"},
		{Name: "tls-cert-file", Value: apiServerCert + ".crt"},
		{Name: "tls-min-version", Value: tls12},
		{Name: "tls-private-key-file", Value: apiServerCert + ".key"},
	}
	// It takes the one or the other.
	if !slices.ContainsFunc(k.APIServer.ExtraArgs, func(a spec.Arg) bool { return a.Name == "authorization-config" }) {
		ours = append(ours, spec.Arg{Name: "authorization-mode", Value: "Node,RBAC"})
	}
	ours = append(ours, apiserver.Args(k)...)
	if c.Etcd.CA != "" {
		ours = append(ours,
			spec.Arg{Name: "etcd-cafile", Value: c.Etcd.CA},
			spec.Arg{Name: "etcd-certfile", Value: c.Etcd.Certificate},
			spec.Arg{Name: "etcd-keyfile", Value: c.Etcd.Key})
	}
	return args(k.APIServer.ExtraArgs, append(ours, component.GateArgs(k.FeatureGates)...))
}

// ControllerManager runs kube-controller-manager.
func ControllerManager(c Cluster, _ Node) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/controller-manager", Description: "run kube-controller-manager", Disrupts: "restarts kube-controller-manager", Retry: again,
	}, service(controllerManagerUnit(c), controllerManagerConf, caFile, saPrivateFile)...)
}

func controllerManagerUnit(c Cluster) unit {
	k := c.Spec.Kubernetes
	ours := []spec.Arg{
		{Name: "allocate-node-cidrs", Value: "true"},
		{Name: "authentication-kubeconfig", Value: controllerManagerConf},
		{Name: "authorization-kubeconfig", Value: controllerManagerConf},
		{Name: "bind-address", Value: "127.0.0.1"},
		{Name: "client-ca-file", Value: caFile},
		{Name: "cluster-cidr", Value: strings.Join(c.Spec.Network.PodCIDRs, ",")},
		{Name: "cluster-name", Value: c.Name},
		{Name: "cluster-signing-cert-file", Value: caFile},
		{Name: "cluster-signing-key-file", Value: caKeyFile},
		{Name: "controllers", Value: "*,bootstrapsigner,tokencleaner"},
		{Name: "kubeconfig", Value: controllerManagerConf},
		{Name: "leader-elect", Value: "true"},
		{Name: "profiling", Value: "false"},
		{Name: "requestheader-client-ca-file", Value: frontProxyCAFile},
		{Name: "root-ca-file", Value: caFile},
		{Name: "service-account-private-key-file", Value: saPrivateFile},
		{Name: "service-cluster-ip-range", Value: strings.Join(c.Spec.Network.ServiceCIDRs, ",")},
		{Name: "tls-min-version", Value: tls12},
		{Name: "use-service-account-credentials", Value: "true"},
	}
	ours = append(ours, c.Spec.NodeMaskArgs()...)
	return unit{
		about: "kube-controller-manager, the Kubernetes controllers", program: controllerManager, after: apiServer + ".service",
		oomScore: controlPlaneOOMScore, args: args(k.ControllerManager.ExtraArgs, append(ours, component.GateArgs(k.FeatureGates)...)),
	}
}

// Scheduler runs kube-scheduler. It gets flags and not a configuration file: beside such a file it would silently ignore
// several flags that users may have set (kube-api-qps). Those who need scheduling profiles set the flag config.
func Scheduler(c Cluster, _ Node) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/scheduler", Description: "run kube-scheduler", Disrupts: "restarts kube-scheduler", Retry: again,
	}, service(schedulerUnit(c), schedulerConf, caFile)...)
}

func schedulerUnit(c Cluster) unit {
	k := c.Spec.Kubernetes
	ours := []spec.Arg{
		{Name: "authentication-kubeconfig", Value: schedulerConf},
		{Name: "authorization-kubeconfig", Value: schedulerConf},
		{Name: "bind-address", Value: "127.0.0.1"},
		{Name: "kubeconfig", Value: schedulerConf},
		{Name: "leader-elect", Value: "true"},
		{Name: "profiling", Value: "false"},
		{Name: "tls-min-version", Value: tls12},
	}
	return unit{
		about: "kube-scheduler, the Kubernetes scheduler", program: scheduler, after: apiServer + ".service",
		oomScore: controlPlaneOOMScore, args: args(k.Scheduler.ExtraArgs, append(ours, component.GateArgs(k.FeatureGates)...)),
	}
}
