// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan/adoption"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const declared = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: cp1, address: 172.16.0.1}
  - {name: w1, address: 172.16.0.2}
  roleGroups: {master: [cp1], worker: [w1]}
  kubernetes: {version: v1.36.3, encryptionAtRest: {provider: None}}
  etcd: {type: kubeadm}
  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}
`

func parse(t *testing.T) *config.Cluster {
	t.Helper()
	c, _, err := config.Parse([]byte(declared))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// external is the declared cluster, whose etcd is external.
func external(t *testing.T) *config.Cluster {
	t.Helper()
	c, _, err := config.Parse([]byte(strings.Replace(declared, "{type: kubeadm}", "{type: external, external: {endpoints: [https://10.0.0.1:2379, "+
		"https://10.0.0.2:2379], caFile: /ca.crt, certFile: /client.crt, keyFile: /client.key}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// planned is the plan of the declared cluster.
func planned(t *testing.T) *plan.Plan { return planOf(t, parse(t)) }

func planOf(t *testing.T, c *config.Cluster) *plan.Plan {
	t.Helper()
	bundle, err := artifact.Open(t.Context(), "../../../../pkg/pipeline/testdata/bundle", nil)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := planner.Targets(c)
	if err != nil {
		t.Fatal(err)
	}
	systems := map[string]host.System{}
	for _, target := range targets {
		systems[target.Host.Name] = fake.New(target.Host.Name).System
	}
	p, err := planner.Plan(targets, systems, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestActs takes over hosts, cut at each point and done again: nothing of the host changes,
// what is made but once counts as made, and an undo of everything removes what Kubernetes has put there and nothing else.
func TestActs(t *testing.T) {
	p := planned(t)
	for _, on := range []string{"cp1", "w1"} {
		nodes := adoption.Nodes(p, on)
		for cut := 0; ; cut++ {
			m, err := takenOver(t, on, nodes, cut)
			if err == nil && cut > 0 {
				break // it has fewer boundaries
			}
			if err != nil { // done again
				if err = take(t, m, on, nodes); err != nil {
					t.Fatalf("%s, cut at %d: %v", on, cut, err)
				}
			}
			isTakenOver(t, m, nodes)
			if t.Failed() {
				t.Fatalf("%s, cut at %d", on, cut)
			}
			if err := take(t, m, on, nodes); err != nil { // nothing is left to be done
				t.Fatal(err)
			}
			isTakenOver(t, m, nodes)
			isFree(t, m, on)
		}
	}
}

// owns is the claim of the cluster.
func owns(on string) host.Ownership {
	return host.Ownership{Owner: host.Owner{Cluster: "prod", Authority: "sha256:aa", Role: "ControlPlane", Host: on}}
}

func takenOver(t *testing.T, on string, nodes []plan.Node, cut int) (*fake.Machine, error) {
	t.Helper()
	m := fake.New(on)
	for _, file := range []string{
		"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/manifests/etcd.yaml", "/var/lib/etcd/member/wal", "/var/lib/kubelet/config.yaml",
		"/usr/local/bin/kubelet", "/usr/local/bin/kubeadm", "/usr/local/bin/containerd", "/etc/systemd/system/kubelet.service",
		"/etc/cni/net.d/10-flannel.conflist",
		"/opt/cni/bin/bridge", "/opt/cni/bin/flannel", "/etc/containerd/config.toml", "/srv/theirs",
	} {
		m.Put(file, "theirs", 0o644)
	}
	for _, unit := range []string{"kubelet.service", "containerd.service"} {
		m.SetUnit(unit, host.UnitState{Load: "loaded", Active: "active", Sub: "running", File: "enabled"})
	}
	m.OnCommand = func(m *fake.Machine, c host.Command) host.Result {
		const of = "/opt/cni"
		if strings.HasSuffix(c.Title, "no package owns of "+of) && slices.Contains(c.Argv, of+"/bin/bridge") {
			m.Remove(of + "/bin/flannel")
		}
		return host.Result{}
	}
	m.CutAt(cut)
	return m, take(t, m, on, nodes)
}

func take(t *testing.T, m *fake.Machine, on string, nodes []plan.Node) error {
	t.Helper()
	h := m.Connect()
	defer h.Close()
	seen, err := h.Observe(t.Context(), adoption.Query(nodes))
	if err != nil {
		return err
	}
	s, err := h.Begin(t.Context(), host.Run{ID: t.Name() + seen.Taken.String(), Holder: "test", Ownership: owns(on)})
	if err != nil {
		return err
	}
	acts := adoption.Acts(nodes, seen, map[string][]adoption.Owned{
		"/opt/cni":                    {{Path: "/opt/cni/bin/bridge", Package: "kubernetes-cni"}},
		"/etc/containerd/config.toml": {{Path: "/etc/containerd/config.toml", Package: "containerd.io"}},
	})
	if len(acts) > 0 {
		if _, err := s.Do(t.Context(), acts...); err != nil {
			return err
		}
	}
	return s.End(t.Context(), false)
}

// isTakenOver wants units to run, and all steps that are made but once to be made.
func isTakenOver(t *testing.T, m *fake.Machine, nodes []plan.Node) {
	t.Helper()
	q := host.Query{Units: []string{"kubelet.service", "containerd.service"}, Paths: []host.PathQuery{
		{Path: "/usr/local/bin/kubelet", Content: true},
	}}
	for _, n := range nodes {
		q.Merge(n.Step.Observe())
	}
	seen, err := m.Connect().Observe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range q.Units[:2] {
		if u := seen.Units[unit]; u.Active != "active" || u.File != "enabled" {
			t.Errorf("%s is %+v", unit, u)
		}
	}
	if got := string(seen.Paths["/usr/local/bin/kubelet"].Content); got != "theirs" {
		t.Errorf("the kubelet is %q", got)
	}
	once := 0
	for _, n := range nodes {
		if !adoption.Once(n.Step) {
			continue
		}
		once++
		if _, done := seen.Journal[n.ID]; !done {
			t.Errorf("%s is not made", n.ID)
		}
		if s, is := n.Step.(step.Sequence); is && s.Done != nil && strings.Contains(n.Name, "kubeadm/control-plane") {
			if d, err := n.Step.Precheck(step.View{Facts: seen, Node: n.ID, Digest: n.Digest}); err != nil || len(d) > 0 {
				t.Errorf("%s would be run: %v %v", n.ID, d, err)
			}
		}
	}
	if once < 4 {
		t.Errorf("only %d steps are made but once", once)
	}
}

// isFree resets the host.
func isFree(t *testing.T, m *fake.Machine, on string) {
	t.Helper()
	h := m.Connect()
	s, err := h.Begin(t.Context(), host.Run{ID: "reset", Holder: "test", Ownership: owns(on)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), host.Scope{}, nil); err != nil {
		t.Fatal(err)
	}
	var q host.Query
	gone := []string{"/etc/kubernetes", "/var/lib/kubelet", "/usr/local/bin/kubelet", "/usr/local/bin/containerd",
		"/etc/systemd/system/kubelet.service",
		"/etc/cni", "/opt/cni/bin/flannel", host.StateDir}
	if on == "cp1" {
		gone = append(gone, "/var/lib/etcd")
	}
	stays := []string{"/srv/theirs", "/opt/cni/bin/bridge", "/etc/containerd/config.toml"} // the last two are packages'
	for _, p := range slices.Concat(gone, stays) {
		q.Paths = append(q.Paths, host.PathQuery{Path: p})
	}
	q.Units = []string{"kubelet.service", "containerd.service"}
	seen, err := m.Connect().Observe(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range gone {
		if seen.Paths[p].Exists {
			t.Errorf("%s is left", p)
		}
	}
	for _, p := range stays {
		if !seen.Paths[p].Exists {
			t.Errorf("%s is gone", p)
		}
	}
	for _, u := range q.Units {
		if seen.Units[u].Active == "active" {
			t.Errorf("%s runs", u)
		}
	}
}

// TestFollowers: a host that waits for its turn, and was adopted, has what the steps ask etcd with by which it follows the others.
func TestFollowers(t *testing.T) {
	var programs step.Follows
	for _, n := range adoption.Nodes(planned(t), "cp1") {
		about := n.Step.Meta()
		if n.Task != "etcd-maintenance" || about.Follows == "" {
			continue
		}
		if n.Name == "etcd/programs" {
			programs = about.Follows
		} else if programs != step.FollowsOthers {
			t.Errorf("%s follows the others, and etcdctl does not come with it: %q", n.Name, programs)
		}
	}
	if programs == "" {
		t.Error("etcd's programs do not come with what follows")
	}
}

// TestRenderings: what a converge has kubeadm make of a host is known beforehand, of each component.
func TestRenderings(t *testing.T) {
	p := planned(t)
	for on, want := range map[string][]string{
		"cp1": {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}, "w1": {"kubelet"},
	} {
		var got []string
		for _, n := range adoption.Nodes(p, on) {
			for _, r := range adoption.Renderings(n.Step) {
				got = append(got, r.Component)
				if argv := strings.Join(r.Query().Argv, "\n"); !strings.Contains(argv, "InitConfiguration") {
					t.Errorf("%s of %s is made of nothing:\n%s", r.Component, on, argv)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", on, diff)
		}
	}
}

func TestDifferences(t *testing.T) {
	pod := func(image string, args ...string) []byte {
		return []byte("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: x\n    image: " + image + "\n    command:\n    - " +
			strings.Join(args, "\n    - ") +
			"\n    env: [{name: TOKEN, value: hunter2}]\n  volumes: [{name: certs, hostPath: {path: /etc/ssl}}]\n")
	}
	for name, tc := range map[string]struct {
		component  string
		have, want []byte
		lines      []string
		err        string
	}{
		"the same": {component: "kube-scheduler", have: pod("a:1", "kube-scheduler", "--v=2"), want: pod("a:1", "kube-scheduler", "--v=2")},
		"a flag goes, one comes, another image": {component: "kube-scheduler", have: pod("a:1", "kube-scheduler", "--v=2"), want: pod("b:1",
			"kube-scheduler", "--profiling=false"),
			lines: []string{"- --v=2", "- image a:1", "+ --profiling=false", "+ image b:1"}},
		"no Pod":    {component: "etcd", have: []byte("spec: 3"), want: pod("a:1", "etcd"), err: "is not understood"},
		"not there": {component: "etcd", want: pod("a:1", "etcd"), err: "has 0 containers"},
		"a kubelet": {component: adoption.Kubelet,
			have:  []byte("maxPods: 250\nauthentication: {anonymous: {enabled: false}}\nkubeadmArgs: \"--node-ip=1.2.3.4 --v=2\"\n"),
			want:  []byte("maxPods: 110\nauthentication: {anonymous: {enabled: false}}\nkubeadmArgs: \"--node-ip=1.2.3.4\"\n"),
			lines: []string{"- maxPods: 250", "- --v=2", "+ maxPods: 110"}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := adopted.Differences(tc.component, tc.have, tc.want)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.lines, lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLostNames(t *testing.T) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Sign(pki.LeafRequest{CommonName: "kube-apiserver", DNSNames: []string{"kubernetes", "cp1", "theirs.example.org"},
		Usages: []pki.Usage{pki.Server}})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := adopted.LostNames(leaf.Cert, "cp1\n", []string{"kubernetes"})
	if err != nil || !slices.Equal(lost, []string{"theirs.example.org"}) {
		t.Errorf("got %q, %v", lost, err)
	}
	if _, err := adopted.LostNames([]byte("x"), "", nil); err == nil {
		t.Error("what is no certificate must be refused")
	}
}

// has wants exactly one problem, with a cause and a remedy.
func has(t *testing.T, got []preflight.Problem, cause string) {
	t.Helper()
	if cause == "" && len(got) == 0 {
		return
	}
	if len(got) != 1 || cause == "" || !strings.Contains(got[0].Cause, cause) || got[0].Remedy == "" || got[0].Severity != preflight.Error {
		t.Errorf("got %+v, want one with %q", got, cause)
	}
}

func TestDeclared(t *testing.T) {
	for cause, change := range map[string]func(*spec.Cluster, map[string]spec.Role){
		"":                          func(*spec.Cluster, map[string]spec.Role) {},
		"spec.kubernetes.type":      func(c *spec.Cluster, _ map[string]spec.Role) { c.Kubernetes.Type = spec.KubernetesKubexm },
		"spec.containerRuntime":     func(c *spec.Cluster, _ map[string]spec.Role) { c.ContainerRuntime.Type = spec.ContainerRuntimeCRIO },
		"spec.network.plugin":       func(c *spec.Cluster, _ map[string]spec.Role) { c.Network.Plugin = spec.NetworkCalico },
		"to be a LoadBalancer host": func(_ *spec.Cluster, roles map[string]spec.Role) { roles["lb1"] = spec.RoleLoadBalancer },
	} {
		c, roles := parse(t).Spec, map[string]spec.Role{"cp1": spec.RoleControlPlane}
		change(&c, roles)
		has(t, adopted.Declared("prod", &c, roles), cause)
	}
	has(t, adopted.Declared("prod", &external(t).Spec, nil), "")
	has(t, adopted.Declared("prod", &units(t).Spec, nil), "")
}

func TestOwners(t *testing.T) {
	own := func() *host.Owner {
		return &host.Owner{Cluster: "prod", Authority: "sha256:aa", Role: "Worker", Host: "w1", MachineID: "id"}
	}
	for name, tc := range map[string]struct {
		change func(*host.Facts)
		cause  string
	}{
		"nobody's":           {func(f *host.Facts) { f.Owner = nil }, ""},
		"of this adoption":   {func(*host.Facts) {}, ""},
		"another cluster's":  {func(f *host.Facts) { f.Owner.Cluster = "other" }, "of cluster other"},
		"another authority":  {func(f *host.Facts) { f.Owner.Authority = "sha256:bb" }, "authority sha256:bb"},
		"another host":       {func(f *host.Facts) { f.Owner.Host = "w2" }, "host w2"},
		"a clone":            {func(f *host.Facts) { f.System.MachineID = "other" }, "host w1"},
		"changed, no record": {func(f *host.Facts) { f.Owner, f.UndoEntries = nil, 2 }, "changed by kubexm"},
		"unreadable":         {func(f *host.Facts) { f.Owner, f.OwnerUnreadable = nil, "it is empty" }, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &host.Facts{Owner: own(), System: host.System{MachineID: "id"}}
			tc.change(f)
			has(t, adopted.Owners("prod", "default", "sha256:aa", []adopted.Host{{Host: spec.Host{Name: "w1", Role: spec.RoleWorker}, Facts: f}}),
				tc.cause)
		})
	}
}

// runtime is the one that is declared.
var runtime = containerd.Runtime{}.Endpoint()

// madeOf is the ID of the command that says what units are made of.
var madeOf = adopted.HostQuery(spec.RoleWorker, runtime).Commands[0].ID

func TestHostProblems(t *testing.T) {
	for cause, change := range map[string]func(*adopted.Host){
		"":                             func(*adopted.Host) {},
		"there is no /etc/kubernetes":  func(h *adopted.Host) { h.Facts.Paths[adopted.NodeConfig] = host.Path{} },
		"of another cluster":           func(h *adopted.Host) { h.Facts.Paths[adopted.Authority] = host.Path{Content: []byte("other")} },
		"containerd.service is failed": func(h *adopted.Host) { h.Facts.Units["containerd.service"] = host.UnitState{Active: "failed"} },
		"it sets ExecStart": func(h *adopted.Host) {
			h.Facts.Commands[madeOf] = host.Result{Stdout: []byte("unit kubelet.service\nfile /etc/systemd/system/kubelet.service.d/a.conf\nline ExecStart=/x\n")}
		},
		"units are made of is not known": func(h *adopted.Host) {
			h.Facts.Commands[madeOf] = host.Result{ExitCode: 1, Stderr: []byte("no bus\n")}
		},
		"flag --config is /etc/kubelet.yaml": func(h *adopted.Host) {
			h.Facts.Commands[madeOf] = host.Result{Stdout: []byte("unit kubelet.service\nargument kubelet\nargument --config=/etc/kubelet.yaml\n" +
				"argument --kubeconfig\nargument /etc/kubernetes/kubelet.conf\n")}
		},
		"cgroupDriver is cgroupfs, and kubexm has systemd": func(h *adopted.Host) {
			h.Facts.Commands[madeOf] = host.Result{Stdout: []byte("unit kubelet.service\nargument kubelet\nargument --config=" + adopted.KubeletConfig +
				"\nargument --kubeconfig=" + adopted.NodeConfig + "\nargument --cgroup-driver=cgroupfs\n")}
		},
		"cgroupDriver is systemd, and kubexm has cgroupfs": func(h *adopted.Host) { h.CgroupDriver = "cgroupfs" },
		"it has no cgroupDriver":                           func(h *adopted.Host) { h.Facts.Paths[adopted.KubeletConfig] = host.Path{} },
		"containerRuntimeEndpoint is unix:///run/crio": func(h *adopted.Host) {
			h.Facts.Paths[adopted.KubeletConfig] = host.Path{Content: []byte("cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///run/crio/crio.sock\n")}
		},
		"kubeadm does not make": func(h *adopted.Host) { h.Kubeadm = "etcd: no such command" },
	} {
		active := host.UnitState{Load: "loaded", Active: "active"}
		h := adopted.Host{Host: spec.Host{Name: "w1"}, Runtime: runtime, CgroupDriver: "systemd", Facts: &host.Facts{
			Paths: map[string]host.Path{
				adopted.NodeConfig: {Exists: true}, adopted.Authority: {Content: []byte("ours\n")},
				adopted.KubeletConfig: {Content: []byte("cgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock\n")},
			},
			Units: map[string]host.UnitState{"kubelet.service": active, "containerd.service": active}, Commands: map[string]host.Result{},
		}}
		change(&h)
		has(t, h.Problems([]byte("ours")), cause)
	}
}

func TestCluster(t *testing.T) {
	for cause, change := range map[string]func(*adopted.Seen){
		"":                                   func(*adopted.Seen) {},
		"has no Node of this name":           func(s *adopted.Seen) { s.Nodes = nil },
		"has the address 10.0.0.9":           func(s *adopted.Seen) { s.Nodes[0].Address = "10.0.0.9" },
		"to be a Worker host, and":           func(s *adopted.Seen) { s.Nodes[0].ControlPlane = true },
		"runtime is cri-o":                   func(s *adopted.Seen) { s.Nodes[0].Runtime = "cri-o://1" },
		"provider ID aws://1":                func(s *adopted.Seen) { s.Nodes[0].ProviderID = "aws://1" },
		"has no ClusterConfiguration":        func(s *adopted.Seen) { s.Configuration = "" },
		"its etcd is external":               func(s *adopted.Seen) { s.Configuration += "etcd: {external: {endpoints: [x]}}\n" },
		"directory of etcd's data":           func(s *adopted.Seen) { s.Configuration += "etcd: {local: {dataDir: /data}}\n" },
		"directory of certificates":          func(s *adopted.Seen) { s.Configuration += "certificatesDir: /pki\n" },
		"range of Pods' addresses":           func(s *adopted.Seen) { s.Spec.Network.PodCIDRs = []string{"10.1.0.0/16"} },
		"range of Services' addresses":       func(s *adopted.Seen) { s.Spec.Network.ServiceCIDRs = []string{"10.2.0.0/16"} },
		"DNS domain":                         func(s *adopted.Seen) { s.Spec.DNS.ClusterDomain = "corp" },
		"no DaemonSet kube-flannel":          func(s *adopted.Seen) { s.DaemonSets = nil },
		"is no release kube-flannel/flannel": func(s *adopted.Seen) { s.Releases = []string{"kube-flannel/other"} },
	} {
		c := parse(t).Spec
		s := adopted.Seen{
			Cluster: "prod", Spec: &c, Network: flannel.Network{}, DaemonSets: []string{"kube-flannel/kube-flannel-ds"},
			Releases: []string{"kube-flannel/flannel"},
			Hosts: []adopted.Host{{Host: spec.Host{Name: "w1", Role: spec.RoleWorker, Address: "172.16.0.2",
				ProviderID: "kubexm://default/w1"}, Runtime: runtime}},
			Nodes:         []adopted.Node{{Name: "w1", Address: "172.16.0.2", Runtime: "containerd://2.4.2"}},
			Configuration: "networking: {podSubnet: 10.244.0.0/16}\n",
		}
		change(&s)
		has(t, adopted.Cluster(s), cause)
	}
}

// TestExternalEtcd: it is the one that is declared, by kubeadm's configuration and by what the API server runs with; where the files are
// by which it is reached does not matter.
func TestExternalEtcd(t *testing.T) {
	const found = "networking: {podSubnet: 10.244.0.0/16}\netcd: {external: {endpoints: [https://10.0.0.2:2379/, https://10.0.0.1:2379], " +
		"caFile: /etc/ssl/etcd/ssl/ca.pem, certFile: /etc/ssl/etcd/ssl/node.pem, keyFile: /etc/ssl/etcd/ssl/node-key.pem}}\n"
	for cause, change := range map[string]func(s *adopted.Seen, flags *string){
		"":                                 func(*adopted.Seen, *string) {},
		"its etcd is external, and one of": func(s *adopted.Seen, _ *string) { s.Spec = &parse(t).Spec },
		"its etcd runs in kubeadm's static pods, and another": func(s *adopted.Seen, _ *string) {
			s.Configuration = "networking: {podSubnet: 10.244.0.0/16}\netcd: {local: {dataDir: /var/lib/etcd}}\n"
		},
		`its external etcd is "https://10.0.0.1:2379, https://10.0.0.2:2379", and`: func(s *adopted.Seen, flags *string) {
			s.Spec.Etcd.External.Endpoints = []string{"https://10.0.0.1:2379"}
			*flags = "--etcd-servers=https://10.0.0.1:2379"
		},
		"API server has --etcd-servers=https://10.0.0.9:2379":   func(_ *adopted.Seen, flags *string) { *flags = "--etcd-servers=https://10.0.0.9:2379" },
		"API server has --etcd-prefix=/prod, and \"/registry\"": func(_ *adopted.Seen, flags *string) { *flags += "\n    - --etcd-prefix=/prod" },
		"and \"/dev\" is declared": func(s *adopted.Seen, flags *string) {
			*flags += "\n    - --etcd-prefix=/prod"
			s.Spec.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "etcd-prefix", Value: "/dev"}}
		},
		"it has /etc/kubernetes/manifests/etcd.yaml": func(s *adopted.Seen, _ *string) {
			s.Hosts[0].Facts.Paths[adopted.Manifest("etcd")] = host.Path{Exists: true}
		},
	} {
		seen := &host.Facts{Paths: map[string]host.Path{}}
		s := adopted.Seen{
			Cluster: "prod", Spec: &external(t).Spec, Configuration: found,
			Network: flannel.Network{}, DaemonSets: []string{"kube-flannel/kube-flannel-ds"}, Releases: []string{"kube-flannel/flannel"},
			Hosts: []adopted.Host{{Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "172.16.0.1"}, Facts: seen, Runtime: runtime}},
			Nodes: []adopted.Node{{Name: "cp1", Address: "172.16.0.1", Runtime: "containerd://2.4.2", ControlPlane: true}},
		}
		flags := "--etcd-cafile=/etc/ssl/etcd/ssl/ca.pem\n    - --etcd-servers=https://10.0.0.1:2379,https://10.0.0.2:2379"
		change(&s, &flags)
		seen.Paths[adopted.Manifest("kube-apiserver")] = host.Path{Content: []byte("spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - " + flags)}
		has(t, adopted.Cluster(s), cause)
	}
}

// TestExternalEtcdStays: nothing of an external etcd is taken for the cluster's own, nor is an etcdctl that is there; the API server gets
// what is declared to go to it with, and is restarted for that before everybody's eyes.
func TestExternalEtcdStays(t *testing.T) {
	c := external(t)
	nodes := adoption.Nodes(planOf(t, c), "cp1")
	seen := &host.Facts{Paths: map[string]host.Path{"/usr/local/bin/etcdctl": {Exists: true}, "/var/lib/etcd": {Exists: true}}}
	for _, a := range adoption.Acts(nodes, seen, nil) {
		for _, change := range a.Changes {
			take, is := change.(host.Inherit)
			for _, p := range slices.Concat(take.Paths, take.Files) {
				if is && strings.Contains(p, "etcd") {
					t.Errorf("%s takes %s", a.Node, p)
				}
			}
		}
	}
	reached, disrupts := map[string]step.Text{}, map[string]string{}
	for _, n := range nodes {
		sequence, is := n.Step.(step.Sequence)
		if !is {
			continue
		}
		disrupts[sequence.Meta().Name] = sequence.Meta().Disrupts
		for _, part := range sequence.Parts {
			if f, is := part.(step.File); is && sequence.Meta().Name == "etcd/client" {
				reached[f.Path] = f.Content
			}
		}
		for _, r := range adoption.Renderings(n.Step) {
			if r.Component == "etcd" {
				t.Error("kubeadm is asked for a manifest of etcd")
			}
		}
	}
	const pki = "/etc/kubernetes/pki/"
	if diff := cmp.Diff(map[string]step.Text{
		pki + "etcd/ca.crt": step.Secret(c.EtcdSecret(), "ca.crt"), pki + "apiserver-etcd-client.crt": step.Secret(c.EtcdSecret(), "tls.crt"),
		pki + "apiserver-etcd-client.key": step.Secret(c.EtcdSecret(), "tls.key"),
	}, reached); diff != "" {
		t.Errorf("etcd is reached with (-want +got):\n%s", diff)
	}
	if got := disrupts["kubeadm/apiserver"]; got != "restarts kube-apiserver" {
		t.Errorf("the API server is shown to be changed with %q", got)
	}
}

// TestAssume: a host that nobody owns is taken for one that was adopted, by which no step that is made but once is left, and the claim is
// its owner's.
func TestAssume(t *testing.T) {
	nodes := adoption.Nodes(planned(t), "w1")
	theirs := map[string]host.JournalEntry{}
	seen := &host.Facts{Journal: theirs}
	adoption.Assume(seen, owns("w1").Owner, nodes)
	if err := owns("w1").Check("w1", seen); err != nil {
		t.Error(err)
	}
	for _, n := range nodes {
		if _, made := seen.Journal[n.ID]; made != adoption.Once(n.Step) {
			t.Errorf("%s: made %v", n.ID, made)
		}
	}
	if len(theirs) > 0 {
		t.Error("what was seen was changed for others")
	}
	other := &host.Facts{Owner: &host.Owner{Authority: "sha256:bb"}}
	adoption.Assume(other, owns("w1").Owner, nodes)
	if other.Owner.Authority != "sha256:bb" {
		t.Error("another's host was taken for ours")
	}
}
