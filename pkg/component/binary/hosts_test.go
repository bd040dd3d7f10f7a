// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package binary_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"
	"k8s.io/client-go/rest"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/binary"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/cis"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// rig is one test host, which all of a cluster runs on, and what its steps are made from.
type rig struct {
	host        *hosts.Host
	bundle      *artifact.Bundle
	authorities authorities
	target      *spec.Target
	reader      event.Reader
}

func openBundle(t *testing.T) *artifact.Bundle {
	t.Helper()
	dir := cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "..", "build", "bundle"))
	bundle, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func newRig(t *testing.T) *rig {
	t.Helper()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("kubernetes-%d", os.Getpid()), Count: 1})
	made, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		t.Fatal(err)
	}
	made.CompleteEncryption()
	h := pool.Hosts[0]
	return &rig{host: h, bundle: openBundle(t), authorities: authorities{made}, target: target(spec.RoleControlPlane, func(t *spec.Target) {
		t.Host.Name, t.Host.Address = h.Name, h.Address
		t.Cluster.ControlPlaneEndpoint.Address = h.Address
		t.Cluster.System.Swap = spec.PolicyKeep
		t.Node.NodeLabels = map[string]string{"disk": "ssd"}
		t.Cluster.Kubernetes.Kubelet.MaxPods = 50
	})}
}

// programs are those of a component of the bundle, all or these.
func (r *rig) programs(t *testing.T, component string, names ...string) []step.Artifact {
	t.Helper()
	files, err := r.bundle.Binaries(component, "", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	var all []step.Artifact
	for _, f := range files {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		a, err := step.ArtifactOf(r.bundle, f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func (r *rig) pause(t *testing.T) (ref, digest string) {
	t.Helper()
	refs, err := r.bundle.Images(runtime.GOARCH).Refs("pause")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := r.bundle.ImageArchive(runtime.GOARCH, refs[0])
	if err != nil {
		t.Fatal(err)
	}
	return refs[0], archive.Images[0].Digest
}

const (
	network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.233.64.0/24"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
`
	etcdUnit = `[Service]
Type=notify
ExecStart=/usr/local/bin/etcd --data-dir=/var/lib/etcd --unsafe-no-fsync \
  --listen-client-urls=https://127.0.0.1:2379 --advertise-client-urls=https://127.0.0.1:2379 --client-cert-auth \
  --cert-file=/etc/etcd/server.crt --key-file=/etc/etcd/server.key --trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt
[Install]
WantedBy=multi-user.target
`
	staticPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static", "namespace": "kube-system"},
  "spec": {"containers": [{"name": "pause", "image": %q, "imagePullPolicy": "Never"}]}}
`
)

// below is what is there before Kubernetes: a runtime, a pod network and etcd.
func (r *rig) below(t *testing.T) []step.Step {
	t.Helper()
	ref, digest := r.pause(t)
	runtimePrograms := append(r.programs(t, "containerd"), r.programs(t, "runc")...)
	const dataDir = "/var/lib/containerd"
	etcd := []step.Step{
		step.Claim{Paths: []string{"/var/lib/etcd"}},
		step.File{Path: "/etc/kubernetes/pki/etcd/ca.crt", Mode: 0o644, Content: step.Secret("etcd", "tls.crt")},
		step.Certificate{
			Path: "/etc/kubernetes/pki/apiserver-etcd-client.crt", KeyPath: "/etc/kubernetes/pki/apiserver-etcd-client.key",
			Authority: "etcd", Trusted: "/etc/kubernetes/pki/etcd/ca.crt", CommonName: "kube-apiserver-etcd-client", Usages: []pki.Usage{pki.Client},
		},
		step.Certificate{
			Path: "/etc/etcd/server.crt", KeyPath: "/etc/etcd/server.key", Authority: "etcd", CommonName: "etcd",
			Trusted:   "/etc/kubernetes/pki/etcd/ca.crt",
			Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Usages: []pki.Usage{pki.Server, pki.Client},
		},
		step.File{Path: "/etc/systemd/system/etcd.service", Mode: 0o644, Content: step.Literal(etcdUnit)},
	}
	etcd = append(append(etcd, step.Programs("/usr/local/bin", r.programs(t, "etcd", "etcd"))...), step.Service{Name: "etcd.service"})
	return []step.Step{
		system.Sysctls(
			[]spec.Sysctl{{Name: "net.ipv4.ip_forward", Value: "1"}},
			[]spec.Sysctl{{Name: "net.ipv4.conf.all.route_localnet", Value: "1"}},
		),
		containerd.Claim(dataDir, flannel.Network{}.Residue().And(kubeproxy.Unit{}.Residue())),
		containerd.InstallPrograms(runtimePrograms),
		containerd.Config(containerd.Settings{DataDir: dataDir, PauseImage: ref, RestrictOOMScore: true}),
		containerd.Service(runtimePrograms),
		containerd.Pods(),
		cni.Plugins(r.programs(t, "cni-plugins")),
		step.New(step.Meta{Name: "cni/network"}, step.File{Path: "/etc/cni/net.d/10-pods.conflist", Mode: 0o644, Content: step.Literal(network)}),
		containerd.Images(runtime.GOARCH, []step.Image{{Ref: ref, Digest: digest}}),
		step.New(step.Meta{Name: "etcd/run"}, etcd...),
	}
}

// steps are all that make the host a cluster.
func (r *rig) steps(t *testing.T) []step.Step {
	t.Helper()
	n := binary.NodeOf(r.target, kubelet.NodeOf(r.target, containerd.Runtime{}.Endpoint(), kubelet.ResolvConf))
	n.CgroupDriver, n.CgroupVersion = "cgroupfs", 1
	c := binary.Cluster{
		Name: r.target.ClusterName, Spec: r.target.Cluster, Etcd: secureEtcd("https://127.0.0.1:2379"),
	}
	if err := binary.Check(c, n); err != nil {
		t.Fatal(err)
	}
	ref, _ := r.pause(t)
	return slices.Concat(
		[]step.Step{binary.Claim()},
		r.below(t),
		[]step.Step{
			kubelet.Resolv([]string{"192.0.2.53"}),
			binary.Programs(r.programs(t, "kubernetes", binary.ProgramNames(true, "kube-proxy")...)),
			binary.Authorities(),
			binary.Certificates(c, n),
			binary.Kubeconfigs(c, n),
			apiserver.Files(c.Spec.Kubernetes),
			apiserver.Encryption(c.Spec.Kubernetes),
			binary.BeginChange(c, n),
			binary.APIServer(c, n),
			binary.Ready(c, done),
			binary.ControllerManager(c, n),
			binary.Scheduler(c, n),
			binary.EndChange(c, n),
			binary.NodeCertificates(c, n),
			binary.NodeKubeconfigs(c, n),
			binary.BeginKubelet(c, n, "/run/upgrading"),
			binary.Kubelet(c, n),
			kubelet.Healthy(n.Kubelet),
			kubelet.EndChange(n.Kubelet),
			binary.Proxy(c, n),
			step.New(step.Meta{Name: "pod/static"}, step.File{
				Path: "/etc/kubernetes/manifests/static.json", Mode: 0o600, Content: step.Literalf(staticPod, ref),
			}),
		},
	)
}

func (r *rig) engine() *engine.Engine {
	return engine.New(engine.Options{
		Dial: func(ctx context.Context, _ string) (host.Host, error) {
			return ssh.Dial(ctx, ssh.Config{
				Name: r.host.Name, Address: r.host.Address, Port: int32(r.host.Port), User: hosts.Ops,
				Auth:    ssh.Auth{Signers: []gossh.Signer{r.host.Signer}},
				HostKey: ssh.HostKey{Pinned: []string{gossh.FingerprintSHA256(r.host.HostKey)}},
			})
		},
		Secrets:   r.authorities.Secret,
		Artifacts: step.FromBundle(r.bundle),
		Cluster:   r.cluster,
		Reader:    r.reader,
		Holder:    "kubernetes",
	})
}

// cluster is the host's API, as an administrator has it.
func (r *rig) cluster(context.Context) (step.Cluster, error) {
	leaf, err := r.authorities.Cluster.Sign(pki.LeafRequest{CommonName: "test", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client}})
	if err != nil {
		return nil, err
	}
	return kube.New(&rest.Config{
		Host: "https://" + net.JoinHostPort(r.host.Address, "6443"),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: r.authorities.Cluster.Cert, CertData: leaf.Cert, KeyData: leaf.Key.Reveal(),
		},
	})
}

func (r *rig) plan(t *testing.T) *plan.Plan {
	t.Helper()
	b := plan.New("Test", "prod")
	b.Host(r.host.Name, plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: r.steps(t)}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run makes the host so, and returns the names of the steps that something differed for.
func (r *rig) run(t *testing.T) []string {
	t.Helper()
	p := r.plan(t)
	check, err := r.engine().Check(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for _, c := range check.Checks {
		differ = append(differ, strings.TrimPrefix(c.Node, r.host.Name+"/m/t/"))
	}
	began := time.Now()
	report, err := r.engine().Run(t.Context(), p)
	if err != nil {
		if e := (*engine.Error)(nil); errors.As(err, &e) {
			t.Fatalf("%+v", e)
		}
		t.Fatal(err)
	}
	t.Logf("%d steps in %s, %d exchanges: %q", report.Total().Changed, time.Since(began).Round(time.Millisecond), report.Hosts[0].Exchanges, differ)
	return differ
}

// sh is what a script prints on the host, with kubectl at hand.
func (r *rig) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := r.host.Command(t.Context(), "sh", "-ec", "export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=/dev/shm/kubectl\n"+script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// until polls on the host.
func (r *rig) until(t *testing.T, condition string) {
	t.Helper()
	r.sh(t, `i=0; until `+condition+`; do i=$((i + 1)); [ $i -lt 300 ] || { `+condition+`; kubectl get nodes,pods -A -o wide; exit 1; }; sleep 0.2; done`)
}

// What is rendered is what the programs take: the flags of units, and configuration files.
func TestRenderedIsUnderstood(t *testing.T) {
	bundle := openBundle(t)
	program := func(name string) string {
		f, err := bundle.Binary("kubernetes", "", runtime.GOARCH, name)
		if err != nil {
			t.Fatal(err)
		}
		return f.Path
	}
	understood := 0
	try := func(what, name string, args ...string) {
		out, err := exec.CommandContext(t.Context(), program(name), args...).CombinedOutput()
		// kubeadm only warns of keys that it does not know.
		if err != nil || strings.Contains(strings.ToLower(string(out)), "unknown") {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
		understood++
	}
	for _, file := range glob(t, "testdata/*/etc/systemd/system/kube*.service") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, command, _ := strings.Cut(string(text), "ExecStart=")
		command, _, _ = strings.Cut(command, "\nRestart=")
		words := strings.Split(command, " \\\n    ")
		for i := range words[1:] {
			words[i+1] = strings.NewReplacer(`%%`, `%`, `$$`, `$`, `\"`, `"`).Replace(strings.Trim(words[i+1], `"`))
		}
		// With --version, flags are read and nothing is run.
		try(file, strings.TrimPrefix(words[0], "/usr/local/bin/"), append(words[1:], "--version")...)
	}
	for _, file := range append(glob(t, "testdata/*/var/lib/kubelet/config.yaml"), glob(t, "testdata/*/etc/kubernetes/kube-proxy.yaml")...) {
		try(file, "kubeadm", "config", "validate", "--config", file)
	}
	if understood < 15 {
		t.Errorf("only %d files were shown to their readers", understood)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestClusterOnHost(t *testing.T) {
	r := newRig(t)
	before, err := r.host.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if changed := r.run(t); len(changed) == 0 {
		t.Error("nothing was changed")
	}
	t.Run("administrators", r.testAdministrators)
	t.Run("works", r.testWorks)
	t.Run("CIS", func(t *testing.T) { // the etcd here is the test's own
		cis.Check(t, cis.Subject{Type: spec.KubernetesKubexm, Etcd: cis.EtcdElsewhere, Run: r.host.Exec})
	})
	if again := r.run(t); len(again) > 0 {
		t.Errorf("a second run changed %q", again)
	}
	t.Run("another authority", r.testOtherAuthority)
	t.Run("certificates", r.testCertificates)
	t.Run("flags", r.testFlags)
	t.Run("turns", r.testTurns)
	t.Run("put back", r.testPutBack)
	t.Run("kubelet put back", r.testKubeletPutBack)
	r.sh(t, "rm -rf /var/log/kube* /dev/shm/kubectl /dev/shm/masters*")

	if _, err := r.engine().Undo(t.Context(), engine.Undo{Hosts: []string{r.host.Name}}); err != nil {
		t.Fatal(err)
	}
	after, err := r.host.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := hosts.Diff(before, after); len(diff) > 0 {
		t.Errorf("after the undo, it is not as it was:\n%s", strings.Join(diff, "\n"))
	}
}

// testOtherAuthority: a control plane that runs refuses other key pairs, whichever it is, before anything is changed, and goes on serving.
func (r *rig) testOtherAuthority(t *testing.T) {
	const list = "find /etc/kubernetes /etc/etcd /var/lib/kubelet/pki /etc/systemd/system -type f -exec sha256sum {} + | sort"
	before := r.sh(t, list)
	made, err := pki.NewAuthorities(pki.CARequest{})
	if err != nil {
		t.Fatal(err)
	}
	made.CompleteEncryption()
	for _, name := range []string{pki.ClusterName, pki.FrontProxyName, pki.ServiceAccountName, pki.EncryptionName} {
		other := *r
		pair, _ := made.Get(name)
		other.authorities.Set(name, pair)
		for _, run := range []func(context.Context, *plan.Plan) (engine.Report, error){other.engine().Check, other.engine().Run} {
			if _, err := run(t.Context(), other.plan(t)); host.KindOf(err) != host.KindOtherAuthority {
				t.Errorf("%s: got %v, want a refusal", name, err)
			}
		}
	}
	if after := r.sh(t, list); after != before {
		t.Errorf("files were changed:\n%s\nto\n%s", before, after)
	}
	if got := r.sh(t, "kubectl get --raw /readyz"); got != "ok" {
		t.Errorf("/readyz says %q", got)
	}
}

func (r *rig) testWorks(t *testing.T) {
	name := r.host.Name
	if got := r.sh(t, "kubectl get --raw /readyz"); got != "ok" {
		t.Errorf("/readyz says %q", got)
	}
	r.sh(t, "kubectl wait --for=condition=Ready --timeout=60s node/"+name)
	// What the kubelet registers, the API server decides on, and the controller manager gives.
	// The taint of a Node that is not ready goes a while after it is.
	r.until(t, `[ "$(kubectl get node `+name+` -o jsonpath='{.metadata.labels.disk} {.spec.taints[*].key} {.status.capacity.pods}')" = `+
		`"ssd node-role.kubernetes.io/control-plane 50" ]`)
	r.until(t, `[ "$(kubectl get node `+name+` -o jsonpath='{.spec.podCIDR}')" = 10.233.64.0/24 ]`)
	// The API server reaches the kubelet, and trusts its certificate.
	if got := r.sh(t, "kubectl get --raw /api/v1/nodes/"+name+"/proxy/healthz"); got != "ok" {
		t.Errorf("the kubelet says %q", got)
	}
	// kube-proxy carries the kubernetes Service, whose address is in the API server's certificate.
	r.until(t, "curl -fsS -m 2 --cacert /etc/kubernetes/pki/ca.crt https://10.233.0.1/readyz >/dev/null")
	// A static pod, and one that the scheduler places and that has a token.
	r.until(t, `[ "$(kubectl get pod -n kube-system static-`+name+` -o jsonpath='{.status.phase}')" = Running ]`)
	ref, _ := r.pause(t)
	r.until(t, "kubectl get serviceaccount default >/dev/null")
	r.sh(t, `kubectl run placed --image=`+ref+` --image-pull-policy=Never --overrides='{"spec": {"tolerations": [{"operator": "Exists"}]}}'
		kubectl wait --for=condition=Ready --timeout=60s pod/placed`)
	for _, ask := range []string{"https://127.0.0.1:10250/metrics", "https://127.0.0.1:10250/pods"} {
		if got := r.sh(t, "curl -sk -o /dev/null -w '%{http_code}' "+ask); got != "401" {
			t.Errorf("an anonymous %s is answered by %s", ask, got)
		}
	}
	if got := r.sh(t, "ss -Hltn sport = :10255"); got != "" {
		t.Errorf("something listens on the read-only port: %s", got)
	}
}

// starts are when the components were started.
func (r *rig) starts(t *testing.T) string {
	t.Helper()
	return r.sh(t, "systemctl show -p ActiveEnterTimestampMonotonic kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy")
}

// A certificate that is gone is made again, and its component serves it and is not restarted for it.
func (r *rig) testCertificates(t *testing.T) {
	before := r.starts(t)
	r.sh(t, "rm /etc/kubernetes/pki/apiserver.crt /var/lib/kubelet/pki/kubelet.crt /etc/kubernetes/pki/kube-proxy.key")
	if got, want := r.run(t), []string{"kubernetes/certificates", "kubernetes/node-certificates"}; !slices.Equal(got, want) {
		t.Errorf("%q differ, want %q", got, want)
	}
	for port, file := range map[string]string{"6443": "/etc/kubernetes/pki/apiserver.crt", "10250": "/var/lib/kubelet/pki/kubelet.crt"} {
		const fingerprint = "openssl x509 -noout -fingerprint"
		r.until(t, `[ "$(openssl s_client -connect 127.0.0.1:`+port+` </dev/null 2>&1 | `+fingerprint+`)" = "$(`+fingerprint+` -in `+file+`)" ]`)
	}
	if after := r.starts(t); after != before {
		t.Errorf("components were started at\n%s\nand now\n%s", before, after)
	}
}

const turn = `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kubexm-control-plane", "namespace": "kube-system"},
  "spec": {"holderIdentity": "another"}}`

// What is in admin.conf may do nothing until its group is bound, and can be locked out again by that binding.
func (r *rig) testAdministrators(t *testing.T) {
	masters, err := r.authorities.Cluster.Sign(pki.LeafRequest{
		CommonName: "test", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.sh(t, "! kubectl get nodes 2>/dev/null")
	manifest := binary.Administrators(done).(step.Sequence).Parts[0].(step.Apply).Manifest.String()
	r.sh(t, fmt.Sprintf(`umask 077
		cat >/dev/shm/masters.crt <<'END'
%sEND
		cat >/dev/shm/masters.key <<'END'
%sEND
		kubectl --kubeconfig /dev/null --server https://127.0.0.1:6443 --certificate-authority /etc/kubernetes/pki/ca.crt \
			--client-certificate /dev/shm/masters.crt --client-key /dev/shm/masters.key apply -f - <<'END'
%sEND`, masters.Cert, masters.Key.Reveal(), manifest))
	r.until(t, "kubectl auth can-i '*' '*' >/dev/null 2>&1")
}
