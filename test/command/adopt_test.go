// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

//go:embed adopt.sh
var adoptScript string

const adoptedSpec = "  roleGroups: {master: [$1], worker: [$2]}\n  kubernetes: {version: $VERSION, encryptionAtRest: {provider: None}}\n" +
	"  etcd: {type: kubeadm}\n  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}\n"

// TestAdopt takes over a cluster that kubeadm has made by a shell script, with a workload in it: nothing is restarted by that, the first
// converge changes what was shown, and the hosts are free of Kubernetes when the cluster is deleted.
func TestAdopt(t *testing.T) {
	e := start(t, "adopt", 2)
	e.write(strings.ReplaceAll(adoptedSpec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
	master, worker := e.Hosts[0], e.Hosts[1]
	adopt := append([]string{"adopt", "--yes"}, e.declared()...)
	e.ends(3, adopt, "is not adopted, and nothing was written", "no control plane host has the key pairs")
	e.unchanged(e.Hosts...)

	t.Log("a cluster by kubeadm")
	e.byKubeadm(foreign{masters: e.Hosts[:1], workers: e.Hosts[1:]})
	was, pods := e.running(), e.podsNow()

	t.Log("refused, and shown: nothing is changed")
	e.write(strings.ReplaceAll(strings.ReplaceAll(adoptedSpec, ", worker: [$2]", ""), "$VERSION", e.bundle.Manifest().KubernetesVersion))
	e.ends(3, adopt, "lists the Node "+worker.Name)
	e.write(strings.ReplaceAll(strings.ReplaceAll(adoptedSpec, "10.244", "10.233"), "$VERSION", e.bundle.Manifest().KubernetesVersion))
	e.ends(3, adopt, "range of Pods' addresses")
	e.write(strings.ReplaceAll(adoptedSpec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
	shown := e.ends(0, append([]string{"adopt", "--dry-run"}, e.declared()...), "The first converge",
		"--default-not-ready-toleration-seconds=77", "theirs.example.org")
	t.Log(shown)
	e.stays(was, pods)
	if out := e.sh(master, "ls -d /var/lib/kubexm 2>/dev/null || true"); out != "" {
		t.Errorf("there is %s", out)
	}

	t.Log("adopted, after having been cut")
	e.adoptsWhenCut(adopt)
	e.stays(was, pods)
	e.ends(0, adopt, "nothing to adopt")
	e.stays(was, pods)
	e.ends(0, []string{"get", "nodes"}, master.Name, worker.Name, "Ready")
	e.isPlanned(shown)

	t.Log("converged")
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	if now := e.podsNow()["default/theirs"]; now != pods["default/theirs"] {
		t.Errorf("the workload was %q and is %q", pods["default/theirs"], now)
	}

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range e.Hosts {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")
	}
}

// isFree wants nothing of Kubernetes to be on a host, nor any of the paths.
func (e *environment) isFree(h *hosts.Host, paths ...string) {
	e.t.Helper()
	left := e.sh(h, "ls -d "+strings.Join(paths, " ")+` /var/lib/etcd /etc/cni /var/lib/containerd /run/containerd /run/flannel \
/usr/local/bin/kubelet /usr/local/bin/kubeadm /usr/local/bin/containerd /etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service \
/var/lib/kubexm 2>/dev/null || true
ps -C kubelet,containerd,containerd-shim,etcd,kube-apiserver,kube-controller,kube-scheduler,kube-proxy,coredns,flanneld -o comm= || true
ip -o link show | grep -o -e cni0 -e flannel.1 -e ' veth[0-9a-f]*' || true
mount | grep -e kubelet -e containerd || true
{ iptables-save; nft list ruleset; } 2>/dev/null | grep -m1 -e KUBE- -e FLANNEL || true`)
	if left != "" {
		e.t.Errorf("host %s has, after the reset:\n%s", h.Name, left)
	}
}

// foreign is a cluster that somebody else makes with kubeadm.
type foreign struct {
	masters, workers []*hosts.Host
	// endpoint is where all reach the API: the first host, if it is empty.
	endpoint string
	// etcd is the URL of an external one, whose lab.EtcdDir the masters have. If it is empty, kubeadm runs one.
	etcd string
	// kubekey has etcd run as a unit on the masters, and the kubelet, as KubeKey has them.
	kubekey bool
	// packages has programs and units come as packages.
	packages bool
	// prepared, if not nil, is what an administrator does on a host before it joins.
	prepared func(*hosts.Host)
}

// byKubeadm makes a cluster, and a Pod in it.
func (e *environment) byKubeadm(c foreign) {
	e.t.Helper()
	images, master := e.bundle.Images("amd64"), c.masters[0]
	cut := func(ref string) (string, string) { at := strings.LastIndex(ref, ":"); return ref[:at], ref[at+1:] }
	_, etcdTag := cut(images["etcd"])
	dns, dnsTag := cut(images["coredns"])
	run := func(h *hosts.Host, function string, more ...string) string {
		e.t.Helper()
		return e.adminDoes(h, function, append([]string{
			"VERSION=" + e.bundle.Manifest().KubernetesVersion, "PAUSE=" + images["pause"],
			"ETCD_TAG=" + etcdTag, "DNS_REPOSITORY=" + path.Dir(dns), "DNS_TAG=" + dnsTag, "ENDPOINT=" + c.endpoint, "ETCD_URL=" + c.etcd,
			"ETCD_FILES=" + lab.EtcdDir + "/ca.crt " + lab.EtcdDir + "/client.crt " + lab.EtcdDir + "/client.key",
		}, more...)...)
	}
	if c.kubekey {
		run = e.kubekey(&c, run)
	}
	for _, h := range slices.Concat(c.masters, c.workers) {
		e.programs(h)
		if c.packages {
			run(h, "packages")
			run(h, "prepare", "PACKAGES=1")
		} else {
			run(h, "prepare")
		}
		if c.prepared != nil {
			c.prepared(h)
		}
		e.images(h)
	}
	run(master, "begin")
	admin := filepath.Join(e.Dir, "admin.conf")
	if err := os.WriteFile(admin, []byte(e.sh(master, "cat /etc/kubernetes/admin.conf")), 0o600); err != nil {
		e.t.Fatal(err)
	}
	flannel.Install(e.t, e.bundle, admin)
	server := master.Address + ":6443"
	if c.endpoint != "" {
		server = c.endpoint
	}
	joins := []string{"SERVER=" + server, "TOKEN=" + strings.TrimSpace(run(master, "token"))}
	if len(c.masters) > 1 {
		key := "KEY=" + strings.TrimSpace(run(master, "key"))
		for _, h := range c.masters[1:] {
			run(h, "join", append(joins, key)...)
		}
	}
	for _, h := range c.workers {
		run(h, "join", joins...)
	}
	const theirs = `apiVersion: v1
kind: Pod
metadata: {name: theirs, namespace: default}
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: theirs, image: %q, imagePullPolicy: Never}]
`
	cmd := master.Command(e.t.Context(), "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(theirs, images["pause"]))
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("%v\n%s", err, out)
	}
	e.sh(master, `export KUBECONFIG=/etc/kubernetes/admin.conf
kubectl wait --for=condition=Ready node --all --timeout=300s &&
kubectl --namespace kube-flannel rollout status daemonset/kube-flannel-ds --timeout=300s &&
kubectl --namespace kube-system rollout status daemonset/kube-proxy --timeout=300s &&
kubectl --namespace kube-system rollout status deployment/coredns --timeout=300s &&
kubectl wait --for=condition=Ready pod --all --all-namespaces --timeout=300s`)
}

// adminDoes runs a function of adopt.sh on a host.
func (e *environment) adminDoes(h *hosts.Host, function string, variables ...string) string {
	e.t.Helper()
	began := time.Now()
	argv := append([]string{"env", "HOST=" + h.Name, "ADDRESS=" + h.Address}, variables...)
	out, err := h.Exec(e.t.Context(), append(argv, "sh", "-c", adoptScript, "adopt.sh", function)...)
	if err != nil {
		e.t.Fatalf("%s on %s: %v\n%s", function, h.Name, err, out)
	}
	e.t.Logf("%s on %s after %.1f s", function, h.Name, time.Since(began).Seconds())
	return out
}

// programs puts what a distribution's packages would into /usr/local/bin and /opt/cni/bin.
func (e *environment) programs(h *hosts.Host) {
	e.t.Helper()
	e.sh(h, "mkdir -p /usr/local/bin /opt/cni/bin")
	for _, of := range []struct{ component, into string }{
		{artifact.Kubernetes, "/usr/local/bin"}, {"containerd", "/usr/local/bin"}, {"runc", "/usr/local/bin"}, {"cni-plugins", "/opt/cni/bin"},
	} {
		e.programsOf(h, of.component, of.into)
	}
}

// programsOf puts those of a component into a directory.
func (e *environment) programsOf(h *hosts.Host, component, into string) {
	e.t.Helper()
	files, err := e.bundle.Binaries(component, "", "amd64")
	if err != nil {
		e.t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.Open(f.Path)
		if err != nil {
			e.t.Fatal(err)
		}
		e.put(h, into+"/"+f.Name, "0755", content)
		_ = content.Close()
	}
}

// put writes a file of a host, whose directory is made.
func (e *environment) put(h *hosts.Host, to, mode string, content io.Reader) {
	e.t.Helper()
	cmd := h.Command(e.t.Context(), "sh", "-c", `mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"`, "sh", to, mode)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("%s: %v\n%s", to, err, out)
	}
}

// images gives containerd what the hosts, which reach no registry, would pull.
func (e *environment) images(h *hosts.Host) {
	e.t.Helper()
	refs, err := e.bundle.Images("amd64").Refs("pause", "coredns", "flannel", "flannel-cni-plugin", "kube-proxy", "kube-apiserver",
		"kube-controller-manager",
		"kube-scheduler", "etcd")
	if err != nil {
		e.t.Fatal(err)
	}
	archive, err := e.bundle.ImageArchive("amd64", refs...)
	if err != nil {
		e.t.Fatal(err)
	}
	from, to := io.Pipe()
	go func() {
		_, err := archive.WriteTo(to)
		_ = to.CloseWithError(err)
	}()
	cmd := h.Command(e.t.Context(), "ctr", "--namespace", "k8s.io", "images", "import", "--local", "-")
	cmd.Stdin = from
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("images: %v\n%s", err, out)
	}
}

// podsNow are all Pods, with what would be another if one was restarted.
func (e *environment) podsNow() map[string]string {
	e.t.Helper()
	out := e.sh(e.Hosts[0], `kubectl --kubeconfig /etc/kubernetes/admin.conf get pods -A -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.uid} {.status.startTime} {.status.containerStatuses[*].restartCount} {.status.containerStatuses[*].containerID}{"\n"}{end}'`)
	all := map[string]string{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = rest
	}
	return all
}

// stays wants nothing to have been restarted, and no file to be another, but for what an adoption writes.
func (e *environment) stays(was, pods map[string]string) {
	e.t.Helper()
	was = withoutOurs(was)
	diff := cmp.Diff(was, withoutOurs(e.running()))
	for range 2 { // a listing may show one of two neighbours twice, and the other not at all: it is taken again
		if diff == "" {
			break
		}
		diff = cmp.Diff(was, withoutOurs(e.running()))
	}
	if diff != "" {
		e.t.Errorf("hosts were changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(pods, e.podsNow()); diff != "" {
		e.t.Errorf("Pods are others (-before +after):\n%s", diff)
	}
}

// keeps ends the writes, of which none that was acknowledged may be lost.
func (e *environment) keeps(writes *workload.Writes) {
	e.t.Helper()
	outcome, err := writes.Stop(e.t.Context())
	e.t.Log(outcome)
	if err != nil || outcome.Acknowledged == 0 || len(outcome.Lost) > 0 {
		e.t.Errorf("writes that were acknowledged and are lost: %v, of %d (%v)", outcome.Lost, outcome.Acknowledged, err)
	}
}

// withoutOurs is what hosts have without what is kubexm's own there.
func withoutOurs(all map[string]string) map[string]string {
	others := map[string]string{}
	for name, text := range all {
		var kept []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "/var/lib/kubexm/") {
				kept = append(kept, line)
			}
		}
		others[name] = strings.TrimSpace(strings.Join(kept, ""))
	}
	return others
}

// adoptsWhenCut kills the program again and again, a little later each time, until it ends by itself, or has written what it knows.
func (e *environment) adoptsWhenCut(args []string) {
	e.t.Helper()
	for range e.cuts(args, 0, time.Second, func(after time.Duration) time.Duration { return after + after/3 }) {
		if _, err := os.Stat(filepath.Join(e.state(), "inventory.json")); err == nil {
			break
		}
		e.hasNoState()
	}
}

// isPlanned wants what adopt has shown to be what a plan shows.
func (e *environment) isPlanned(shown string) {
	e.t.Helper()
	planned := e.ends(0, append([]string{"plan"}, e.declared()...))
	if changes := changesOf(shown); changes == "" || changes != changesOf(planned) {
		e.t.Errorf("what adopt shows is not what plan shows:\n%s\n\n%s", changes, changesOf(planned))
	}
}

// changesOf is the part of what a command shows that says what is changed on hosts.
func changesOf(shown string) string {
	var lines []string
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "  ~") || strings.HasPrefix(line, "  +") || strings.HasPrefix(line, "  -") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(lines, "\n")
}
