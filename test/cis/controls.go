// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Control is one of the benchmark's.
type Control struct {
	// ID is the benchmark's number, and Title what it asks for, in short.
	ID, Title string
	// Fails are the types of Kubernetes, or of etcd's form, on which it does not pass by default, and Reason is why.
	Fails  []string
	Reason string

	audit func(h *host, s Subject) error
}

const (
	apiServer, manager, scheduler = "kube-apiserver", "kube-controller-manager", "kube-scheduler"

	kubernetes = "/etc/kubernetes/"
	dataDir    = "/var/lib/etcd"

	encryptionConfig = kubernetes + "encryption/config.yaml"
)

// manifest is the file by which a component of the control plane is run.
func manifest(component string, s Subject) string {
	if s.Type == spec.KubernetesKubexm || component == "etcd" && s.Etcd == EtcdUnit {
		return "/etc/systemd/system/" + component + ".service"
	}
	return kubernetes + "manifests/" + component + ".yaml"
}

type audit = func(h *host, s Subject) error

func (h *host) private(name string) error {
	f, there := h.files[name]
	switch {
	case !there:
		return fmt.Errorf("%s is not there", name)
	case f.mode&^0o600 != 0:
		return fmt.Errorf("%s has the mode %04o", name, f.mode)
	}
	return nil
}

func (h *host) ownedBy(name, owner string) error {
	f, there := h.files[name]
	switch {
	case !there:
		return fmt.Errorf("%s is not there", name)
	case f.owner != owner:
		return fmt.Errorf("%s is of %s", name, f.owner)
	}
	return nil
}

func private(name string) audit { return func(h *host, _ Subject) error { return h.private(name) } }
func roots(name string) audit {
	return func(h *host, _ Subject) error { return h.ownedBy(name, "root:root") }
}

func privateManifest(component string) audit {
	return func(h *host, s Subject) error { return h.private(manifest(component, s)) }
}

func rootsManifest(component string) audit {
	return func(h *host, s Subject) error { return h.ownedBy(manifest(component, s), "root:root") }
}

// has: the component's flags are set, to whatever.
func has(component string, names ...string) audit {
	return func(h *host, _ Subject) error {
		for _, name := range names {
			if v, _ := h.flag(component, name); v == "" {
				return fmt.Errorf("%s has no --%s", component, name)
			}
		}
		return nil
	}
}

// is: the component's flag is set to this.
func is(component, name, want string) audit {
	return func(h *host, _ Subject) error {
		if v, set := h.flag(component, name); !set || v != want {
			return fmt.Errorf("%s has --%s=%q", component, name, v)
		}
		return nil
	}
}

// isNot: the component's flag does not have this among its values.
func isNot(component, name, refused string) audit {
	return func(h *host, _ Subject) error {
		if len(h.args[component]) == 0 {
			return fmt.Errorf("%s does not run", component)
		}
		v, _ := h.flag(component, name)
		for one := range strings.SplitSeq(v, ",") {
			if one == refused {
				return fmt.Errorf("%s has --%s=%s", component, name, v)
			}
		}
		return nil
	}
}

// among: the component's flag has this among its values.
func among(component, name, want string) audit {
	return func(h *host, _ Subject) error {
		v, _ := h.flag(component, name)
		for one := range strings.SplitSeq(v, ",") {
			if one == want {
				return nil
			}
		}
		return fmt.Errorf("%s has --%s=%s", component, name, v)
	}
}

func atLeast(component, name string, least int) audit {
	return func(h *host, _ Subject) error {
		v, _ := h.flag(component, name)
		if n, err := strconv.Atoi(v); err != nil || n < least {
			return fmt.Errorf("%s has --%s=%q", component, name, v)
		}
		return nil
	}
}

// setting: the kubelet's is one of these; "" among them means that it may be left out.
func setting(flag, path string, want ...string) audit {
	return func(h *host, _ Subject) error {
		got := h.setting(flag, strings.Split(path, ".")...)
		for _, w := range want {
			if got == w {
				return nil
			}
		}
		return fmt.Errorf("the kubelet's %s is %q", path, got)
	}
}

// encrypts: what is written is encrypted by one that the benchmark takes, with a key that only root can read.
func encrypts(h *host, _ Subject) error {
	switch {
	case len(h.providers) == 0:
		return fmt.Errorf("%s names none", encryptionConfig)
	case !slices.Contains([]string{"aescbc", "kms", "secretbox"}, h.providers[0]):
		return fmt.Errorf("%s begins with %s", encryptionConfig, h.providers[0])
	}
	var errs []error
	for _, name := range []string{encryptionConfig, kubernetes + "encryption/key"} {
		errs = append(errs, h.private(name), h.ownedBy(name, "root:root"))
	}
	return errors.Join(errs...)
}

// ownAuthority: whom etcd admits is not for the cluster's authority to say. A host of etcd's own does not have that.
func ownAuthority(h *host, _ Subject) error {
	for _, name := range []string{"trusted-ca-file", "peer-trusted-ca-file"} {
		file, _ := h.flag("etcd", name)
		sum := h.sums[file]
		if sum == "" || sum == h.sums[kubernetes+"pki/ca.crt"] {
			return fmt.Errorf("etcd has --%s=%s (%q), and the cluster's authority is %q", name, file, sum, h.sums[kubernetes+"pki/ca.crt"])
		}
	}
	return nil
}

// Controls are the benchmark's automated controls of a control plane host, in its order, and those of its manual ones that a program can
// tell.
func Controls() []Control {
	return []Control{
		{ID: "1.1.1", Title: "file of the API server 0600", audit: privateManifest(apiServer)},
		{ID: "1.1.2", Title: "file of the API server root's", audit: rootsManifest(apiServer)},
		{ID: "1.1.3", Title: "file of the controller manager 0600", audit: privateManifest(manager)},
		{ID: "1.1.4", Title: "file of the controller manager root's", audit: rootsManifest(manager)},
		{ID: "1.1.5", Title: "file of the scheduler 0600", audit: privateManifest(scheduler)},
		{ID: "1.1.6", Title: "file of the scheduler root's", audit: rootsManifest(scheduler)},
		{ID: "1.1.7", Title: "file of etcd 0600", audit: privateManifest("etcd")},
		{ID: "1.1.8", Title: "file of etcd root's", audit: rootsManifest("etcd")},
		{ID: "1.1.11", Title: "etcd's data 0700", audit: func(h *host, _ Subject) error {
			if f := h.files[dataDir]; f.mode == 0 || f.mode&^0o700 != 0 {
				return fmt.Errorf("%s has the mode %04o", dataDir, f.mode)
			}
			return nil
		}},
		{
			ID: "1.1.12", Title: "etcd's data of etcd:etcd", Fails: []string{EtcdPod},
			Reason: "etcd in a static pod is root, as kubeadm runs it. It passes where etcd is a unit, which is the default (`etcd.type: kubexm`).",
			audit:  func(h *host, _ Subject) error { return h.ownedBy(dataDir, "etcd:etcd") },
		},
		{ID: "1.1.13", Title: "kubeconfig of administrators 0600", audit: private(kubernetes + "admin.conf")},
		{ID: "1.1.14", Title: "kubeconfig of administrators root's", audit: roots(kubernetes + "admin.conf")},
		{ID: "1.1.15", Title: "kubeconfig of the scheduler 0600", audit: private(kubernetes + "scheduler.conf")},
		{ID: "1.1.16", Title: "kubeconfig of the scheduler root's", audit: roots(kubernetes + "scheduler.conf")},
		{ID: "1.1.17", Title: "kubeconfig of the controller manager 0600", audit: private(kubernetes + "controller-manager.conf")},
		{ID: "1.1.18", Title: "kubeconfig of the controller manager root's", audit: roots(kubernetes + "controller-manager.conf")},
		{ID: "1.1.19", Title: "certificates and keys root's", audit: func(h *host, _ Subject) error {
			all := h.below(kubernetes + "pki")
			if len(all) == 0 {
				return errors.New("there are none")
			}
			var errs []error
			for _, name := range all {
				errs = append(errs, h.ownedBy(name, "root:root"))
			}
			return errors.Join(errs...)
		}},
		{ID: "1.2.2", Title: "API server: no token-auth-file", audit: func(h *host, _ Subject) error {
			if v, set := h.flag(apiServer, "token-auth-file"); set || len(h.args[apiServer]) == 0 {
				return fmt.Errorf("--token-auth-file=%s", v)
			}
			return nil
		}},
		{ID: "1.2.4", Title: "API server: a certificate for kubelets", audit: has(apiServer, "kubelet-client-certificate", "kubelet-client-key")},
		{ID: "1.2.5", Title: "API server: knows kubelets by an authority", audit: has(apiServer, "kubelet-certificate-authority")},
		{ID: "1.2.6", Title: "API server: not AlwaysAllow", audit: isNot(apiServer, "authorization-mode", "AlwaysAllow")},
		{ID: "1.2.7", Title: "API server: authorization Node", audit: among(apiServer, "authorization-mode", "Node")},
		{ID: "1.2.8", Title: "API server: authorization RBAC", audit: among(apiServer, "authorization-mode", "RBAC")},
		{ID: "1.2.10", Title: "API server: no AlwaysAdmit", audit: isNot(apiServer, "enable-admission-plugins", "AlwaysAdmit")},
		{ID: "1.2.12", Title: "API server: ServiceAccount not off", audit: isNot(apiServer, "disable-admission-plugins", "ServiceAccount")},
		{ID: "1.2.13", Title: "API server: NamespaceLifecycle not off", audit: isNot(apiServer, "disable-admission-plugins", "NamespaceLifecycle")},
		{ID: "1.2.14", Title: "API server: NodeRestriction", audit: among(apiServer, "enable-admission-plugins", "NodeRestriction")},
		{ID: "1.2.15", Title: "API server: no profiling", audit: is(apiServer, "profiling", "false")},
		{ID: "1.2.16", Title: "API server: an audit log", audit: has(apiServer, "audit-log-path")},
		{ID: "1.2.17", Title: "API server: audit log kept 30 days", audit: atLeast(apiServer, "audit-log-maxage", 30)},
		{ID: "1.2.18", Title: "API server: 10 files of the audit log", audit: atLeast(apiServer, "audit-log-maxbackup", 10)},
		{ID: "1.2.19", Title: "API server: of 100 MB", audit: atLeast(apiServer, "audit-log-maxsize", 100)},
		{ID: "1.2.21", Title: "API server: service accounts looked up", audit: isNot(apiServer, "service-account-lookup", "false")},
		{ID: "1.2.22", Title: "API server: service-account-key-file", audit: has(apiServer, "service-account-key-file")},
		{ID: "1.2.23", Title: "API server: a certificate for etcd", audit: has(apiServer, "etcd-certfile", "etcd-keyfile")},
		{ID: "1.2.24", Title: "API server: a serving certificate", audit: has(apiServer, "tls-cert-file", "tls-private-key-file")},
		{ID: "1.2.25", Title: "API server: client-ca-file", audit: has(apiServer, "client-ca-file")},
		{ID: "1.2.26", Title: "API server: etcd-cafile", audit: has(apiServer, "etcd-cafile")},
		{ID: "1.2.27", Title: "API server: encryption at rest (manual)", audit: is(apiServer, "encryption-provider-config", encryptionConfig)},
		{ID: "1.2.28", Title: "API server: encrypts by aescbc, kms or secretbox (manual)", audit: encrypts},
		{ID: "1.3.2", Title: "controller manager: no profiling", audit: is(manager, "profiling", "false")},
		{ID: "1.3.3", Title: "controller manager: an account for each controller", audit: is(manager, "use-service-account-credentials", "true")},
		{ID: "1.3.4", Title: "controller manager: service-account-private-key-file", audit: has(manager, "service-account-private-key-file")},
		{ID: "1.3.5", Title: "controller manager: root-ca-file", audit: has(manager, "root-ca-file")},
		{
			ID: "1.3.6", Title: "controller manager: RotateKubeletServerCertificate not off",
			audit: isNot(manager, "feature-gates", "RotateKubeletServerCertificate=false"),
		},
		{ID: "1.3.7", Title: "controller manager: on 127.0.0.1", audit: is(manager, "bind-address", "127.0.0.1")},
		{ID: "1.4.1", Title: "scheduler: no profiling", audit: is(scheduler, "profiling", "false")},
		{ID: "1.4.2", Title: "scheduler: on 127.0.0.1", audit: is(scheduler, "bind-address", "127.0.0.1")},
		{ID: "2.1", Title: "etcd: a serving certificate", audit: has("etcd", "cert-file", "key-file")},
		{ID: "2.2", Title: "etcd: clients have certificates", audit: is("etcd", "client-cert-auth", "true")},
		{ID: "2.3", Title: "etcd: no auto-tls", audit: isNot("etcd", "auto-tls", "true")},
		{ID: "2.4", Title: "etcd: a certificate for peers", audit: has("etcd", "peer-cert-file", "peer-key-file")},
		{ID: "2.5", Title: "etcd: peers have certificates", audit: is("etcd", "peer-client-cert-auth", "true")},
		{ID: "2.6", Title: "etcd: no peer-auto-tls", audit: isNot("etcd", "peer-auto-tls", "true")},
		{ID: "2.7", Title: "etcd: an authority of its own (manual)", audit: ownAuthority},
		{ID: "4.1.1", Title: "unit of the kubelet 0600", audit: private("/etc/systemd/system/kubelet.service")},
		{ID: "4.1.2", Title: "unit of the kubelet root's", audit: roots("/etc/systemd/system/kubelet.service")},
		{ID: "4.1.5", Title: "kubeconfig of the kubelet 0600", audit: private(kubernetes + "kubelet.conf")},
		{ID: "4.1.6", Title: "kubeconfig of the kubelet root's", audit: roots(kubernetes + "kubelet.conf")},
		{ID: "4.1.9", Title: "configuration of the kubelet 0600", audit: private("/var/lib/kubelet/config.yaml")},
		{ID: "4.1.10", Title: "configuration of the kubelet root's", audit: roots("/var/lib/kubelet/config.yaml")},
		{ID: "4.2.1", Title: "kubelet: not anonymous", audit: setting("anonymous-auth", "authentication.anonymous.enabled", "false")},
		{ID: "4.2.2", Title: "kubelet: authorization not AlwaysAllow", audit: setting("authorization-mode", "authorization.mode", "Webhook")},
		{ID: "4.2.3", Title: "kubelet: clientCAFile", audit: setting("client-ca-file", "authentication.x509.clientCAFile", kubernetes+"pki/ca.crt")},
		{ID: "4.2.6", Title: "kubelet: makeIPTablesUtilChains", audit: setting("make-iptables-util-chains", "makeIPTablesUtilChains", "true", "")},
		{
			ID: "4.2.10", Title: "kubelet: rotateCertificates", Fails: []string{string(spec.KubernetesKubexm)},
			Reason: "The kubelet's certificates are made and renewed by kubexm, host by host and before they end " +
				"(`certificates.renewal`), so the kubelet is set not to ask for others.",
			audit: setting("rotate-certificates", "rotateCertificates", "true", ""),
		},
		{ID: "4.3.1", Title: "kube-proxy: metrics on 127.0.0.1", audit: isNot("kube-proxy", "metrics-bind-address", "0.0.0.0:10249")},
	}
}
