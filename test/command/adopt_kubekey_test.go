// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// theirSSL is where KubeKey has what etcd's members and clients know each other by.
const theirSSL = "/etc/ssl/etcd/ssl"

// TestKubeKeyIsAdopted takes over a cluster that is laid out as KubeKey lays it out, with etcd as a unit on the control plane's hosts,
// while somebody writes: members stay who they are, and become ours one after the other at the first converge. No acknowledged write is
// lost, and nothing of etcd is left when the cluster is deleted.
func TestKubeKeyIsAdopted(t *testing.T) {
	for _, kind := range []struct {
		name           string
		hosts, masters int
		spec           string
	}{
		{"one", 2, 1, "  roleGroups: {master: [$1], worker: [$2]}\n"},
		{"three", 4, 3, "  roleGroups: {master: [$1, $2, $3]}\n  controlPlaneEndpoint: {externalLoadBalancer: external, lb_address: $LB}\n"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			e := start(t, "adopt-kubekey-"+kind.name, kind.hosts)
			masters, last := e.Hosts[:kind.masters], e.Hosts[kind.hosts-1]
			made := foreign{masters: masters, workers: e.Hosts[kind.masters:], kubekey: true}
			if kind.masters > 1 {
				lab.Balance(t, last, masters...)
				made.workers, made.endpoint = nil, last.Address+":6443"
			}
			e.isAdoptedOfKubeKey(made, strings.NewReplacer("$LB", last.Address, "$VERSION", e.bundle.Manifest().KubernetesVersion).Replace(kind.spec+
				"  kubernetes: {version: $VERSION, encryptionAtRest: {provider: None}}\n"+
				"  etcd: {type: kubexm}\n  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}\n"))
		})
	}
}

func (e *environment) isAdoptedOfKubeKey(made foreign, spec string) {
	t, master := e.t, made.masters[0]
	adopt := append([]string{"adopt", "--yes"}, e.declared()...)

	t.Log("a cluster as KubeKey's")
	e.byKubeadm(made)
	admin, err := os.ReadFile(filepath.Join(e.Dir, "admin.conf"))
	if err != nil {
		t.Fatal(err)
	}

	t.Log("refused, where it could not go on: all at once")
	e.write(strings.Replace(spec, "{type: kubexm}", "{type: kubeadm}", 1))
	e.ends(3, adopt, "spec.etcd.type: external")
	for _, h := range made.masters {
		e.sh(h, "mv "+theirSSL+"/ca-key.pem /root/")
	}
	e.write(strings.Replace(spec, "{type: kubexm}", "{type: kubexm, dataDir: /data/etcd}", 1))
	e.ends(3, adopt, "no control plane host has the key of etcd's authority", `data is "/var/lib/etcd", and "/data/etcd" is declared`)
	e.sh(master, "mv /root/ca-key.pem "+theirSSL+"/")

	writes, err := workload.Write(t.Context(), e.apiBy(admin))
	if err != nil {
		t.Fatal(err)
	}
	was, pods, members := e.running(), e.podsNow(), e.etcdMembers(master, theirSSL+"/ca.pem", theirSSL+"/admin-"+master.Name)

	t.Log("shown, and adopted")
	e.write(spec)
	shown := e.ends(0, append([]string{"adopt", "--dry-run"}, e.declared()...), "restarts this host's etcd", "etcd  - --name=etcd-"+master.Name,
		"etcd  + --name="+master.Name, "etcd  - --election-timeout=5000", "etcd  - --trusted-ca-file="+theirSSL+"/ca.pem",
		"etcd.service  - EnvironmentFile=/etc/etcd.env", "kubelet  - --hostname-override="+master.Name,
		"kube-apiserver  + --etcd-servers=https://127.0.0.1:2379")
	t.Log(shown)
	e.stays(was, pods)
	e.ends(0, adopt, "is adopted")
	e.stays(was, pods)
	e.isPlanned(shown)

	t.Log("converged")
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	if now := e.podsNow()["default/theirs"]; now != pods["default/theirs"] {
		t.Errorf("the workload was %q and is %q", pods["default/theirs"], now)
	}
	renamed := strings.ReplaceAll(members, "etcd-", "")
	for _, h := range made.masters {
		e.kubeletIsOurs(h)
		if diff := cmp.Diff(renamed, e.etcdMembers(h, "/etc/kubexm/etcd/ssl/ca.pem", "/etc/kubexm/etcd/ssl/admin-"+h.Name)); diff != "" {
			t.Errorf("%s has other members (-before, by their hosts' names +after):\n%s", h.Name, diff)
		}
		if is := e.sh(h, "ps -o user= -p $(pidof etcd); tr '\\0' '\\n' </proc/$(pidof etcd)/cmdline"); !strings.HasPrefix(is, "etcd\n") ||
			!strings.Contains(is, "--trusted-ca-file=/etc/kubexm/etcd/ssl/ca.pem") {
			t.Errorf("etcd of %s is:\n%s", h.Name, is)
		}
	}

	t.Log("what was written is there")
	e.keeps(writes)

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range made.masters {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet", "/etc/ssl/etcd", "/etc/etcd.env", "/etc/kubexm", "/usr/local/bin/etcd",
			"/usr/local/bin/etcdctl", "/etc/systemd/system/etcd.service", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf")
	}
	for _, h := range made.workers {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet", "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf")
	}
}

// etcdMembers are etcd's, all of which answer, as a host has them: a line each. pair is where the administrator's certificate and key are,
// without their endings.
func (e *environment) etcdMembers(h *hosts.Host, ca, pair string) string {
	e.t.Helper()
	return e.sh(h, `etcd() { etcdctl --endpoints https://`+h.Address+`:2379 --cacert `+ca+` --cert `+pair+`.pem --key `+pair+`-key.pem "$@"; }
etcd endpoint health --cluster >/dev/null && etcd member list | sort`)
}

// kubekey lays out the hosts as KubeKey does before they are a cluster's: c then says where etcd is. It returns run with what adopt.sh must
// know for that, besides.
func (e *environment) kubekey(c *foreign, run func(*hosts.Host, string, ...string) string) func(*hosts.Host, string, ...string) string {
	e.t.Helper()
	files := e.theirCertificates(c.masters)
	var urls, members []string
	for _, h := range c.masters {
		urls, members = append(urls, "https://"+h.Address+":2379"), append(members, "etcd-"+h.Name+"=https://"+h.Address+":2380")
		for name, content := range files {
			e.put(h, theirSSL+"/"+name, "0600", bytes.NewReader(content))
		}
		e.programsOf(h, "etcd", "/usr/local/bin")
	}
	also := []string{"KUBEKEY=1", "ETCD_URL=" + strings.Join(urls, ","), "MEMBERS=" + strings.Join(members, ",")}
	client := theirSSL + "/node-" + c.masters[0].Name
	also = append(also, "ETCD_FILES="+theirSSL+"/ca.pem "+client+".pem "+client+"-key.pem")
	with := func(h *hosts.Host, function string, more ...string) string {
		e.t.Helper()
		return run(h, function, append(more, also...)...)
	}
	for _, h := range c.masters {
		with(h, "kubekey_etcd")
	}
	e.sh(c.masters[0], `for try in $(seq 60); do
	etcdctl --endpoints `+strings.Join(urls, ",")+` --cacert `+theirSSL+`/ca.pem --cert `+client+`.pem --key `+client+`-key.pem endpoint health && exit
	sleep 1
done
journalctl -u etcd.service -n 20 -o cat --no-pager
exit 1`)
	return with
}

// theirCertificates are what KubeKey has on each of the hosts: the authority with its key, and those of all members.
func (e *environment) theirCertificates(masters []*hosts.Host) map[string][]byte {
	e.t.Helper()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.RSA2048})
	if err != nil {
		e.t.Fatal(err)
	}
	names, addresses := []string{"localhost"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for _, h := range masters {
		names, addresses = append(names, h.Name), append(addresses, netip.MustParseAddr(h.Address))
	}
	files := map[string][]byte{"ca.pem": ca.Cert, "ca-key.pem": ca.Key.Reveal()}
	for _, h := range masters {
		for _, of := range []string{"admin", "member", "node"} {
			pair, err := ca.Sign(pki.LeafRequest{
				CommonName: "etcd-" + of + "-" + h.Name, DNSNames: names, IPs: addresses, Usages: []pki.Usage{pki.Server, pki.Client},
			})
			if err != nil {
				e.t.Fatal(err)
			}
			files[of+"-"+h.Name+".pem"], files[of+"-"+h.Name+"-key.pem"] = pair.Cert, pair.Key.Reveal()
		}
	}
	return files
}
