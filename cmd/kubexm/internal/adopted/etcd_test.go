// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan/adoption"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// units is the declared cluster, whose etcd is units that others have made.
func units(t *testing.T) *config.Cluster {
	t.Helper()
	c, _, err := config.Parse([]byte(strings.Replace(declared, "{type: kubeadm}", "{type: kubexm}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	// theirCA is where KubeKey has etcd's authority.
	theirCA = "/etc/ssl/etcd/ssl/ca.pem"
	// both are the members of a cluster of cp1 and cp2, of which %s answers.
	both = `members {"header":{"cluster_id":240,"member_id":%d},"members":[{"ID":1,"name":"etcd-cp1","peerURLs":["https://172.16.0.1:2380"]},` +
		`{"ID":2,"name":"etcd-cp2","peerURLs":["https://172.16.0.2:2380"]}]}
alarms {"header":{"cluster_id":240,"member_id":%[1]d}}
`
)

// kubekeys is a control plane host of KubeKey whose member has this number; changes are pairs of what is replaced in what it says, by what.
func kubekeys(t *testing.T, ca pki.KeyPair, number int, changes ...string) adopted.EtcdUnit {
	t.Helper()
	u := adopted.EtcdUnit{
		Host: spec.Host{Name: fmt.Sprintf("cp%d", number), Address: fmt.Sprintf("172.16.0.%d", number), Role: spec.RoleControlPlane},
		Read: map[string][]byte{theirCA: ca.Cert, "/etc/ssl/etcd/ssl/ca-key.pem": ca.Key.Reveal()},
	}
	var lines []string
	for name, value := range map[string]string{
		"NAME": "etcd-" + u.Name, "DATA_DIR": "/var/lib/etcd", "ADVERTISE_CLIENT_URLS": "https://" + u.Address + ":2379", "ELECTION_TIMEOUT": "5000",
		"TRUSTED_CA_FILE": theirCA, "CERT_FILE": "/etc/ssl/etcd/ssl/member.pem", "KEY_FILE": "/etc/ssl/etcd/ssl/member-key.pem",
		"CLIENT_CERT_AUTH": "true", "PEER_TRUSTED_CA_FILE": theirCA, "PEER_CERT_FILE": "/etc/ssl/etcd/ssl/member.pem",
		"PEER_KEY_FILE": "/etc/ssl/etcd/ssl/member-key.pem", "PEER_CLIENT_CERT_AUTH": "true",
	} {
		lines = append(lines, "variable ETCD_"+name+"="+value)
	}
	said := "state active\nversion 3.6.4\nenvironment /etc/etcd.env\n" + strings.Join(lines, "\n") + "\n" + fmt.Sprintf(both, number)
	theirs, err := ofUnits.Theirs(host.Result{Stdout: []byte(strings.NewReplacer(changes...).Replace(said))})
	if err != nil {
		t.Fatal(err)
	}
	u.TheirEtcd = theirs
	leaf, err := ca.Sign(pki.LeafRequest{CommonName: "member", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		t.Fatal(err)
	}
	u.Read["/etc/ssl/etcd/ssl/member.pem"] = leaf.Cert
	return u
}

// TestEtcdUnits: members that others have made as units are taken over with what they know each other by, or refused.
func TestEtcdUnits(t *testing.T) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for cause, tc := range map[string]struct {
		first, second []string
		change        func(all []adopted.EtcdUnit)
	}{
		"":                                      {},
		"etcd.service is inactive":              {first: []string{"state active", "state inactive"}},
		"no control plane host has":             {change: func(all []adopted.EtcdUnit) { withoutKey(all[0]); withoutKey(all[1]) }},
		"does not answer: there is no etcdctl":  {first: []string{"members ", "why there is no etcdctl\nelse "}},
		"has the alarm NOSPACE of its member 2": {second: []string{`"member_id":2}` + "}\n", `"member_id":2},"alarms":[{"memberID":2,"alarm":1}]}` + "\n"}},
		"has the peer URL https://172.16.0.2:2381, and would have https://172.16.0.2:2380": {second: []string{"0.2:2380", "0.2:2381"}},
		"it is a learner": {second: []string{`{"ID":2,`, `{"ID":2,"isLearner":true,`}},
		"a member that has never started: https://172.16.0.2:2380": {first: []string{`"etcd-cp2"`, `""`}},
		"members of several etcd clusters: cp1: f0; cp2: f1":       {second: []string{`"cluster_id":240`, `"cluster_id":241`}},
		"etcd's authorities of several kinds":                      {change: func(all []adopted.EtcdUnit) { all[1].Read = kubekeys(t, other, 2).Read }},
	} {
		t.Run(cause, func(t *testing.T) {
			all := []adopted.EtcdUnit{kubekeys(t, ca, 1, tc.first...), kubekeys(t, ca, 2, tc.second...)}
			if tc.change != nil {
				tc.change(all)
			}
			found, problems := adopted.EtcdUnits("prod", units(t).Spec.Etcd, "v3.6.14", all, time.Now())
			has(t, problems, cause)
			if cause == "" && (!found.Authority.Key.Equal(ca.Key) || len(found.Members) != 2 || found.Members[1].PeerURL != "https://172.16.0.2:2380") {
				t.Errorf("found are %+v", found.Members)
			}
		})
	}
	// One host with the key is enough, wherever it is among them.
	all := []adopted.EtcdUnit{kubekeys(t, ca, 1), kubekeys(t, ca, 2)}
	withoutKey(all[0])
	found, problems := adopted.EtcdUnits("prod", units(t).Spec.Etcd, "v3.6.14", all, time.Now())
	if len(problems) > 0 || !found.Authority.Key.Equal(ca.Key) {
		t.Errorf("with the key on the second host alone: %+v", problems)
	}
}

var ofUnits = etcd.Units.(component.EtcdUnits)

func withoutKey(u adopted.EtcdUnit) { delete(u.Read, "/etc/ssl/etcd/ssl/ca-key.pem") }

// TestEtcdUnitsOfTheAPI: API servers and kubeadm's configuration go to no etcd but that on the declared hosts.
func TestEtcdUnitsOfTheAPI(t *testing.T) {
	for cause, change := range map[string]func(s *adopted.Seen, servers *string){
		"":                                func(*adopted.Seen, *string) {},
		"its etcd runs in kubeadm's":      func(s *adopted.Seen, _ *string) { s.Configuration = "networking: {podSubnet: 10.244.0.0/16}\n" },
		"its etcd is external":            func(s *adopted.Seen, _ *string) { s.Spec, s.EtcdUnits = &parse(t).Spec, false },
		"API server goes to etcd at":      func(_ *adopted.Seen, servers *string) { *servers = "https://172.16.0.1:2379,https://172.16.0.9:2379" },
		"API server goes to etcd at http": func(_ *adopted.Seen, servers *string) { *servers = "http://172.16.0.1:2379" },
		"configuration goes to etcd at https://172.16.0.9:2379,": func(s *adopted.Seen, _ *string) {
			s.Configuration = strings.Replace(s.Configuration, "0.1", "0.9", 1)
		},
	} {
		seen := &host.Facts{Paths: map[string]host.Path{}}
		s := adopted.Seen{
			Cluster: "prod", Spec: &units(t).Spec, EtcdUnits: true, Network: flannel.Network{},
			Configuration: "networking: {podSubnet: 10.244.0.0/16}\netcd: {external: {endpoints: ['https://172.16.0.1:2379']}}\n",
			DaemonSets:    []string{"kube-flannel/kube-flannel-ds"}, Releases: []string{"kube-flannel/flannel"},
			Hosts: []adopted.Host{{Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "172.16.0.1"}, Facts: seen, Runtime: runtime}},
			Nodes: []adopted.Node{{Name: "cp1", Address: "172.16.0.1", Runtime: "containerd://2.4.2", ControlPlane: true}},
		}
		servers := "https://172.16.0.1:2379/,https://127.0.0.1:2379"
		change(&s, &servers)
		seen.Paths[adopted.Manifest("kube-apiserver")] = host.Path{Content: []byte(
			"spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --etcd-servers=" + servers)}
		has(t, adopted.Cluster(s), cause)
	}
}

// kubekeysDropIn is what KubeKey writes into /etc, where no package is.
func kubekeysDropIn(starts string) []string {
	return []string{
		"unit kubelet.service", "file /etc/systemd/system/kubelet.service", "line ExecStart=/usr/local/bin/kubelet", "file " + ours,
		`line Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"`, "line EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env",
		"line EnvironmentFile=-/etc/default/kubelet", `line Environment="KUBELET_EXTRA_ARGS=--node-ip=172.16.0.1 --hostname-override=cp1"`,
		"line ExecStart=", "line ExecStart=" + starts,
	}
}

// TestUnitsOfKubeKey: what comes and goes of its units is shown, as flags where it is flags; its drop-in of the kubelet is kubeadm's, of
// which ours takes the place.
func TestUnitsOfKubeKey(t *testing.T) {
	const variables = " $KUBELET_KUBECONFIG_ARGS  $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"
	nodes := adoption.Nodes(planOf(t, units(t)), "cp1")
	h := func(dropIn []string, more ...string) adopted.Host {
		seen := packaged()
		seen.Paths[vendors], seen.Paths[ours] = host.Path{}, host.Path{Exists: true}
		seen.Commands[madeOf] = host.Result{Stdout: []byte(strings.Join(slices.Concat(dropIn, more), "\n") + "\n")}
		return adopted.Host{
			Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane}, Facts: seen, Runtime: runtime, Also: []string{ofUnits.UnitName()},
			Writes: adoption.Writes(nodes, seen),
		}
	}
	for name, tc := range map[string]struct {
		dropIn []string
		cause  string
	}{
		"kubeadm's":       {dropIn: kubekeysDropIn("/usr/local/bin/kubelet" + variables)},
		"another kubelet": {dropIn: kubekeysDropIn("/opt/hyperkube" + variables), cause: "10-kubeadm.conf is laid over the unit"},
		"other flags":     {dropIn: kubekeysDropIn("/usr/local/bin/kubelet --v=9" + variables), cause: "10-kubeadm.conf is laid over the unit"},
		"other files": {
			dropIn: append(kubekeysDropIn("/usr/local/bin/kubelet"+variables), "line EnvironmentFile=/etc/x"), cause: "10-kubeadm.conf is laid over the unit",
		},
		"another end": {
			dropIn: append(kubekeysDropIn("/usr/local/bin/kubelet"+variables), "line KillMode=none"), cause: "it sets EnvironmentFile, ExecStart, KillMode",
		},
		"etcd's drop-in, of the program": {
			dropIn: []string{"unit etcd.service", "file /etc/systemd/system/etcd.service.d/kubexm.conf", "line ExecStart="},
			cause:  "etcd.service.d/kubexm.conf is laid over",
		},
	} {
		t.Run(name, func(t *testing.T) { has(t, h(tc.dropIn).Problems(nil), tc.cause) })
	}

	unit, err := adoption.Text(nodes, "/etc/systemd/system/etcd.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := h(nil, "unit etcd.service", "file /etc/systemd/system/etcd.service", "line [Service]", "line User=root", "line EnvironmentFile=/etc/etcd.env",
		"line ExecStart=/usr/local/bin/etcd --name=x", "line Type=notify", "line LimitNOFILE=40000", "variable ETCD_NAME /etc/etcd.env",
		"variable ETCDCTL_CERT /etc/etcd.env").UnitLines("etcd.service", unit)
	goes := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "+") })
	want := []string{"- User=root", "- EnvironmentFile=/etc/etcd.env", "- LimitNOFILE=40000", "- variable ETCDCTL_CERT of /etc/etcd.env"}
	if diff := cmp.Diff(want, goes); diff != "" || !slices.Contains(lines, "+ User=etcd") || strings.Contains(strings.Join(lines, "\n"), "--") {
		t.Errorf("of the unit (-want +got):\n%s\n%q", diff, lines)
	}
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	flags := adopted.Changed(kubekeys(t, ca, 1).Flags(), ofUnits.FlagsOf(unit))
	goes = slices.DeleteFunc(slices.Clone(flags), func(l string) bool { return strings.HasPrefix(l, "+") })
	want = []string{
		"- --cert-file=/etc/ssl/etcd/ssl/member.pem", "- --election-timeout=5000", "- --key-file=/etc/ssl/etcd/ssl/member-key.pem", "- --name=etcd-cp1",
		"- --peer-cert-file=/etc/ssl/etcd/ssl/member.pem", "- --peer-key-file=/etc/ssl/etcd/ssl/member-key.pem", "- --peer-trusted-ca-file=" + theirCA,
		"- --trusted-ca-file=" + theirCA,
	}
	if diff := cmp.Diff(want, goes); diff != "" || !slices.Contains(flags, "+ --name=cp1") {
		t.Errorf("of flags (-want +got):\n%s\n%q", diff, flags)
	}
}

// TestEtcdUnitIsInherited takes over a host whose etcd is a unit of others: an undo of everything stops it, and removes its data, its
// settings, and the authority's key, and leaves what may be anybody's.
func TestEtcdUnitIsInherited(t *testing.T) {
	nodes := adoption.Nodes(planOf(t, units(t)), "cp1")
	own := []string{"/etc/etcd.env", "/etc/ssl/etcd"}
	m := fake.New("cp1")
	for _, file := range []string{
		"/etc/kubernetes/kubelet.conf", "/var/lib/etcd/member/wal", "/etc/ssl/etcd/ssl/ca-key.pem", "/etc/ssl/certs/x.pem", "/etc/etcd.env",
		"/usr/local/bin/etcd", "/etc/systemd/system/etcd.service", "/etc/systemd/system/backup-etcd.timer",
	} {
		m.Put(file, "theirs", 0o644)
	}
	m.SetUnit("etcd.service", host.UnitState{Load: "loaded", Active: "active", Sub: "running", File: "enabled"})
	h := m.Connect()
	seen, err := h.Observe(t.Context(), adoption.Query(nodes))
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Begin(t.Context(), host.Run{ID: "adopt", Holder: "test", Ownership: owns("cp1")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), adoption.Acts(nodes, seen, nil, own...)...); err != nil {
		t.Fatal(err)
	}
	if err := s.End(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	is := func(active string, there, gone []string) {
		t.Helper()
		q := host.Query{Units: []string{"etcd.service"}}
		for _, p := range slices.Concat(there, gone) {
			q.Paths = append(q.Paths, host.PathQuery{Path: p})
		}
		now, err := m.Connect().Observe(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range slices.Concat(there, gone) {
			if now.Paths[p].Exists != slices.Contains(there, p) {
				t.Errorf("%s exists: %v", p, now.Paths[p].Exists)
			}
		}
		if got := now.Units["etcd.service"].Active; got != active {
			t.Errorf("etcd is %s, want %s", got, active)
		}
	}
	others := []string{"/etc/ssl/certs/x.pem", "/etc/systemd/system/backup-etcd.timer"}
	all := append([]string{"/var/lib/etcd", "/usr/local/bin/etcd", "/etc/systemd/system/etcd.service"}, own...)
	is("active", slices.Concat(others, all), nil)
	h = m.Connect()
	if s, err = h.Begin(t.Context(), host.Run{ID: "reset", Holder: "test", Ownership: owns("cp1")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Fatal(err)
	}
	is("inactive", others, all)
}

// TestEtcdUnitsFollow: a host that waits for its turn, and was adopted, has the account that what it follows the others by is for.
func TestEtcdUnitsFollow(t *testing.T) {
	var claims, certificates string
	for _, n := range adoption.Nodes(planOf(t, units(t)), "cp1") {
		switch n.Name {
		case "etcd/claim":
			claims = string(n.Step.Meta().Follows)
		case "etcd/certificates":
			certificates = string(n.Step.Meta().Follows)
		}
	}
	if claims != "Others" || certificates == "" {
		t.Errorf("the account follows the others %q, and certificates %q", claims, certificates)
	}
}
