// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package kubernetes_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubernetes"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/cis"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// rig is one test host, which all of a cluster runs on, and what its steps are made from.
type rig struct {
	host        *hosts.Host
	bundle      *artifact.Bundle
	authorities authorities
	target      *spec.Target
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
	pool, err := hosts.Start(t.Context(), hosts.Options{Name: fmt.Sprintf("kubernetes-%d", os.Getpid()), Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
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
		containerd.Claim(dataDir, flannel.Network{}.Residue()),
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
	n := kubernetes.NodeOf(r.target, containerd.Runtime{}.Endpoint(), kubelet.ResolvConf)
	n.CgroupDriver, n.CgroupVersion = "cgroupfs", 1
	c := kubernetes.Cluster{
		Name: r.target.ClusterName, Spec: r.target.Cluster, EtcdEndpoints: []string{"https://127.0.0.1:2379"}, EtcdSecure: true,
	}
	if err := kubernetes.Check(c, n); err != nil {
		t.Fatal(err)
	}
	ref, _ := r.pause(t)
	return slices.Concat(
		[]step.Step{kubernetes.Claim()},
		r.below(t),
		[]step.Step{
			kubelet.Resolv([]string{"192.0.2.53"}),
			kubernetes.Programs(r.programs(t, "kubernetes", kubernetes.ProgramNames(true)...)),
			kubernetes.Authorities(),
			kubernetes.Certificates(c, n),
			kubernetes.Kubeconfigs(c, n),
			apiserver.Files(c.Spec.Kubernetes),
			apiserver.Encryption(c.Spec.Kubernetes),
			kubernetes.Follow(c, n, "/run/upgrading"),
			kubernetes.APIServer(c, n),
			kubernetes.Ready(c, done),
			kubernetes.ControllerManager(c, n),
			kubernetes.Scheduler(c, n),
			kubernetes.NodeCertificates(c, n),
			kubernetes.NodeKubeconfigs(c, n),
			kubernetes.FollowKubelet(c, n, "/run/upgrading"),
			kubernetes.Kubelet(c, n),
			kubelet.Healthy(n.Kubelet),
			kubernetes.Proxy(c, n),
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
		Holder:    "kubernetes",
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
	got := r.sh(t, `kubectl get node `+name+` -o jsonpath='{.metadata.labels.disk} {.spec.taints[*].key} {.status.capacity.pods}'`)
	if want := "ssd node-role.kubernetes.io/control-plane 50"; got != want {
		t.Errorf("the Node has %q, want %q", got, want)
	}
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

// A flag restarts its component and no other, and the run ends when the API server is ready again.
func (r *rig) testFlags(t *testing.T) {
	const odd = `/var/log/kube "100%" $HOME\n;audit.log`
	r.target.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "audit-log-path", Value: odd}}
	if got := r.run(t); !slices.Equal(got, []string{"kubernetes/follow", "kubernetes/apiserver"}) {
		t.Errorf("%q differ", got)
	}
	if got := r.sh(t, "kubectl get --raw /readyz"); got != "ok" {
		t.Errorf("/readyz says %q", got)
	}
	line := r.sh(t, "tr '\\0' '\\n' <\"/proc/$(pidof kube-apiserver)/cmdline\"")
	if !slices.Contains(strings.Split(line, "\n"), "--audit-log-path="+odd) {
		t.Errorf("kube-apiserver was started with\n%s", line)
	}
	// While it was away, others may have lost their leases, and have ended to be started again.
	r.until(t, "! systemctl show -p ActiveState --value kube-controller-manager kube-scheduler | grep -q activating")
	if again := r.run(t); len(again) > 0 {
		t.Errorf("a second run changed %q", again)
	}
}

const turn = `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kubexm-control-plane", "namespace": "kube-system"},
  "spec": {"holderIdentity": "another"}}`

// While it is another host's turn, nothing is restarted here.
func (r *rig) testTurns(t *testing.T) {
	r.sh(t, "kubectl create -f - <<'END'\n"+turn+"\nEND")
	before := r.starts(t)
	r.target.Cluster.Kubernetes.Scheduler.ExtraArgs = []spec.Arg{{Name: "kube-api-qps", Value: "60"}}
	ended := make(chan []string, 1)
	go func() { ended <- r.run(t) }()
	const refused = `sed -n 's/^apiserver_request_total{code="409".*resource="leases".*verb="POST".* //p'`
	r.until(t, `[ "0$(kubectl get --raw /metrics | `+refused+`)" -ge 2 ]`) // it has asked for its turn twice
	if now := r.starts(t); now != before {
		t.Errorf("components were started at\n%s\nand now\n%s", before, now)
	}
	r.sh(t, "kubectl delete lease -n kube-system kubexm-control-plane")
	if got := <-ended; !slices.Equal(got, []string{"kubernetes/follow", "kubernetes/scheduler"}) {
		t.Errorf("%q differ", got)
	}
	r.sh(t, "! kubectl get lease -n kube-system kubexm-control-plane 2>/dev/null")
	r.sh(t, "grep -q kube-api-qps=60 /proc/$(pidof kube-scheduler)/cmdline")
}

// What a component does not understand is taken back, from those too that were changed before it.
func (r *rig) testPutBack(t *testing.T) {
	const units = "cd /etc/systemd/system; sha256sum kube-apiserver.service kube-controller-manager.service kube-scheduler.service"
	before := r.sh(t, units)
	k := &r.target.Cluster.Kubernetes
	good := *k.DeepCopy()
	for component, set := range map[string]func(bad []spec.Arg){
		"kube-apiserver": func(bad []spec.Arg) { k.APIServer.ExtraArgs = bad },
		"kube-scheduler": func(bad []spec.Arg) {
			k.APIServer.ExtraArgs = []spec.Arg{{Name: "v", Value: "1"}}
			k.Scheduler.ExtraArgs = bad
		},
	} {
		set([]spec.Arg{{Name: "no-such-flag", Value: "1"}})
		_, err := r.engine().Run(t.Context(), r.plan(t))
		if want := component + " does not come up"; err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "no-such-flag") {
			t.Errorf("it ended with %v, want %q and what it said", err, want)
		}
		if now := r.sh(t, units); now != before {
			t.Errorf("the units are\n%s\nand were\n%s", now, before)
		}
		r.sh(t, "kubectl get --raw /readyz; systemctl is-active kube-apiserver kube-controller-manager kube-scheduler; ! ls /run/kubexm-control-plane")
		*k = *good.DeepCopy()
		if again := r.run(t); len(again) > 0 {
			t.Errorf("a run as before changed %q", again)
		}
	}
}

// What is in admin.conf may do nothing until its group is bound, and can be locked out again by that binding.
func (r *rig) testAdministrators(t *testing.T) {
	masters, err := r.authorities.Cluster.Sign(pki.LeafRequest{
		CommonName: "test", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.sh(t, "! kubectl get nodes 2>/dev/null")
	manifest := kubernetes.Administrators(done).(step.Sequence).Parts[0].(step.Apply).Manifest.String()
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

// What the kubelet does not understand is taken back, and the kubelet runs with what it had.
func (r *rig) testKubeletPutBack(t *testing.T) {
	const files = "sha256sum /etc/systemd/system/kubelet.service /var/lib/kubelet/config.yaml"
	before := r.sh(t, files)
	args := &r.target.Cluster.Kubernetes.Kubelet.ExtraArgs
	*args = []spec.Arg{{Name: "max-podz", Value: "1"}}
	_, err := r.engine().Run(t.Context(), r.plan(t))
	if err == nil || !strings.Contains(err.Error(), "what was there before was put back") || !strings.Contains(err.Error(), "max-podz") {
		t.Errorf("it ended with %v, want that it was put back, and what the kubelet said", err)
	}
	if now := r.sh(t, files); now != before {
		t.Errorf("the files are\n%s\nand were\n%s", now, before)
	}
	r.sh(t, "curl -fsS http://127.0.0.1:10248/healthz; ! ls /run/kubexm-kubelet 2>/dev/null")
	// What it does understand it gets.
	*args = []spec.Arg{{Name: "v", Value: "1"}}
	if got := r.run(t); !slices.Equal(got, []string{"kubelet/follow", "kubernetes/kubelet"}) {
		t.Errorf("%q differ", got)
	}
	r.sh(t, "tr '\\0' '\\n' <\"/proc/$(pidof kubelet)/cmdline\" | grep -qx -e --v=1")
	*args = nil
	r.run(t)
	// One that hangs is not as it must be.
	r.sh(t, "systemctl kill -s STOP kubelet")
	check, err := r.engine().Check(t.Context(), r.plan(t))
	if err != nil || len(check.Checks) != 1 || !strings.HasSuffix(check.Checks[0].Node, "kubelet/healthy") {
		t.Errorf("of a kubelet that does not answer, %+v differs (%v)", check, err)
	}
	r.sh(t, "systemctl kill -s CONT kubelet")
	r.until(t, "curl -fsS http://127.0.0.1:10248/healthz >/dev/null")
}
