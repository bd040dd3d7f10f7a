// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan/adoption"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	vendors = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
	ours    = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
)

// packaged is what a host says of units that are packages', with what others have added.
func packaged(more ...string) *host.Facts {
	said := append([]string{
		"unit kubelet.service", "file /usr/lib/systemd/system/kubelet.service",
		"line [Service]", "line ExecStart=/usr/bin/kubelet", "line Restart=always", "line RestartSec=10",
		"file " + vendors, "line # Note: this works with kubeadm",
		`line Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"`, "line EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env",
		"line EnvironmentFile=-/etc/default/kubelet", "line ExecStart=",
		"variable KUBELET_KUBEADM_ARGS /var/lib/kubelet/kubeadm-flags.env", "variable KUBELET_EXTRA_ARGS /etc/default/kubelet",
		"variable HTTPS_PROXY /etc/default/kubelet",
		"argument /usr/bin/kubelet", "argument --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
		"argument --kubeconfig=" + adopted.NodeConfig, "argument --config=" + adopted.KubeletConfig, "argument --node-ip=172.16.0.2",
		"argument --max-pods=50",
	}, more...)
	return &host.Facts{
		Commands: map[string]host.Result{madeOf: {Stdout: []byte(strings.Join(said, "\n") + "\n")}},
		Paths: map[string]host.Path{
			vendors: {Exists: true}, adopted.NodeConfig: {Exists: true}, adopted.KubeletConfig: {Content: []byte("cgroupDriver: systemd\n")},
		},
		Units: map[string]host.UnitState{"kubelet.service": {Active: "active"}, "containerd.service": {Active: "active"}},
	}
}

// TestPackagesUnits: the drop-in of a package is no reason to refuse a host, for the first converge takes its place; each setting that
// goes with it is shown, whoever has set it, and no value of a variable.
func TestPackagesUnits(t *testing.T) {
	nodes := adoption.Nodes(planned(t), "w1")
	seen := packaged("unit containerd.service", "file /usr/lib/systemd/system/containerd.service", "line ExecStart=/usr/bin/containerd",
		"file /etc/systemd/system/containerd.service.d/proxy.conf", "line [Service]", `line Environment="HTTP_PROXY=http://u:hunter2@p" "NO_PROXY=a b"`,
		"line LimitNOFILE=infinity")
	h := adopted.Host{Host: spec.Host{Name: "w1"}, Facts: seen, Runtime: runtime, Writes: adoption.Writes(nodes, seen)}
	has(t, h.Problems(nil), "")

	want := map[string][]string{
		"kubelet.service": {
			"- ExecStart=/usr/bin/kubelet", "- RestartSec=10", "- EnvironmentFile=-/etc/default/kubelet", "- variable HTTPS_PROXY of /etc/default/kubelet",
		},
		"containerd.service": {"- ExecStart=/usr/bin/containerd", "= drop-in /etc/systemd/system/containerd.service.d/proxy.conf"},
	}
	for _, unit := range adopted.UnitNames(runtime) {
		text, err := adoption.Text(nodes, adopted.UnitDir+"/"+unit)
		if err != nil || !strings.Contains(text, "ExecStart=/usr/local/bin/") {
			t.Fatalf("%s is %q, %v", unit, text, err)
		}
		var got []string
		for _, l := range h.UnitLines(unit, text) {
			if !strings.HasPrefix(l, "+") {
				got = append(got, l)
			}
		}
		if diff := cmp.Diff(want[unit], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", unit, diff)
		}
	}
	if diff := cmp.Diff([]string{"--node-ip=172.16.0.2", "--max-pods=50"}, adopted.KubeletFlags(seen)); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}

// TestActsOnPackages: programs that a converge will place beside those of packages are removed when what they have started is stopped, and
// no earlier; what packages own is left, and nothing else of the directories.
func TestActsOnPackages(t *testing.T) {
	nodes := adoption.Nodes(planned(t), "w1")
	seen := packaged()
	var later, left []string
	for _, a := range adoption.Acts(nodes, seen, map[string][]adoption.Owned{
		"/etc/kubernetes": {{Path: "/etc/kubernetes/manifests/.kubelet-keep", Package: "kubelet"}},
	}) {
		for _, c := range a.Changes {
			switch c := c.(type) {
			case host.Inherit:
				later = append(later, c.Files...)
				if slices.Contains(c.Paths, "/etc/kubernetes") {
					t.Error("/etc/kubernetes would go as a whole")
				}
			case host.Command:
				if slices.Contains(c.Undo, "/etc/kubernetes/manifests/.kubelet-keep") {
					left = append(left, c.Title)
				}
			}
		}
	}
	for _, p := range []string{"/usr/local/bin/containerd", "/usr/local/bin/containerd-shim-runc-v2", "/usr/local/bin/runc", "/usr/local/bin/kubelet"} {
		if !slices.Contains(later, p) {
			t.Errorf("%s would be removed before what it runs is stopped", p)
		}
	}
	for _, p := range later {
		if !strings.HasPrefix(p, "/usr/local/bin/") {
			t.Errorf("%s is no program", p)
		}
	}
	if len(left) != 1 {
		t.Errorf("what the package owns is left by %q", left)
	}
}

// TestDropIns: what is laid over the units that come is refused, and what is laid beside them stays.
func TestDropIns(t *testing.T) {
	nodes := adoption.Nodes(planned(t), "w1")
	const mine = "file /etc/systemd/system/kubelet.service.d/20-mine.conf\n"
	for name, tc := range map[string]struct {
		files string
		// alone: no package has a drop-in on the host.
		alone bool
		cause string
	}{
		"a kubelet of its own":               {files: mine + "line ExecStart=\nline ExecStart=/opt/kubelet\n", cause: "it sets ExecStart"},
		"flags of other files":               {files: mine + "line EnvironmentFile=/etc/x\n", cause: "it sets EnvironmentFile"},
		"a way to end":                       {files: mine + "line KillMode=control-group\nline Restart=no\n", cause: "it sets KillMode, Restart"},
		"limits, and a proxy":                {files: mine + "line LimitNOFILE=1\nline ; KillMode=none\nline Environment=A=b\nline CPUAffinity=0\n"},
		"theirs, of the name of a package's": {files: "file " + ours + "\nline ExecStart=/usr/bin/kubelet\n"},
		"theirs, of a name that no package has": {files: "file " + ours + "\nline ExecStart=/usr/bin/kubelet\n", alone: true,
			cause: "10-kubeadm.conf is laid over"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := packaged()
			if tc.alone {
				seen.Paths[vendors] = host.Path{}
			}
			seen.Commands[madeOf] = host.Result{Stdout: []byte("unit kubelet.service\nfile /etc/systemd/system/kubelet.service\n" + tc.files)}
			h := adopted.Host{Host: spec.Host{Name: "w1"}, Facts: seen, Runtime: runtime, Writes: adoption.Writes(nodes, seen)}
			has(t, h.Problems(nil), tc.cause)
		})
	}
}

// TestUnitsAreAsked runs what hosts are asked, with a systemd that knows one unit.
func TestUnitsAreAsked(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	unit := write("kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet \\\n  --v=2\nRestart=always\n", 0o600)
	dropIn := write("kubelet.service.d/10-kubeadm.conf", "[Service]\nNice=1\n", 0o600)
	variables := write("default", "# x\nKUBELET_EXTRA_ARGS=--v=3\nPROXY=secret\n", 0o600)
	write("systemctl", `#!/bin/sh
case "$*" in
*FragmentPath*kubelet.service) echo `+unit+` ;;
*DropInPaths*kubelet.service) echo `+dropIn+` ;;
*EnvironmentFiles*kubelet.service) echo "EnvironmentFiles=`+variables+` (ignore_errors=yes)" ;;
*MainPID*kubelet.service) echo $PPID ;;
*MainPID*) echo 0 ;;
*) echo ;;
esac
`, 0o700)
	argv := adopted.HostQuery(spec.RoleWorker, runtime).Commands[0].Argv
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{
		"unit kubelet.service", "file " + unit, "line [Service]", "line ExecStart=/usr/bin/kubelet    --v=2", "line Restart=always",
		"file " + dropIn, "line [Service]", "line Nice=1", "variable KUBELET_EXTRA_ARGS " + variables, "variable PROXY " + variables,
		"argument /bin/sh", "argument -uc",
	}
	if !strings.HasPrefix(string(out), strings.Join(want, "\n")+"\n") || !strings.HasSuffix(string(out), "unit containerd.service\n") {
		t.Errorf("it says:\n%s", out)
	}
	if strings.Contains(string(out), "secret") {
		t.Error("it says the value of a variable")
	}
}
