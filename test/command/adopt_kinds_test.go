// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// theirDropIn is one that an administrator lays beside the kubelet's unit.
const theirDropIn = "/etc/systemd/system/kubelet.service.d/20-theirs.conf"

// TestPackagesAreAdopted takes over a cluster of hosts whose programs and units are packages'. What would be lost is shown or refused; the
// kubelet is ours from the first converge on, whatever becomes of the packages; and they have all their files, and no others, when the
// cluster is deleted.
func TestPackagesAreAdopted(t *testing.T) {
	e := start(t, "adopt-packages", 2)
	e.write(strings.ReplaceAll(adoptedSpec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
	master, worker := e.Hosts[0], e.Hosts[1]
	adopt := append([]string{"adopt", "--yes"}, e.declared()...)

	t.Log("a cluster by kubeadm, of packages")
	e.byKubeadm(foreign{masters: e.Hosts[:1], workers: e.Hosts[1:], packages: true, prepared: func(h *hosts.Host) {
		if h == worker {
			e.sh(h, `printf 'KUBELET_EXTRA_ARGS=--max-pods=60\nTHEIR_SECRET=hunter2\n' >/etc/default/kubelet
mkdir -p /etc/systemd/system/kubelet.service.d
printf '[Service]\nEnvironment=THEIRS=kept\n' >`+theirDropIn+` && systemctl daemon-reload`)
		}
	}})
	verified := e.packagesAre()
	if left := e.sh(worker, "ls /usr/local/bin/kubelet /etc/systemd/system/kubelet.service 2>/dev/null || true"); left != "" {
		t.Fatalf("not all is the packages': %s", left)
	}

	t.Log("refused where another kubelet would be run")
	e.sh(worker, "cp "+theirDropIn+" /root/ && printf 'ExecStart=\\nExecStart=/usr/bin/kubelet --v=1\\n' >>"+theirDropIn+" && systemctl daemon-reload")
	e.ends(3, adopt, worker.Name, theirDropIn+" is laid over the unit", "it sets ExecStart")
	e.sh(worker, "mv /root/20-theirs.conf "+theirDropIn+" && systemctl daemon-reload")
	was, pods := e.running(), e.podsNow()

	t.Log("shown, and adopted")
	shown := e.ends(0, append([]string{"adopt", "--dry-run"}, e.declared()...), "The first converge",
		"kubelet  - --max-pods=60", "kubelet.service  - variable THEIR_SECRET of /etc/default/kubelet", "= drop-in "+theirDropIn,
		worker.Name+": a reset leaves of /etc/kubernetes what packages own: kubelet",
		worker.Name+": a reset leaves of /opt/cni what packages own: kubernetes-cni")
	if strings.Contains(shown, "hunter2") {
		t.Error("the value of a variable is shown")
	}
	t.Log(shown)
	e.ends(0, adopt)
	e.stays(was, pods)

	t.Log("converged")
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	for _, h := range e.Hosts {
		e.kubeletIsOurs(h)
	}
	if of := e.sh(worker, "tr '\\0' '\\n' </proc/$(pidof kubelet)/environ | grep ^THEIRS="); strings.TrimSpace(of) != "THEIRS=kept" {
		t.Errorf("the drop-in is not in force: %q", of)
	}
	if now := e.podsNow()["default/theirs"]; now != pods["default/theirs"] {
		t.Errorf("the workload was %q and is %q", pods["default/theirs"], now)
	}
	if diff := cmp.Diff(verified, e.packagesAre()); diff != "" {
		t.Errorf("packages' files are others (-before +after):\n%s", diff)
	}

	t.Log("packages are upgraded, and restart the kubelet")
	for _, h := range e.Hosts {
		e.adminDoes(h, "upgraded")
		e.kubeletIsOurs(h)
	}
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	e.sh(master, "kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=condition=Ready node --all --timeout=120s")

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range e.Hosts {
		e.isFree(h, "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", "/opt/cni/bin/flannel")
		left := strings.Fields(e.sh(h, "find /etc/kubernetes /var/lib/kubelet ! -type d"))
		if diff := cmp.Diff([]string{"/etc/kubernetes/manifests/.kubelet-keep", "/var/lib/kubelet/.kubelet-keep"}, left); diff != "" {
			t.Errorf("host %s has, after the reset (-want +got):\n%s", h.Name, diff)
		}
		const state = "systemctl show -p FragmentPath -p DropInPaths -p UnitFileState --value kubelet.service"
		if got := e.sh(h, state); !strings.Contains(got, "/lib/systemd/system/kubelet.service\n") || !strings.Contains(got, "10-kubeadm.conf") ||
			strings.Contains(got, "enabled") {
			t.Errorf("the kubelet's unit of %s is not the package's: %s", h.Name, got)
		}
	}
	if diff := cmp.Diff(verified, e.packagesAre()); diff != "" {
		t.Errorf("packages' files are others (-before +after):\n%s", diff)
	}
	e.sh(worker, "test -f "+theirDropIn)
}

// packagesAre are the packages' files that are not as they came, by host: configuration that its administrator has changed.
func (e *environment) packagesAre() map[string]string {
	e.t.Helper()
	all := map[string]string{}
	for _, h := range e.Hosts {
		all[h.Name] = e.sh(h, "dpkg --verify kubelet kubeadm kubectl kubernetes-cni containerd.io || true")
		for line := range strings.Lines(all[h.Name]) {
			if !strings.Contains(line, " c /etc/") {
				e.t.Errorf("%s: %s", h.Name, line)
			}
		}
	}
	return all
}

// kubeletIsOurs wants the kubelet and containerd that run to be those that a converge has placed, by their units.
func (e *environment) kubeletIsOurs(h *hosts.Host) {
	e.t.Helper()
	if exe := strings.TrimSpace(e.sh(h, "readlink /proc/$(pidof kubelet)/exe")); exe != "/usr/local/bin/kubelet" {
		e.t.Errorf("the kubelet of %s is %s", h.Name, exe)
	}
	if exe := strings.TrimSpace(e.sh(h, "readlink /proc/$(pidof containerd)/exe")); exe != "/usr/local/bin/containerd" {
		e.t.Errorf("containerd of %s is %s", h.Name, exe)
	}
	if units := e.sh(h, "systemctl cat kubelet.service containerd.service"); strings.Contains(units, "=/usr/bin/") {
		e.t.Errorf("the units of %s are:\n%s", h.Name, units)
	}
}

// TestThreeAreAdopted takes over three control plane hosts behind a load balancer of others, with three members of etcd, while somebody
// writes: one after the other is converged, a worker joins, and two of them are reset and join again. No acknowledged write is lost.
func TestThreeAreAdopted(t *testing.T) {
	e := start(t, "adopt-three", 5)
	masters, balancer, worker := e.Hosts[:3], e.Hosts[3], e.Hosts[4]
	spec := func(roles string) {
		e.write(strings.NewReplacer("$ROLES", roles, "$VERSION", e.bundle.Manifest().KubernetesVersion, "$LB", balancer.Address).Replace(
			"  roleGroups: {$ROLES}\n  kubernetes: {version: $VERSION, encryptionAtRest: {provider: None}}\n" +
				"  etcd: {type: kubeadm}\n  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}\n" +
				"  controlPlaneEndpoint: {externalLoadBalancer: external, lb_address: $LB}\n"))
	}
	spec("master: [$1, $2, $3]")
	lab.Balance(t, balancer, masters...)

	t.Log("a cluster by kubeadm")
	e.byKubeadm(foreign{masters: masters, endpoint: balancer.Address + ":6443"})
	admin, err := os.ReadFile(filepath.Join(e.Dir, "admin.conf"))
	if err != nil {
		t.Fatal(err)
	}
	writes, err := workload.Write(t.Context(), e.apiBy(admin))
	if err != nil {
		t.Fatal(err)
	}
	was, pods := e.running(), e.podsNow()
	members := e.members(masters[0])

	t.Log("adopted")
	shown := e.ends(0, append([]string{"adopt", "--yes"}, e.declared()...), "3 Nodes", "3 members", "is adopted")
	e.stays(was, pods)
	e.isPlanned(shown)

	t.Log("converged")
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	if diff := cmp.Diff(members, e.members(masters[0])); diff != "" {
		t.Errorf("etcd has other members (-before +after):\n%s", diff)
	}
	if now := e.podsNow()["default/theirs"]; now != pods["default/theirs"] {
		t.Errorf("the workload was %q and is %q", pods["default/theirs"], now)
	}
	for _, h := range masters {
		e.kubeletIsOurs(h)
		e.sh(h, "curl -fsSk https://"+h.Address+":6443/readyz")
	}

	t.Log("a worker joins, and two control plane hosts are reset and join again")
	for _, roles := range []string{"master: [$1, $2, $3], worker: [$5]", "master: [$1], worker: [$5]", "master: [$1, $2, $3], worker: [$5]"} {
		spec(roles)
		e.ends(0, e.CreateArgs())
		if !strings.Contains(roles, "$2") {
			for _, h := range masters[1:] {
				e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")
			}
		}
	}
	e.ends(0, e.CreateArgs(), "0 changes")
	e.kubeletIsOurs(worker)
	if got := strings.Count(e.members(masters[0]), "started"); got != len(masters) {
		t.Errorf("etcd has %d members that have started", got)
	}

	t.Log("what was written is there")
	e.keeps(writes)

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range masters {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")
	}
	e.unchanged(worker)
}

// members are etcd's, all of which answer: a line each.
func (e *environment) members(master *hosts.Host) string {
	e.t.Helper()
	return e.sh(master, `etcd() {
	kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system exec etcd-$(uname -n) -- etcdctl --cacert /etc/kubernetes/pki/etcd/ca.crt \
		--cert /etc/kubernetes/pki/etcd/peer.crt --key /etc/kubernetes/pki/etcd/peer.key "$@"
}
etcd endpoint health --cluster >/dev/null && etcd member list | sort`)
}

// TestExternalEtcdIsAdopted takes over a cluster whose etcd is its administrator's. That goes on untouched, from before the adoption until
// after the deletion of the cluster; what the API server goes to it with is what is declared, from the first converge on.
func TestExternalEtcdIsAdopted(t *testing.T) {
	e := start(t, "adopt-etcd", 3)
	nodes, master, theirs := e.Hosts[:2], e.Hosts[0], e.Hosts[2]
	url := lab.Etcd(t, theirs, e.bundle, e.Dir, master)
	version := e.bundle.Manifest().KubernetesVersion
	spec := strings.NewReplacer("$VERSION", version, "$ETCD", url, "$DIR", e.Dir).Replace(
		"  roleGroups: {master: [$1], worker: [$2]}\n  kubernetes: {version: $VERSION, encryptionAtRest: {provider: None}}\n" +
			"  etcd:\n    type: external\n    external: {endpoints: [$ETCD], caFile: \"$DIR/ca.crt\", certFile: \"$DIR/client.crt\", keyFile: \"$DIR/client.key\"}\n" +
			"  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}\n")
	adopt := append([]string{"adopt", "--yes"}, e.declared()...)

	t.Log("a cluster by kubeadm")
	e.byKubeadm(foreign{masters: nodes[:1], workers: nodes[1:], etcd: url})
	was, pods, etcd := e.running(), e.podsNow(), e.etcdOf(theirs, url)

	t.Log("refused, where another etcd is declared")
	e.write(strings.ReplaceAll(adoptedSpec, "$VERSION", version))
	e.ends(3, adopt, "spec.etcd.type: external")
	e.write(strings.Replace(spec, url, "https://"+theirs.Address+":2381", 1))
	e.ends(3, adopt, "its external etcd is", "spec.etcd.external.endpoints: ["+url+"]")

	t.Log("adopted")
	e.write(spec)
	shown := e.ends(0, adopt, "external, "+url, "restarts kube-apiserver", "- --etcd-cafile="+lab.EtcdDir+"/ca.crt", "- volume of "+lab.EtcdDir,
		"+ --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt", "+ --etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt", "is adopted")
	t.Log(shown)
	e.stays(was, pods)
	e.isPlanned(shown)

	t.Log("converged")
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	if now := e.podsNow()["default/theirs"]; now != pods["default/theirs"] {
		t.Errorf("the workload was %q and is %q", pods["default/theirs"], now)
	}
	client, err := os.ReadFile(filepath.Join(e.Dir, "client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if placed := e.sh(master, "cat /etc/kubernetes/pki/apiserver-etcd-client.crt"); strings.TrimSpace(placed) != strings.TrimSpace(string(client)) {
		t.Errorf("the API server goes to etcd with another certificate than is declared:\n%s", placed)
	}
	if flags := e.sh(master, "tr '\\0' '\\n' </proc/$(pidof kube-apiserver)/cmdline"); !strings.Contains(flags, "--etcd-servers="+url) ||
		strings.Contains(flags, lab.EtcdDir) {
		t.Errorf("the API server runs with:\n%s", flags)
	}
	if diff := cmp.Diff(etcd, e.etcdOf(theirs, url)); diff != "" {
		t.Errorf("etcd is another (-before +after):\n%s", diff)
	}

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range nodes {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet", "/usr/local/bin/etcdctl")
	}
	if diff := cmp.Diff(etcd, e.etcdOf(theirs, url)); diff != "" {
		t.Errorf("etcd is another (-before +after):\n%s", diff)
	}
}

// etcdOf is the process of an external etcd, which answers, its member, and an object of the cluster's that it has.
func (e *environment) etcdOf(h *hosts.Host, url string) string {
	e.t.Helper()
	return e.sh(h, `systemctl show -p ActiveState -p MainPID -p InvocationID etcd.service
etcd() { etcdctl --endpoints `+url+` --cacert `+lab.EtcdDir+`/ca.crt --cert `+lab.EtcdDir+`/client.crt --key `+lab.EtcdDir+`/client.key "$@"; }
etcd endpoint health >/dev/null && etcd member list && etcd get --keys-only /registry/namespaces/default`)
}
